package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// short is a pool of slots with a ladder, beside one without that a second model has,
// and a larger one that the first falls back to.
type short struct {
	t   *testing.T
	eng *engine.Engine
	now time.Time
	n   int
}

func newShort(t *testing.T, slots int64, change func(*route.Table)) *short {
	t.Helper()
	row := &price.Row{Rates: price.Rates{Input: 1e9, Output: 1e9}}
	pool := func(id string, slots int64) *route.Pool {
		return &route.Pool{ID: sluice.PoolID(id), Backends: []*route.Backend{
			{ID: sluice.BackendID(id + "1"), Dialect: "openai", Weight: 1, Price: row, Capacity: route.Capacity{Concurrency: slots}},
		}}
	}
	table := &route.Table{
		Models: map[sluice.ModelID]*route.Model{
			"large": {ID: "large", Pools: []sluice.PoolID{"big"}},
			"mini":  {ID: "mini", Pools: []sluice.PoolID{"small"}},
		},
		Pools: map[sluice.PoolID]*route.Pool{"big": pool("big", slots), "small": pool("small", 100), "spare": pool("spare", 100)},
	}
	table.Pools["big"].Ladder = ladder.Default(ladder.Act)
	if change != nil {
		change(table)
	}
	return &short{t: t, eng: engine.New(engine.Config{Table: table}), now: start}
}

func (s *short) pin(tier ladder.Tier) {
	s.t.Helper()
	p := &ladder.Pin{Tier: tier, Author: "ann", Reason: "drill", Expires: s.now.Add(time.Hour)}
	if changed, err := s.eng.Operate(s.now, engine.Order{Pool: "big", Pin: p}); err != nil || !changed {
		s.t.Fatalf("pinned: %v, %v", changed, err)
	}
}

// call is a request of a class, whose tenant is named for it.
func (s *short) call(class sluice.Class, change func(*engine.Call)) engine.Call {
	s.n++
	c := engine.Call{
		ID: sluice.RequestID(fmt.Sprint("r", s.n)), Model: "large", Dialect: "openai", Class: class, MaxWait: time.Hour,
		Principal: sluice.Principal{Tenant: sluice.TenantID(class.String()), Project: "p", Key: "k", Policy: &sluice.Policy{Weight: 1}},
		Work:      sluice.Work{Input: 100, InputBound: 100, Output: 500, OutputHold: 2000, OutputBound: 4000},
	}
	if change != nil {
		change(&c)
	}
	return c
}

// arrive brings a request to the engine, and its place if it has one.
func (s *short) arrive(c engine.Call) (v engine.Verdict, g engine.Grant) {
	v = s.eng.Arrive(s.now, c)
	for _, got := range s.eng.Advance(s.now) {
		if got.ID == c.ID {
			g = got
		}
	}
	return v, g
}

func (s *short) settle(id sluice.RequestID) {
	s.t.Helper()
	if err := s.eng.Settle(s.now, id, engine.Actual{Usage: sluice.Usage{Input: 100, Output: 500}}); err != nil {
		s.t.Fatal(err)
	}
}

// refused wants a truthful refusal by the ladder.
func (s *short) refused(v engine.Verdict, words string) {
	s.t.Helper()
	switch e := v.Err; {
	case e == nil:
		s.t.Errorf("it was taken by %s, want a refusal: %s", v.Pool, words)
	case e.Kind != sluice.KindOverloaded || e.Reason != sluice.Degraded || e.RetryAfter <= 0 || !strings.Contains(e.Msg+" "+e.Hint, words):
		s.t.Errorf("refused with %v %v %v, want %q", e.Reason, e.RetryAfter, e, words)
	}
}

func (s *short) taken(v engine.Verdict, pool sluice.PoolID) {
	s.t.Helper()
	if v.Err != nil || v.Pool != pool {
		s.t.Errorf("got %q, %v; want a place in %s", v.Pool, v.Err, pool)
	}
}

