package engine_test

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// copying is an engine and what a copy of model m is asked of it.
type copying struct {
	t   *testing.T
	eng *engine.Engine
	now time.Time
	n   int
}

func newCopying(t *testing.T, table *route.Table) *copying {
	return &copying{t: t, eng: engine.New(engine.Config{Table: table}), now: start}
}

func (c *copying) copy(pool sluice.PoolID) (engine.Grant, route.Skip) {
	c.n++
	g, skip := c.eng.Copy(c.now, engine.Call{
		ID: sluice.RequestID(fmt.Sprint("s", c.n)), Dialect: "openai", Model: "m", Shadow: &route.Shadow{Pool: pool},
		Principal: sluice.Principal{Tenant: "t", Policy: &sluice.Policy{HardSpend: true}},
		Work:      sluice.Work{Input: 10, InputBound: 10, OutputBound: 100, OutputHold: 10},
	})
	c.eng.Advance(c.now)
	return g, skip
}

// arrive lets a request of a class arrive; it reports whether it runs at once.
func (c *copying) arrive(class sluice.Class) (id sluice.RequestID, runs bool) {
	c.n++
	id = sluice.RequestID(fmt.Sprint("r", c.n))
	v := c.eng.Arrive(c.now, engine.Call{
		ID: id, Dialect: "openai", Model: "m", Class: class, MaxWait: -1, Principal: sluice.Principal{Tenant: "t", Project: "p"},
		Work: sluice.Work{Input: 10, InputBound: 10, OutputBound: 100, OutputHold: 10},
	})
	if v.Err != nil {
		c.t.Fatal(v.Err)
	}
	for _, g := range c.eng.Advance(c.now) {
		runs = runs || g.ID == id && g.Err == nil
	}
	return id, runs
}

func (c *copying) want(pool sluice.PoolID, want route.Skip) {
	c.t.Helper()
	if _, skip := c.copy(pool); skip != want {
		c.t.Errorf("a copy to %s: got %q, want %q", pool, skip, want)
	}
}

const oneOfFour = `pool a queue=20
backend a1 pool=a conc=4 price=1/1
model m pools=a`

// A copy gets nothing of what a class or a contract has for itself, even where it is
// idle and would be lent to a request.
func TestCopiesLeaveWhatIsKept(t *testing.T) {
	t.Run("headroom", func(t *testing.T) {
		table := parseTable(t, oneOfFour)
		table.Pools["a"].Sharing.Classes[sluice.Interactive] = sched.Class{Share: 500, Headroom: 500}
		c := newCopying(t, table)
		c.want("a", route.Sent)
		c.want("a", route.Sent)
		c.want("a", route.SkipReserved)
	})
	t.Run("contract", func(t *testing.T) {
		table := parseTable(t, oneOfFour)
		table.Pools["a"].Sharing.Classes[sluice.Interactive] = sched.Class{Share: 500}
		table.Pools["a"].Sharing.Contracts = []sched.Contract{{Tenant: "gold", Slots: 3, Lend: sched.LendAll}}
		c := newCopying(t, table)
		c.want("a", route.Sent)
		c.want("a", route.SkipReserved)
	})
	t.Run("ceiling", func(t *testing.T) {
		table := parseTable(t, oneOfFour)
		table.Pools["a"].Sharing.Classes[sluice.Interactive] = sched.Class{Share: 500}
		table.Pools["a"].Sharing.Classes[sluice.Batch] = sched.Class{Share: 100, Ceiling: 500}
		c := newCopying(t, table)
		c.want("a", route.Sent)
		c.want("a", route.Sent)
		c.want("a", route.SkipReserved)
		for range 2 { // what copies hold is not the class's
			if id, runs := c.arrive(sluice.Batch); !runs {
				t.Errorf("%s waits for copies", id)
			}
		}
	})
}

// A request takes the place of the copy that began last, and only one.
func TestRequestsTakeTheirPlacesFromCopies(t *testing.T) {
	table := parseTable(t, oneOfFour)
	table.Pools["a"].Sharing.Classes[sluice.Interactive] = sched.Class{Share: 500}
	c := newCopying(t, table)
	for range 4 {
		c.want("a", route.Sent)
	}
	c.want("a", "full")
	id, runs := c.arrive(sluice.Batch)
	if !runs {
		t.Errorf("%s waits for a copy", id)
	}
	for i, stop := range []bool{false, false, false, true} {
		copyID := sluice.RequestID(fmt.Sprint("s", i+1))
		if d := c.eng.Progress(c.now, copyID, sluice.Usage{}); d.Stop != stop {
			t.Errorf("%s is to stop: %v, want %v", copyID, d.Stop, stop)
		}
	}
	if err := c.eng.Settle(c.now, "s4", engine.Actual{Cost: 5}); err != nil {
		t.Errorf("a copy that lost its place is settled: %v", err)
	}
}

// In a pool that serves requests, what becomes of copies opens no breaker, and they are
// not its probe; in a pool of their own both is so.
func TestCopiesAndBreakers(t *testing.T) {
	table := parseTable(t, `pool a queue=20
backend a1 pool=a conc=9 price=1/1 domain=d
backend a2 pool=a conc=9 price=1/1 domain=d
pool next
backend n1 pool=next conc=9 price=1/1 domain=d
model m pools=a`)
	table.Breaker.Failures = 2
	c := newCopying(t, table)
	fail := func(pool sluice.PoolID) {
		for range 8 {
			g, skip := c.copy(pool)
			if skip != route.Sent {
				return
			}
			_ = c.eng.Settle(c.now, g.ID, engine.Actual{Reason: sluice.UpstreamError, Outcome: sluice.Failed})
			c.eng.Advance(c.now)
		}
	}
	health := func(id sluice.BackendID) string {
		for _, p := range c.eng.Dump(c.now, engine.Zoom{}, 10).Pools {
			for _, b := range p.Backends {
				if b.ID == id {
					return b.Health
				}
			}
		}
		return ""
	}
	fail("a")
	if a, b := health("a1"), health("a2"); a != "healthy" || b != "healthy" {
		t.Errorf("failing copies made backends that serve requests %s and %s", a, b)
	}
	fail("next")
	if h := health("n1"); h == "healthy" {
		t.Error("failing copies left the backend that serves them alone healthy")
	}
	if a := health("a1"); a != "healthy" {
		t.Errorf("they made a backend of the same domain %s", a)
	}
	c.want("next", "unhealthy")
	c.now = c.now.Add(time.Hour)
	c.want("next", route.Sent) // its probe
	c.want("next", "unhealthy")
}
