package live

import (
	"strings"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/ladder"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// moves is what ladders did in a run.
type moves struct {
	mu  sync.Mutex
	all []engine.TierChange
}

func (m *moves) note(c engine.TierChange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, c)
}

// leaves is how often each rung was left downwards, and the highest that was reached.
func (m *moves) leaves() (n [ladder.NumRungs]int, top ladder.Rung) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.all {
		if top = max(top, c.To); c.To < c.From {
			n[c.From]++
		}
	}
	return n, top
}

// withLadder is the table of a plan with a ladder: its last backend is a smaller model.
func withLadder(p *plan, main *route.Pool) *route.Table {
	last := len(main.Backends) - 1
	small := &route.Pool{ID: "small", Backends: main.Backends[last:]}
	main.Backends, main.Ladder = main.Backends[:last], p.ladder
	return &route.Table{
		Version: "t1", Retries: p.retries, Pools: map[sluice.PoolID]*route.Pool{"main": main, "small": small},
		Models: map[sluice.ModelID]*route.Model{
			"m": {ID: "m", Pools: []sluice.PoolID{"main"}}, "mini": {ID: "mini", Pools: []sluice.PoolID{"small"}},
		},
	}
}

// ladder is that of the pool, as an operator sees it.
func (s *site) ladder() *admin.LadderStatus {
	s.t.Helper()
	for _, p := range s.status().Pools {
		if p.Pool == "main" {
			return p.Ladder
		}
	}
	s.t.Fatal("the status shows no ladder")
	return nil
}

// upTo is a ladder that climbs to a tier, quicker than by default.
func upTo(top ladder.Tier) ladder.Policy {
	p := ladder.Default(ladder.Act)
	p.Top, p.Rise, p.Hold, p.MaxHold, p.Output, p.Input = top, time.Second, 20*time.Second, 160*time.Second, 50, 1000
	return p
}

// ladderPlan is a pool of eight calls of 100 tokens a second, and half of that beside it.
func ladderPlan(l ladder.Policy) plan {
	return plan{
		backends: []backend{
			{steady(20 * time.Millisecond), route.Capacity{Concurrency: 16}},
			{steady(20 * time.Millisecond), route.Capacity{Concurrency: 64}},
		},
		queue: route.QueueBounds{MaxWait: 20 * time.Second},
		tenants: map[sluice.TenantID]sluice.Policy{
			"a": {}, "long": {}, "frugal": {Degrade: "mini"}, "team": {Class: sluice.Standard}, "night": {Class: sluice.Batch, MaxWait: int64(time.Hour)},
		},
		ladder: l,
	}
}

// answered is how many answers are so.
func answered(gs []got, f func(*got) bool) (n int) {
	for i := range gs {
		if f(&gs[i]) {
			n++
		}
	}
	return n
}

func tierOf(g *got) string { return g.header.Get("Sluice-Tier") }

