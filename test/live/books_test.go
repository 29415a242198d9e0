package live

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// cO2: of 1,000 calls some leave at a random time, some find the queue full and some
// have no patience. At every step what the pool took in is what it gave out and what
// waits, by the status, and each part is what hooks and clients saw. Where one
// cancel is not counted the next step fails.
func TestCase_cO2(t *testing.T) {
	enqueues := int64(1000)
	if racing {
		enqueues = 300
	}
	at(t, plan{
		backends: []backend{
			{steady(10 * time.Millisecond), route.Capacity{Concurrency: 8}},
			{steady(10 * time.Millisecond), route.Capacity{Concurrency: 8, KVTokens: 6000}},
		},
		queue:   route.QueueBounds{MaxWait: 2 * time.Minute, Requests: 120},
		tenants: map[sluice.TenantID]sluice.Policy{"a": {}, "b": {Weight: 3}, "c": {Class: sluice.Batch}},
	}, func(t *testing.T, s *site) {
		rnd := rand.New(rand.NewPCG(1, 2))
		c := s.crowd()
		steps, shed := 0, int64(0)
		judge := func() {
			synctest.Wait()
			steps++
			p := s.pool()
			if err := conserved(&p); err != nil {
				t.Fatalf("step %d: %v", steps, err)
			}
			l := &s.log
			l.mu.Lock()
			defer l.mu.Unlock()
			if int(p.Enqueued) != l.begun || int(p.Dispatched) != l.granted || int(p.Cancelled+p.Rejected) != l.left || p.Waiting != l.begun-l.granted-l.left {
				t.Fatalf("step %d: the status has %d enqueued, %d dispatched, %d cancelled, %d shed, %d waiting; the hooks %d, %d and %d left",
					steps, p.Enqueued, p.Dispatched, p.Cancelled, p.Rejected, p.Waiting, l.begun, l.granted, l.left)
			}
			shed = p.Rejected
		}
		for i := 0; s.pool().Enqueued < enqueues; i++ {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			if rnd.IntN(3) == 0 {
				time.AfterFunc(time.Duration(rnd.IntN(12_000))*time.Millisecond, cancel)
			}
			a := ask{tenant: []sluice.TenantID{"a", "b", "c"}[rnd.IntN(3)], in: 100 + rnd.IntN(1500), out: 50 + rnd.IntN(400), ctx: ctx, whole: i%2 == 0}
			if rnd.IntN(4) == 0 {
				a.wait = time.Duration(1+rnd.IntN(8000)) * time.Millisecond
			}
			c.send(a)
			judge()
			time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
			judge()
		}
		for s.pool().Waiting > 0 {
			time.Sleep(500 * time.Millisecond)
			judge()
		}
		left, refused := 0, map[string]int{}
		for _, gs := range c.all() {
			for _, g := range gs {
				switch {
				case g.status == 200 && g.reason == "" && g.err == nil:
				case g.status == 200 && g.reason != "": // told in the stream, which had begun
					refused[g.reason]++
				case g.err != nil:
					left++
				default:
					refused[g.reason]++
					s.refusal(g)
				}
			}
		}
		p := s.pool()
		t.Logf("%d steps; %d enqueued, %d dispatched, %d cancelled, %d shed; %d clients left, refused %v", steps, p.Enqueued, p.Dispatched, p.Cancelled, p.Rejected, left, refused)
		seen := map[string]int{}
		for _, k := range p.Classes {
			for reason, n := range k.Refused {
				seen[reason] += int(n)
			}
		}
		if d := cmp.Diff(refused, seen); d != "" {
			t.Errorf("refused, by what clients were told (-) and by the status (+):\n%s", d)
		}
		if gone := s.log.gone(); gone != int(p.Cancelled) {
			t.Errorf("%d left while they waited by the ledger, %d by the status", gone, p.Cancelled)
		}
		if p.Cancelled < 20 || shed == 0 || !racing && refused["queue_full"] == 0 {
			t.Errorf("too little has happened: %d cancelled, %d shed, refused %v", p.Cancelled, shed, refused)
		}
	})
}

// refusal judges that a refusal for want of capacity says so, and when to come back.
func (s *site) refusal(g got) {
	s.t.Helper()
	after, err := strconv.Atoi(g.header.Get("Retry-After"))
	ms, errMs := strconv.Atoi(g.header.Get("Retry-After-Ms"))
	if g.status != 503 && g.status != 429 || g.reason == "" || err != nil || after < 1 || errMs != nil || ms < 1 || g.header.Get("Sluice-Request-Id") == "" {
		s.t.Errorf("refused at %v with %d %q and %v", g.at, g.status, g.reason, g.header)
	}
}