func TestLadderClamps(t *testing.T) {
	s := newShort(t, 10, nil)
	if _, g := s.arrive(s.call(sluice.Interactive, nil)); g.Clamped || g.Tier != 0 || g.OutputBound != 4000 {
		t.Errorf("on the ground: %+v", g)
	}
	held := func(id string) int64 {
		return s.eng.Dump(s.now, engine.Zoom{Request: sluice.RequestID(id)}, 1).Requests[0].Holds[sluice.OutputTokens]
	}
	before := held("r1")
	s.pin(ladder.Clamp)
	_, g := s.arrive(s.call(sluice.Interactive, nil))
	if !g.Clamped || !g.Degraded || g.Tier != ladder.Clamp || g.OutputBound != ladder.DefaultOutput || held("r2") != int64(ladder.DefaultOutput) || before != 2000 {
		t.Errorf("on clamp: %+v; %d held, %d before", g, held("r2"), before)
	}
	if _, g := s.arrive(s.call(sluice.Interactive, func(c *engine.Call) { c.Choices = 3 })); g.OutputBound != 3*ladder.DefaultOutput {
		t.Errorf("of three answers: %d", g.OutputBound)
	}
	if _, g := s.arrive(s.call(sluice.Interactive, func(c *engine.Call) { c.Work.OutputBound, c.Work.OutputHold = 100, 100 })); g.Clamped || g.Tier != ladder.Clamp {
		t.Errorf("a short answer: %+v", g)
	}
	if _, g := s.arrive(s.call(sluice.Interactive, func(c *engine.Call) { c.Least = c.Work.OutputBound })); g.Clamped {
		t.Errorf("one that nothing makes shorter: %+v", g)
	}
	if c := s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder.Counts; c.Clamped != 2 || c.ClampedTokens != 4000-1024+4000-3072 {
		t.Errorf("counted %+v", c)
	}
}

