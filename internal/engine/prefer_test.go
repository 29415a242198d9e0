package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// preferring is an engine whose model m has pools of one backend each, with slots and a
// price of output in dollars per million, and prefers something.
func preferring(by route.Prefer, slots int64, dollars ...int64) *engine.Engine {
	m := &route.Model{ID: "m", Prefer: by}
	table := &route.Table{Models: map[sluice.ModelID]*route.Model{"m": m}, Pools: map[sluice.PoolID]*route.Pool{}}
	for i, d := range dollars {
		id := fmt.Sprint(i)
		table.Pools[sluice.PoolID("p"+id)] = &route.Pool{ID: sluice.PoolID("p" + id), Backends: []*route.Backend{
			{ID: sluice.BackendID("b" + id), Dialect: "openai", Weight: 1, Price: outputAt(d), Capacity: route.Capacity{Concurrency: slots}},
		}}
		m.Pools = append(m.Pools, sluice.PoolID("p"+id))
	}
	return engine.New(engine.Config{Table: table})
}

// session sends requests to an engine, one after another.
type session struct {
	t   *testing.T
	eng *engine.Engine
	now time.Time
	n   int
}

// send arrives with a request and returns its grant, or what its wait is.
func (s *session) send(maxWait time.Duration) (engine.Grant, engine.Verdict) {
	s.t.Helper()
	s.n++
	v := s.eng.Arrive(s.now, engine.Call{
		ID: sluice.RequestID(fmt.Sprint("r", s.n)), Model: "m", Dialect: "openai", MaxWait: maxWait,
		Work: sluice.Work{Input: 10, InputBound: 10, Output: 100, OutputHold: 100, OutputBound: 100},
	})
	if g := s.eng.Advance(s.now); len(g) == 1 && g[0].Err == nil {
		return g[0], v
	}
	return engine.Grant{}, v
}

// answer ends an attempt after so long a wait for its first token and 100 tokens of so
// long each.
func (s *session) answer(g engine.Grant, first, token time.Duration) {
	s.now = s.now.Add(first)
	s.eng.Progress(s.now, g.ID, sluice.Usage{Output: 1})
	s.now = s.now.Add(99 * token)
	if err := s.eng.Settle(s.now, g.ID, engine.Actual{Usage: sluice.Usage{Input: 10, Output: 100, Source: sluice.UsageReported}, Outcome: sluice.Completed}); err != nil {
		s.t.Fatal(err)
	}
	s.eng.Advance(s.now)
}

// By latency the pool that is sooner by more than the band comes first, once something is
// known of both; one that is as soon within the band changes nothing, however the two
// take turns at being it; the grant tells what was seen.
func TestPreferLatency(t *testing.T) {
	s := &session{t: t, eng: preferring(route.PreferLatency, 9, 1, 1), now: start}
	speed := map[sluice.BackendID]time.Duration{"b0": 50 * time.Millisecond, "b1": 10 * time.Millisecond}
	var went []string
	for range 6 {
		g, _ := s.send(time.Minute)
		went = append(went, string(g.Backend.ID))
		s.answer(g, 10*speed[g.Backend.ID], speed[g.Backend.ID])
	}
	// Of b1 nothing is known until a failure of b0 makes it known.
	if want := []string{"b0", "b0", "b0", "b0", "b0", "b0"}; !slices.Equal(went, want) {
		t.Errorf("unknown is as good as the best, and comes after it: %v", went)
	}
	g, _ := s.send(time.Minute)
	s.eng.AttemptEnded(s.now, g.ID, engine.Result{Reason: sluice.UpstreamConnect})
	g = s.eng.Advance(s.now)[0]
	s.answer(g, 10*speed[g.Backend.ID], speed[g.Backend.ID])
	for range 3 {
		g, _ = s.send(time.Minute)
		if g.Backend.ID != "b1" || g.Prefer != route.PreferLatency || len(g.Preferred) != 2 || g.Preferred[0].Pool != "p1" || g.Preferred[0].Time >= g.Preferred[1].Time || !g.Preferred[1].Known {
			t.Fatalf("got %s by %+v", g.Backend.ID, g.Preferred)
		}
		s.answer(g, 100*time.Millisecond, 10*time.Millisecond)
	}
	for i := range 40 { // b1 becomes as slow as b0, more or less: the order of the table stays
		g, _ := s.send(time.Minute)
		slow := 50*time.Millisecond + time.Duration(i%3-1)*4*time.Millisecond
		if i > 25 && g.Backend.ID != "b0" {
			t.Errorf("request %d left for %s by %+v", i, g.Backend.ID, g.Preferred)
		}
		s.answer(g, 10*slow, slow)
	}
}

// By price the cheapest pool comes first, as long as its wait can be borne.
func TestPreferPrice(t *testing.T) {
	s := &session{t: t, eng: preferring(route.PreferPrice, 1, 9, 1, 4), now: start}
	g, _ := s.send(time.Minute)
	var order []sluice.PoolID
	for _, f := range g.Preferred {
		order = append(order, f.Pool)
	}
	if g.Backend.ID != "b1" || !slices.Equal(order, []sluice.PoolID{"p1", "p2", "p0"}) || g.Preferred[0].Price != 100*sluice.Dollar/1_000_000 {
		t.Errorf("got %s by %+v", g.Backend.ID, g.Preferred)
	}
	s.answer(g, time.Second, 10*time.Millisecond) // so that waits are known: two seconds
	s.send(time.Minute)
	if g, v := s.send(time.Minute); g.Backend != nil || v.Pool != "p1" {
		t.Errorf("with a wait that can be borne: %+v", v)
	}
	if g, v := s.send(time.Second); g.Backend == nil || g.Backend.ID != "b2" {
		t.Errorf("with one that cannot: %+v, waits %v in %s", g.Backend, v.Wait, v.Pool)
	}
}

// Within a pool a preference leaves out those that are worse than another which has
// room, with a word of its own and the figures.
func TestPreferenceWithinAPool(t *testing.T) {
	b := func(id sluice.BackendID, row *price.Row) *route.Backend {
		return &route.Backend{ID: id, Dialect: "openai", Weight: 1, Price: row, Capacity: route.Capacity{Concurrency: 2}}
	}
	eng := engine.New(engine.Config{Table: &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}, Prefer: route.PreferPrice}},
		Pools:  map[sluice.PoolID]*route.Pool{"p": {ID: "p", Backends: []*route.Backend{b("dear", outputAt(9)), b("cheap", outputAt(1)), b("too", outputAt(1))}}},
	}})
	s := &session{t: t, eng: eng, now: start}
	count := map[sluice.BackendID]int{}
	for i := range 6 {
		g, _ := s.send(time.Minute)
		count[g.Backend.ID]++
		dear := g.Candidates[0]
		if i < 4 && (dear.Left != "pricier" || dear.Price != 900*sluice.Dollar/1_000_000 || count["dear"] > 0) {
			t.Errorf("request %d went to %s, candidates %+v", i, g.Backend.ID, g.Candidates)
		}
	}
	if count["dear"] != 2 || count["cheap"] != 2 || count["too"] != 2 {
		t.Errorf("got %v: what is full is not preferred, and what is alike shares", count)
	}
}