// cO5: streams of eight minutes keep all places taken for half an hour; some clients
// leave in mid-stream. At every moment the gateway's gauge of each backend is what
// the backend counts. A place that a cancel does not give back is found at the next
// look. In half an hour 24 places begin at most 96 streams that nobody leaves; of the
// 136 there are 102, so that some wait to the end.
func TestCase_cO5(t *testing.T) {
	const slots = 8
	one := backend{steady(time.Second), route.Capacity{Concurrency: slots}}
	at(t, plan{
		backends: []backend{one, one, one},
		queue:    route.QueueBounds{MaxWait: 2 * time.Hour},
		tenants:  map[sluice.TenantID]sluice.Policy{"a": {}, "b": {Weight: 2}},
	}, func(t *testing.T, s *site) {
		rnd := rand.New(rand.NewPCG(3, 4))
		ctx, cancel := context.WithCancel(s.ctx)
		c := s.crowd()
		for i := range 136 {
			a := ask{tenant: []sluice.TenantID{"a", "b"}[i%2], in: 100, out: 480, ctx: ctx}
			if i%4 == 0 {
				leave, stop := context.WithCancel(ctx)
				a.ctx = leave
				time.AfterFunc(time.Duration(rnd.IntN(1800))*time.Second+time.Duration(rnd.IntN(1000))*time.Millisecond, stop)
			}
			c.send(a)
		}
		looks := 0
		for start := time.Now(); time.Since(start) < 30*time.Minute; time.Sleep(time.Duration(1+rnd.IntN(10_000)) * time.Millisecond) {
			synctest.Wait()
			looks++
			st := s.status()
			sum := 0
			for _, b := range st.Pools[0].Backends {
				load := s.provider.Load(b.Backend)
				if own := load.Running + load.Waiting; int(b.Running) != own || own != slots {
					t.Fatalf("after %v %s runs %d by the gateway's gauge, %d by its own count, of %d", time.Since(start), b.Backend, b.Running, own, slots)
				}
				sum += int(b.Running)
			}
			if st.Running != sum || st.Open != sum+st.Pools[0].Waiting || st.Pools[0].Waiting == 0 {
				t.Fatalf("after %v %d run and %d are open; the backends run %d and %d wait", time.Since(start), st.Running, st.Open, sum, st.Pools[0].Waiting)
			}
		}
		done, told := 0, 0
		cancel()
		for _, gs := range c.all() {
			for _, g := range gs {
				if g.err == nil && g.status == 200 {
					done++
					if g.told && g.tokens == 480 {
						told++
					}
				}
			}
		}
		t.Logf("%d looks, %d streams ended whole", looks, done)
		if done < 60 || told != done {
			t.Errorf("%d streams ended whole, %d of them were told how long they waited and what they used", done, told)
		}
	})
}

// cL10: a budget counts a request in the month in which it was reserved. A stream
// that is in flight when January ends leaves February's budget whole, before and
// after it settles; the same stream within a month is charged to it. Nothing resets
// the counter.
func TestCase_cL10(t *testing.T) {
	month := time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC) // a bubble's time begins with 2000
	for _, tt := range []struct {
		name    string
		starts  time.Time
		crosses bool
	}{
		{"across", month.Add(-20 * time.Second), true},
		{"within", month.Add(time.Minute), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const in, out = 500, 60 // a minute at one token a second
			const cost = sluice.Nano(in*1000 + out*2000)
			policy := sluice.Policy{HardSpend: true}
			policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: int64(cost) * 3 / 2}}
			at(t, plan{
				backends: []backend{{steady(time.Second), route.Capacity{Concurrency: 4}}},
				sharing:  sched.Policy{},
				tenants:  map[sluice.TenantID]sluice.Policy{"a": policy},
			}, func(t *testing.T, s *site) {
				time.Sleep(time.Until(tt.starts))
				c := s.crowd()
				a := ask{tenant: "a", in: in, out: out}
				c.send(a)
				want := func(when string, used sluice.Nano) {
					t.Helper()
					synctest.Wait()
					n := s.counter("a", "spend_per_month")
					if n.Used.String() != used.String() || n.Held.String() != cost.String() {
						t.Errorf("%s: %v used and %v held of the month's budget, want %v and %v", when, n.Used, n.Held, used, cost)
					}
				}
				refused := func(when, reason string, used sluice.Nano) {
					t.Helper()
					g := s.do(a)
					now := time.Now().UTC()
					reset := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
					if g.status != 429 || g.reason != reason || g.limit.Used != int64(used) || !g.limit.Reset.Equal(reset) {
						t.Errorf("%s: %d %q, %d used of a budget that ends at %v; want %q, %v used, %v", when, g.status, g.reason, g.limit.Used, g.limit.Reset, reason, used, reset)
					}
				}
				time.Sleep(10 * time.Second)
				want("in flight", 0)
				refused("in flight", "budget_held", 0)
				time.Sleep(20 * time.Second) // the month is over, if it is to be
				if tt.crosses {
					c.send(a)
					time.Sleep(10 * time.Second)
					want("in flight after the month's end", 0)
					time.Sleep(30 * time.Second)
					if n := s.status().Running; n != 1 {
						t.Errorf("%d run", n)
					}
					want("when the first has settled", 0)
					refused("when the first has settled", "budget_held", 0)
				}
				s.served(c.all()["a"])
				refused("when all have settled", "budget_spent", cost)
				s.log.month(t, tt.starts, cost)
			})
		})
	}
}

// month judges that the ledger has a request at a moment, at a cost.
func (l *history) month(t *testing.T, at time.Time, cost sluice.Nano) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.entries {
		if e := &l.entries[i]; e.Attempt == 1 && e.At.Equal(at) && e.Cost == cost {
			return
		}
	}
	t.Errorf("the ledger has no request of %v at %v", at, cost)
}