func TestLadderCapsContext(t *testing.T) {
	long := func(c *engine.Call) { c.Work.Input, c.Work.InputBound = 50_000, 50_000 }
	s := newShort(t, 10, nil)
	s.pin(ladder.Context)
	v, _ := s.arrive(s.call(sluice.Interactive, long))
	s.refused(v, "no input above 32768 tokens")
	if v.Tier != ladder.Context {
		t.Errorf("on tier %v", v.Tier)
	}
	v, _ = s.arrive(s.call(sluice.Interactive, nil))
	s.taken(v, "big")

	for name, change := range map[string]func(*route.Table){
		"first pool": func(t *route.Table) { t.Models["large"].Pools = []sluice.PoolID{"big", "spare"} },
		"fallback":   func(t *route.Table) { t.Models["large"].Fallback = []sluice.PoolID{"spare"} },
	} {
		s := newShort(t, 10, change)
		s.pin(ladder.Context)
		v, g := s.arrive(s.call(sluice.Interactive, long))
		if s.taken(v, "spare"); g.Degraded || g.Tier != ladder.None {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// Batch waits, with its place and its deadline, while others go on; and then it goes on.
func TestLadderDefersBatch(t *testing.T) {
	s := newShort(t, 2, nil)
	s.pin(ladder.Defer)
	b := s.call(sluice.Batch, nil)
	v, g := s.arrive(b)
	if s.taken(v, "big"); g.ID != "" || v.Wait < ladder.DefaultHold {
		t.Errorf("it starts, or does not know how long it waits: %+v, %v", g, v.Wait)
	}
	if _, g := s.arrive(s.call(sluice.Standard, nil)); g.Backend == nil {
		t.Error("standard waits behind it")
	}
	lacks := s.eng.Dump(s.now, engine.Zoom{Request: b.ID}, 1).Requests[0].Lacks
	if len(lacks) != 1 || lacks[0].What != engine.LackLadder || lacks[0].Wait < time.Hour {
		t.Errorf("in its way: %+v", lacks)
	}
	impatient := s.call(sluice.Batch, func(c *engine.Call) { c.MaxWait = time.Minute })
	s.arrive(impatient)
	at := s.now.Add(time.Minute)
	if next, ok := s.eng.NextWake(); !ok || next.After(at) {
		t.Errorf("it wakes at %v", next)
	}
	s.now = at
	if gs := s.eng.Advance(at); len(gs) != 1 || gs[0].ID != impatient.ID || gs[0].Err.Reason != sluice.QueueTimeout || !strings.Contains(gs[0].Err.Msg, "lets batch wait") {
		t.Errorf("at its deadline: %+v", gs)
	}
	if _, err := s.eng.Operate(s.now, engine.Order{Pool: "big", Unpin: true}); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(5 * time.Second)
	if gs := s.eng.Advance(s.now); len(gs) != 0 {
		t.Errorf("it starts while the ladder stands: %+v", gs)
	}
	for range 8 {
		s.now = s.now.Add(ladder.DefaultHold)
		for _, g := range s.eng.Advance(s.now) {
			if g.ID == b.ID && g.Backend != nil {
				return
			}
		}
	}
	t.Error("it never starts")
}

// A contract's tenant is promised its place whatever the tier is.
func TestLadderKeepsContracts(t *testing.T) {
	s := newShort(t, 4, func(t *route.Table) {
		t.Pools["big"].Sharing.Contracts = []sched.Contract{{Tenant: "promised", Slots: 1}}
	})
	s.pin(ladder.Shed)
	for _, class := range []sluice.Class{sluice.Batch, sluice.Interactive} {
		c := s.call(class, func(c *engine.Call) { c.Principal.Tenant, c.Work.Input = "promised", 50_000 })
		v, g := s.arrive(c)
		if s.taken(v, "big"); g.Backend == nil {
			t.Errorf("%s waits", class)
		}
		if v, _ := s.arrive(s.call(class, func(c *engine.Call) { c.Principal.Tenant, c.Work.Input = "promised", 50_000 })); v.Err == nil {
			t.Errorf("%s: its overflow is taken too", class)
		}
		s.settle(c.ID)
	}
}

func TestLadderAsksForASmallerModel(t *testing.T) {
	consents := func(c *engine.Call) {
		c.Principal.Policy = &sluice.Policy{Weight: 1, Degrade: "mini"}
	}
	s := newShort(t, 1, nil)
	if v, g := s.arrive(s.call(sluice.Interactive, consents)); v.Smaller != "" || g.Backend == nil {
		t.Errorf("on the ground: %+v", v)
	}
	s.pin(ladder.Smaller)
	c := s.call(sluice.Interactive, consents)
	v, _ := s.arrive(c)
	if v.Smaller != "mini" || v.Err != nil || v.Tier != ladder.Smaller || s.eng.Open() != 1 {
		t.Fatalf("%+v, %d open", v, s.eng.Open())
	}
	c.Model, c.Whole = "mini", true
	v, g := s.arrive(c)
	if s.taken(v, "small"); g.Backend == nil || g.Backend.ID != "small1" {
		t.Errorf("%+v", g)
	}
	c = s.call(sluice.Interactive, consents)
	c.Whole = true
	v, _ = s.arrive(c)
	s.taken(v, "big")
	for name, change := range map[string]func(*engine.Call){
		"batch":          func(c *engine.Call) { c.Class = sluice.Batch },
		"a pin":          func(c *engine.Call) { c.Pin = &route.Pin{} },
		"an unknown one": func(c *engine.Call) { c.Principal.Policy = &sluice.Policy{Degrade: "nothing"} },
		"one not allowed": func(c *engine.Call) {
			c.Principal.Policy = &sluice.Policy{Degrade: "mini", Models: []sluice.ModelID{"large"}}
		},
	} {
		c := s.call(sluice.Interactive, consents)
		change(&c)
		if v, _ := s.arrive(c); v.Smaller != "" {
			t.Errorf("%s: it is to be served by %s", name, v.Smaller)
		}
	}
}

// Who does not consent and would wait is offered the asynchronous path; who would not
// is served.
func TestLadderOffersTheAsynchronousPath(t *testing.T) {
	s := newShort(t, 1, nil)
	run := s.call(sluice.Interactive, nil)
	s.arrive(run)
	s.now = s.now.Add(10 * time.Second)
	s.settle(run.ID) // a request takes ten seconds
	s.pin(ladder.Smaller)
	v, g := s.arrive(s.call(sluice.Interactive, nil))
	if s.taken(v, "big"); g.Backend == nil {
		t.Error("it waits")
	}
	v, _ = s.arrive(s.call(sluice.Interactive, nil))
	s.refused(v, "Prefer: respond-async")
	v, _ = s.arrive(s.call(sluice.Batch, nil))
	s.taken(v, "big")
}

// Batch is shed first, then standard, then what interactive has no share for.
func TestLadderShedsByClass(t *testing.T) {
	s := newShort(t, 4, nil)
	run := s.call(sluice.Interactive, nil)
	s.arrive(run)
	s.now = s.now.Add(10 * time.Second)
	s.settle(run.ID)
	for range 3 {
		s.arrive(s.call(sluice.Interactive, nil))
	}
	for range 9 { // what waits in excess makes it climb
		s.arrive(s.call(sluice.Interactive, nil))
	}
	seen := map[int]string{}
	for range 200 {
		s.now = s.now.Add(250 * time.Millisecond)
		s.eng.Advance(s.now)
		rung := int(s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder.Acting)
		if seen[rung] != "" {
			continue
		}
		seen[rung] = "shed:"
		for class := sluice.Batch; class < sluice.Class(sluice.NumClasses); class-- {
			c := s.call(class, func(c *engine.Call) { c.MaxWait = -1 })
			if v, _ := s.arrive(c); v.Err != nil && v.Err.Reason == sluice.Degraded && !strings.Contains(v.Err.Hint, "async") {
				seen[rung] += " " + class.String()
			}
			s.eng.Cancel(s.now, c.ID, sluice.ClientGone)
		}
	}
	for rung, want := range map[int]string{
		3: "shed:", int(ladder.ShedBatch): "shed: batch", int(ladder.ShedStandard): "shed: batch standard", int(ladder.ShedInteractive): "shed: batch standard interactive",
	} {
		if seen[rung] != want {
			t.Errorf("on rung %d: %q, want %q", rung, seen[rung], want)
		}
	}
}

// In shadow nothing changes, and what it would have done is counted.
func TestLadderInShadow(t *testing.T) {
	s := newShort(t, 1, func(t *route.Table) { t.Pools["big"].Ladder = ladder.Default(ladder.Watch) })
	for range 5 {
		s.arrive(s.call(sluice.Interactive, nil))
	}
	for range 200 {
		s.now = s.now.Add(250 * time.Millisecond)
		s.eng.Advance(s.now)
	}
	l := s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder
	if l.Acting != 0 || l.Rung != ladder.ShedInteractive {
		t.Fatalf("acting %d, on %d", l.Acting, l.Rung)
	}
	v, _ := s.arrive(s.call(sluice.Batch, nil))
	if s.taken(v, "big"); v.Tier != ladder.None {
		t.Errorf("on tier %v", v.Tier)
	}
	for i := range 5 {
		s.settle(sluice.RequestID(fmt.Sprint("r", i+1)))
		s.eng.Advance(s.now)
	}
	if n := s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder.Counts.Effects(); n["shed"] != 1 || n["clamp"] != 1 {
		t.Errorf("counted %v", n)
	}
	acts := 0
	for _, c := range s.eng.TierChanges() {
		if c.Acts {
			acts++
		}
	}
	if acts != 0 {
		t.Errorf("%d moves are felt", acts)
	}
}

// A caller's own limits, its impatience and batch do not move it, and neither does what
// it refuses itself.
func TestLadderHearsWhatItShould(t *testing.T) {
	s := newShort(t, 2, nil)
	narrow := &sluice.Policy{Weight: 1}
	narrow.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}}
	for range 30 {
		s.arrive(s.call(sluice.Interactive, func(c *engine.Call) { c.Principal.Policy = narrow }))
	}
	for range 400 {
		s.now = s.now.Add(250 * time.Millisecond)
		s.arrive(s.call(sluice.Standard, func(c *engine.Call) { c.MaxWait, c.Principal.Policy = 0, narrow }))
		s.arrive(s.call(sluice.Batch, func(c *engine.Call) { c.MaxWait = time.Second }))
	}
	if l := s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder; l.Rung != 0 {
		t.Errorf("it stands on %d, for %v", l.Rung, l.Cause)
	}
}

// A table may take the ladder away, or change it, while batch is set aside.
func TestLadderFollowsTheTable(t *testing.T) {
	s := newShort(t, 2, nil)
	s.pin(ladder.Defer)
	b := s.call(sluice.Batch, nil)
	s.arrive(b)
	swap := func(l ladder.Policy) []engine.Grant {
		table := &route.Table{
			Models: map[sluice.ModelID]*route.Model{"large": {ID: "large", Pools: []sluice.PoolID{"big"}}},
			Pools:  map[sluice.PoolID]*route.Pool{"big": {ID: "big", Ladder: l, Backends: []*route.Backend{{ID: "big1", Dialect: "openai", Weight: 1, Price: &price.Row{}, Capacity: route.Capacity{Concurrency: 2}}}}},
		}
		p, err := s.eng.Prepare(table)
		if err != nil {
			t.Fatal(err)
		}
		s.eng.Swap(s.now, p)
		return s.eng.Advance(s.now)
	}
	if gs := swap(ladder.Default(ladder.Act)); len(gs) != 0 {
		t.Errorf("a reload starts batch: %+v", gs)
	}
	if l := s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder; l.Pin == nil || l.Acting != ladder.Rung(ladder.Defer) || l.Deferred != 1 {
		t.Errorf("a reload takes the pin: %+v", l)
	}
	if gs := swap(ladder.Policy{}); len(gs) != 1 || gs[0].ID != b.ID {
		t.Errorf("without a ladder it does not start: %+v", gs)
	}
	if _, err := s.eng.Operate(s.now, engine.Order{Pool: "big", Unpin: true}); err == nil {
		t.Error("there is a pin without a ladder")
	}
	if _, err := s.eng.Operate(s.now, engine.Order{Pool: "none", Unpin: true}); err == nil {
		t.Error("there is no such pool")
	}
}