// Four teeth of a saw, half a minute at four times what the pool serves and half a minute
// at a quarter: each tier is entered, is seen in header, ledger and status, does what it
// says, holds from tooth to tooth, and is left when the load has gone.
func TestLadderUnderASawtooth(t *testing.T) {
	long(t)
	const tooth, teeth = time.Minute, 4
	for _, c := range []struct {
		tier  ladder.Tier
		check func(t *testing.T, all map[sluice.TenantID][]got)
	}{
		{ladder.Clamp, func(t *testing.T, all map[sluice.TenantID][]got) {
			if n := answered(all["a"], func(g *got) bool {
				return g.status == 200 && g.tokens == 50 && g.reason == "degraded" && strings.Contains(g.header.Get("Sluice-Dropped"), "max_tokens=50")
			}); n < 100 {
				t.Errorf("%d answers were bounded", n)
			}
		}},
		{ladder.Context, func(t *testing.T, all map[sluice.TenantID][]got) {
			if n := answered(all["long"], func(g *got) bool {
				return g.status == 503 && g.reason == "degraded" && tierOf(g) == "2" && g.header.Get("Retry-After") != ""
			}); n < 20 {
				t.Errorf("%d long inputs were refused", n)
			}
		}},
		{ladder.Defer, func(t *testing.T, all map[sluice.TenantID][]got) {
			if n := answered(all["night"], func(g *got) bool { return g.status == 200 }); n != len(all["night"]) {
				t.Errorf("of %d batch calls %d were served", len(all["night"]), n)
			}
			if wait := quantile(all["night"], 900, waited); wait < time.Minute {
				t.Errorf("batch waited %v", wait)
			}
		}},
		{ladder.Smaller, func(t *testing.T, all map[sluice.TenantID][]got) {
			if n := answered(all["frugal"], func(g *got) bool {
				return g.header.Get("Sluice-Backend") == "b1" && g.reason == "degraded" && tierOf(g) == "4"
			}); n < 20 {
				t.Errorf("%d requests of who consents went to the smaller model", n)
			}
			if n := answered(all["a"], func(g *got) bool { return g.header.Get("Sluice-Backend") == "b1" }); n > 0 {
				t.Errorf("%d requests of who does not consent did", n)
			}
		}},
		{ladder.Shed, func(t *testing.T, all map[sluice.TenantID][]got) {
			if n := answered(all["night"], func(g *got) bool { return g.status == 503 && g.reason == "degraded" && g.took < 5*time.Millisecond }); n < 10 {
				t.Errorf("%d batch calls were shed", n)
			}
		}},
	} {
		t.Run(c.tier.String(), func(t *testing.T) {
			t.Parallel()
			policy := upTo(c.tier)
			at(t, ladderPlan(policy), func(t *testing.T, s *site) {
				crowd, seen := s.crowd(), 0
				for _, a := range []struct {
					tenant    sluice.TenantID
					in        int
					busy, low time.Duration
				}{
					{"a", 50, time.Second / 24, time.Second},
					{"long", 2000, time.Second, 5 * time.Second},
					{"frugal", 50, time.Second / 4, 4 * time.Second},
					{"team", 50, time.Second / 4, 4 * time.Second},
					{"night", 50, 2 * time.Second, 10 * time.Second},
				} {
					crowd.every(teeth*tooth, func(int) (ask, time.Duration) {
						pause := a.low
						if s.log.now()%tooth < tooth/2 {
							pause = a.busy
						}
						return ask{tenant: a.tenant, in: a.in, out: 100}, pause
					})
				}
				for s.log.now() < teeth*tooth {
					time.Sleep(5 * time.Second)
					if s.ladder().Tier == int(c.tier) {
						seen++
					}
				}
				time.Sleep(time.Duration(ladder.NumRungs) * policy.MaxHold)
				if l := s.ladder(); l.Tier != 0 || l.Stands != 0 {
					t.Errorf("long after the load it stands on %d", l.Stands)
				}
				all := crowd.all()
				c.check(t, all)
				leaves, top := s.moves.leaves()
				if top.Tier() != c.tier || seen < 10 {
					t.Errorf("it came to %v, and the status showed it %d times", top, seen)
				}
				for rung, n := range leaves {
					if n >= teeth { // it would follow the saw
						t.Errorf("rung %d was left %d times in %d teeth", rung, n, teeth)
					}
				}
				s.log.mu.Lock()
				defer s.log.mu.Unlock()
				entries := 0
				for i := range s.log.entries {
					if s.log.entries[i].Tier == c.tier {
						entries++
					}
				}
				if entries == 0 {
					t.Error("the ledger has no entry of the tier")
				}
				t.Logf("came to %v, left %v, seen %d times, %d entries", top, leaves, seen, entries)
			})
		})
	}
}

