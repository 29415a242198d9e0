package engine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
)

const (
	decisionKeys    = 100_000
	decisionWaiting = 100_000
)

// backlog is an engine with a queue: seven scopes of six limits each, four backends, keys
// uniform over so many. As in the gateway, who asks is known
// before the engine is asked, and a call is made when it comes.
type backlog struct {
	e       *engine.Engine
	now     time.Time
	call    engine.Call // the next, as far as all are alike
	callers []principal // one for each key
	drawn   int         // of them, every one once and then any
	coming  [64]principal
	ids     []sluice.RequestID
	next    int
	running []place
	head    int
	chance  *rand.Rand
}

// place is a grant as its owner keeps it.
type place struct {
	id     sluice.RequestID
	handle engine.Handle
}

// principal is what calls differ in, beside their work.
type principal struct {
	key     sluice.KeyID
	user    sluice.UserID
	project sluice.ProjectID
	tenant  sluice.TenantID
}

func newBacklog(tb testing.TB, tenants, keys, waiting int) *backlog {
	e, calls := busyEngine(keys)
	b := &backlog{e: e, now: time.Now(), call: calls[0], callers: make([]principal, len(calls)), chance: rand.New(rand.NewPCG(1, 2))}
	policy := *calls[0].Principal.Policy
	policy.Limits[sluice.ScopeUser] = policy.Limits[sluice.ScopeKey]
	b.call.Principal.Policy = &policy
	b.call.MaxWait = 24 * time.Hour
	names := make([]sluice.TenantID, tenants)
	for i := range names {
		names[i] = sluice.TenantID(fmt.Sprint("t", i))
	}
	for i := range calls {
		p := &calls[i].Principal
		b.callers[i] = principal{key: p.Key, user: sluice.UserID(fmt.Sprint("u", i/tenants)), project: p.Project, tenant: names[i%tenants]}
	}
	b.ids = make([]sluice.RequestID, 10*waiting)
	for i := range b.ids {
		b.ids[i] = sluice.RequestID(fmt.Sprint("d", i))
	}
	for range waiting + 4*64 { // which is what the backends run
		b.arrive(tb)
		for _, g := range b.e.Advance(b.now) {
			b.running = append(b.running, place{g.ID, g.Handle})
		}
	}
	return b
}

// caller is who asks next.
func (b *backlog) caller() *principal {
	at := b.drawn % len(b.coming)
	if at == 0 {
		for i := range b.coming {
			k := b.drawn + i
			if k >= len(b.callers) {
				k = b.chance.IntN(len(b.callers))
			}
			b.coming[i] = b.callers[k]
		}
	}
	b.drawn++
	return &b.coming[at]
}

func (b *backlog) arrive(tb testing.TB) {
	who, c := b.caller(), &b.call
	p := &c.Principal
	p.Key, p.User, p.Project, p.Tenant = who.key, who.user, who.project, who.tenant
	c.Work = sluice.Work{Input: sluice.Tokens(100 + b.chance.IntN(8000)), OutputBound: 4096}
	c.Work.Output = sluice.Tokens(50 + b.chance.IntN(500))
	c.Work.OutputHold = 2 * c.Work.Output
	c.ID = b.ids[b.next%len(b.ids)]
	b.next++
	if v := b.e.Arrive(b.now, *c); v.Err != nil {
		tb.Fatal(v.Err)
	}
}

// decide is one operation: a request arrives, another ends, and the place that it
// leaves is given away.
func (b *backlog) decide(tb testing.TB) {
	b.now = b.now.Add(time.Microsecond)
	b.arrive(tb)
	at := b.head % len(b.running)
	b.head++
	ends := &b.running[at]
	usage := sluice.Usage{Input: 900, Output: 100, Source: sluice.UsageReported}
	if err := b.e.Settle(b.now, ends.id, engine.Actual{Handle: ends.handle, Usage: usage, Cost: 1_900_000}); err != nil {
		tb.Fatal(err)
	}
	grants := b.e.Advance(b.now)
	if len(grants) != 1 || grants[0].Err != nil {
		tb.Fatalf("%d grants", len(grants))
	}
	*ends = place{grants[0].ID, grants[0].Handle}
}

// BenchmarkDecision is Arrive + Advance + Settle while a hundred thousand wait.
func BenchmarkDecision(b *testing.B) {
	for _, tenants := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			w := newBacklog(b, tenants, decisionKeys, decisionWaiting)
			for range 20_000 {
				w.decide(b)
			}
			b.ReportAllocs()
			for b.Loop() {
				w.decide(b)
			}
		})
	}
}

// BenchmarkEngineParallel is whole requests from as many goroutines as there are
// processors, through the one mutex that guards the engine in the gateway.
func BenchmarkEngineParallel(b *testing.B) {
	e, calls := busyEngine(decisionKeys)
	var mu sync.Mutex
	var workers atomic.Int64
	now := start
	b.RunParallel(func(pb *testing.PB) {
		first, at := int(workers.Add(1))%16, 0 // keys of its own
		for pb.Next() {
			at = (at + 797) % (len(calls) / 16)
			c := &calls[first+16*at]
			mu.Lock()
			v := e.Arrive(now, *c)
			granted := e.Advance(now)
			if v.Err != nil || len(granted) != 1 {
				mu.Unlock()
				b.Errorf("%v, %d grants", v.Err, len(granted))
				return
			}
			handle := granted[0].Handle
			mu.Unlock()
			mu.Lock()
			err := e.Settle(now, c.ID, engine.Actual{Handle: handle, Usage: sluice.Usage{Input: 900, Output: 100}, Cost: 1_900_000})
			e.Advance(now)
			mu.Unlock()
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
