package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// line is a pool with one place, before which requests of two tenants wait.
type line struct {
	*testing.T
	eng   *engine.Engine
	now   time.Time
	class sluice.Class // of the next arrivals
	n     int
	ids   map[sluice.RequestID]string
	last  sluice.RequestID // that got the place
}

func newLine(t *testing.T, p sched.Policy, q route.QueueBounds) *line {
	return &line{T: t, eng: engine.New(engine.Config{Table: lineTable(p, q)}), now: start, ids: make(map[sluice.RequestID]string)}
}

func lineTable(p sched.Policy, q route.QueueBounds) *route.Table {
	return &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools: map[sluice.PoolID]*route.Pool{"a": {ID: "a", Sharing: p, Queue: q, Backends: []*route.Backend{
			{ID: "b", Dialect: "openai", Weight: 1, Price: &price.Row{}, Capacity: route.Capacity{Concurrency: 1}},
		}}},
	}
}

func (l *line) arrive(tenant sluice.TenantID, weight int64) {
	l.Helper()
	l.n++
	l.now = l.now.Add(time.Millisecond)
	id := sluice.RequestID(fmt.Sprint("r", l.n))
	l.ids[id] = fmt.Sprint(tenant, l.n)
	v := l.eng.Arrive(l.now, engine.Call{
		ID: id, Model: "m", Class: l.class, Dialect: "openai", MaxWait: time.Hour, Work: sluice.Work{Input: 100, OutputHold: 100, OutputBound: 100, Output: 100},
		Principal: sluice.Principal{Tenant: tenant, Project: sluice.DefaultProject, Key: "k", Policy: &sluice.Policy{Weight: weight}},
	})
	if v.Err != nil {
		l.Fatal(v.Err)
	}
}

func (l *line) swap(p sched.Policy, q route.QueueBounds) {
	l.Helper()
	plan, err := l.eng.Prepare(lineTable(p, q))
	if err != nil {
		l.Fatal(err)
	}
	l.eng.Swap(l.now, plan)
}

// served ends one request after the other, and tells in which order n of them
// got the place.
func (l *line) served(n int) string {
	l.Helper()
	var order []string
	for i := range n {
		grants := l.eng.Advance(l.now)
		if len(grants) != 1 || grants[0].Err != nil {
			l.Fatalf("after %v: %+v", order, grants)
		}
		l.last = grants[0].ID
		order = append(order, l.ids[l.last])
		l.now = l.now.Add(time.Second)
		if i == n-1 {
			break
		}
		l.settle(l.last)
	}
	return strings.Join(order, " ")
}

func (l *line) settle(id sluice.RequestID) {
	l.Helper()
	if err := l.eng.Settle(l.now, id, engine.Actual{Usage: sluice.Usage{Input: 100, Output: 100, Source: sluice.UsageReported}}); err != nil {
		l.Fatal(err)
	}
}

// A reload from one way of serving to the other loses nothing: what waits is
// served in the new way, though it is more than the new queue would admit, and
// what runs ends where it began.
func TestSwapOfThePolicyMovesWhatWaits(t *testing.T) {
	fair, naive := sched.Policy{}, sched.Policy{FIFO: true}
	l := newLine(t, fair, route.QueueBounds{})
	for range 4 {
		l.arrive("a", 1)
	}
	for range 3 {
		l.arrive("b", 1)
	}
	if got := l.served(1); got != "a1" {
		t.Errorf("got %s", got)
	}
	l.swap(naive, route.QueueBounds{Requests: 5})
	l.settle("r1")
	if got := l.served(3); got != "a2 a3 a4" {
		t.Errorf("in order of arrival: got %s", got)
	}
	l.arrive("c", 1)
	l.arrive("c", 1)
	l.swap(fair, route.QueueBounds{})
	l.arrive("a", 1)
	l.arrive("a", 1)
	l.settle("r4")
	if got := l.served(7); got != "b5 c8 a10 b6 c9 a11 b7" {
		t.Errorf("by share: got %s", got)
	}
	if v := l.eng.Dump(l.now, engine.Zoom{}, 1); v.Open != 1 || v.Running != 1 {
		t.Errorf("%d open, %d run", v.Open, v.Running)
	}
}

// Tenants share by the weight that their requests come with.
func TestTenantsShareByWeight(t *testing.T) {
	l := newLine(t, sched.Policy{}, route.QueueBounds{})
	for range 12 {
		l.arrive("a", 1)
		l.arrive("b", 3)
	}
	got := l.served(13)
	if a, b := strings.Count(got, "a"), strings.Count(got, "b"); b < 9 || a < 3 {
		t.Errorf("%d of a and %d of b, want 1 : 3: %s", a, b, got)
	}
}

// A share that a reload changes counts from then on for what waits already.
func TestSwapChangesShares(t *testing.T) {
	shares := func(standard, batch int64) (p sched.Policy) {
		p.Classes[sluice.Standard], p.Classes[sluice.Batch] = sched.Class{Share: standard}, sched.Class{Share: batch}
		return p
	}
	l := newLine(t, shares(800, 200), route.QueueBounds{})
	for range 50 {
		l.class = sluice.Standard
		l.arrive("s", 1)
		l.class = sluice.Batch
		l.arrive("b", 1)
	}
	for _, tt := range []struct{ standard, batch int64 }{{800, 200}, {200, 800}, {500, 500}} {
		l.swap(shares(tt.standard, tt.batch), route.QueueBounds{})
		got := l.served(20)
		if n := int64(strings.Count(got, "s")); n < tt.standard/50-1 || n > tt.standard/50+1 {
			t.Errorf("%d of 20 for a share of %d: %s", n, tt.standard, got)
		}
		l.settle(l.last)
	}
}