// O1: for three minutes three times what the pool serves: interactive three quarters of
// it, the rest standard and batch. Interactive keeps its target, batch is shed before
// standard, what is shed is told at once and costs nothing, and all of it comes back.
func TestFault_O1_ThreeTimesTheCapacity(t *testing.T) {
	long(t)
	const length, target = 3 * time.Minute, 3 * time.Second
	policy := upTo(ladder.Shed)
	policy.Output = 100
	p := ladderPlan(policy)
	p.sharing.Classes = [sluice.NumClasses]sched.Class{{Share: 800, Headroom: 100}, {Share: 150}, {Share: 50}}
	at(t, p, func(t *testing.T, s *site) {
		c := s.crowd()
		for tenant, rate := range map[sluice.TenantID]time.Duration{"a": 6, "team": 10, "night": 8} {
			c.every(length, func(int) (ask, time.Duration) {
				return ask{tenant: tenant, in: 50, out: 100}, time.Second / rate
			})
		}
		time.Sleep(length + time.Duration(ladder.NumRungs)*policy.MaxHold)
		if l := s.ladder(); l.Tier != 0 {
			t.Errorf("long after it stands on %d", l.Tier)
		}
		all := c.all()
		late := between(all["a"], 0, length)
		p99 := quantile(late, 990, func(g got) time.Duration { return g.first })
		if n := answered(late, func(g *got) bool { return g.status == 200 }); n*100 < len(late)*99 || p99 > target {
			t.Errorf("of %d interactive calls %d were served, TTFT p99 %v", len(late), n, p99)
		}
		shed := func(tenant sluice.TenantID) (n int, first time.Duration) {
			first = length
			for _, g := range all[tenant] {
				if g.status != 503 || g.reason != "degraded" || tierOf(&g) != "5" {
					continue
				}
				if n, first = n+1, min(first, g.at); g.took > 5*time.Millisecond || g.header.Get("Retry-After") == "" {
					t.Errorf("%s was shed after %v, %v", tenant, g.took, g.header)
				}
			}
			return n, first
		}
		batch, at1 := shed("night")
		standard, at2 := shed("team")
		if batch == 0 || standard > 0 && at2 < at1 {
			t.Errorf("%d batch calls were shed from %v on, %d standard from %v on", batch, at1, standard, at2)
		}
		leaves, top := s.moves.leaves()
		for rung, n := range leaves {
			if n > 4 {
				t.Errorf("rung %d was left %d times", rung, n)
			}
		}
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		for i := range s.log.entries {
			if e := &s.log.entries[i]; e.Reason == sluice.Degraded && e.Outcome == sluice.Rejected && (e.Cost != 0 || e.Attempt != 0) {
				t.Fatalf("what was shed cost %v: %+v", e.Cost, e)
			}
		}
		t.Logf("TTFT p99 %v, %d batch and %d standard shed, came to %v, left %v", p99, batch, standard, top, leaves)
	})
}

// O3: prompts of 100,000 tokens come faster than they can be read. Short ones beside them
// do not wait behind them, what is read at a time stays within the bound, and the ladder
// refuses the flood.
func TestFault_O3_LongPromptFlood(t *testing.T) {
	long(t)
	const length = 2 * time.Minute
	const prefill = 120_000
	policy := upTo(ladder.Shed)
	policy.Input = 32_000
	p := ladderPlan(policy)
	p.backends[0] = backend{fleet.Llama8BOnH100(), route.Capacity{Concurrency: 32, KVTokens: 443_000, PrefillTokens: prefill}}
	at(t, p, func(t *testing.T, s *site) {
		c := s.crowd()
		c.every(length, func(int) (ask, time.Duration) {
			return ask{tenant: "long", in: 100_000, out: 20, wait: 10 * time.Second}, time.Second
		})
		c.every(length, func(int) (ask, time.Duration) {
			return ask{tenant: "a", in: 150, out: 30}, time.Second / 4
		})
		for s.log.now() < length {
			time.Sleep(time.Second)
			for _, pool := range s.status().Pools {
				if pool.Pool == "main" && pool.Backends[0].PrefillTokens > prefill {
					t.Errorf("%d tokens are being read, the bound is %d", pool.Backends[0].PrefillTokens, prefill)
				}
			}
		}
		time.Sleep(time.Duration(ladder.NumRungs) * policy.MaxHold)
		if l := s.ladder(); l.Tier != 0 {
			t.Errorf("long after it stands on %d", l.Tier)
		}
		all := c.all()
		short := all["a"]
		first := quantile(short, 990, func(g got) time.Duration { return g.first })
		if n := answered(short, func(g *got) bool { return g.status == 200 }); n*100 < len(short)*99 || first > 5*time.Second {
			t.Errorf("of %d short prompts %d were served, TTFT p99 %v", len(short), n, first)
		}
		refused := answered(all["long"], func(g *got) bool { return g.status == 503 && g.reason == "degraded" })
		if refused == 0 {
			t.Error("the flood was not refused by the ladder")
		}
		_, top := s.moves.leaves()
		t.Logf("TTFT p99 of short prompts %v; %d of %d long ones refused; came to %v", first, refused, len(all["long"]), top)
	})
}
