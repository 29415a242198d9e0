package engine_test

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// When a full gauge has room is a guess, said to be one, and never sooner than what
// was waited in vain.
func TestGaugeRefusalIsAnEstimate(t *testing.T) {
	r := newRig(t, outputAt(1), policy(false, sluice.ScopeKey, sluice.Limit{Dimension: sluice.Concurrency, Amount: 4}))
	if _, err := r.full(0); err.RetryAfter != 0 || !err.Expected {
		t.Errorf("nothing is known yet: %v, expected %v", err.RetryAfter, err.Expected)
	}
	for range 20 { // each takes 8 s
		g := r.mustCall(sluice.Work{Input: 1, Output: 1, OutputHold: 1, OutputBound: 1})
		r.now = r.now.Add(8 * time.Second)
		if err := r.settle(g, 1, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.full(0); err.RetryAfter < 1500*time.Millisecond || err.RetryAfter > 2500*time.Millisecond || !err.Expected {
		t.Errorf("one of four that take 8 s: %v, expected %v", err.RetryAfter, err.Expected)
	}
	for _, waited := range []time.Duration{time.Second, 20 * time.Second, time.Minute} {
		if _, err := r.full(waited); err.RetryAfter < waited || !err.Expected {
			t.Errorf("after %v: %v, expected %v", waited, err.RetryAfter, err.Expected)
		}
	}
}

// full fills the gauge and is refused by it after a wait; what fills it is settled
// at once.
func (r *rig) full(wait time.Duration) (sluice.RequestID, *sluice.Error) {
	r.Helper()
	was := r.now
	var grants []engine.Grant
	for range 4 {
		grants = append(grants, r.mustCall(sluice.Work{}))
	}
	defer func() {
		for _, g := range grants {
			r.eng.Cancel(was, g.ID, sluice.ClientGone)
		}
	}()
	r.n++
	id := sluice.RequestID(fmt.Sprint("r", r.n))
	v := r.eng.Arrive(r.now, engine.Call{
		ID: id, Model: "m", Dialect: "openai", MaxWait: wait,
		Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Policy: r.policy},
	})
	if v.Err != nil {
		return id, v.Err
	}
	for range 2 {
		for _, g := range r.eng.Advance(r.now) {
			if g.ID == id && g.Err != nil && g.Err.Reason == sluice.ConcurrencyLimited {
				return id, g.Err
			}
		}
		r.now = r.now.Add(wait)
	}
	r.Fatal("not refused")
	return id, nil
}

// A full queue says when those ahead will have gone, also before any has ended.
func TestFullQueueIsAnEstimate(t *testing.T) {
	b := &route.Backend{ID: "b", Dialect: "openai", Weight: 1, Price: &price.Row{}, Capacity: route.Capacity{Concurrency: 1}}
	eng := engine.New(engine.Config{Table: &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools:  map[sluice.PoolID]*route.Pool{"a": {ID: "a", Backends: []*route.Backend{b}, Queue: route.QueueBounds{Requests: 3}}},
	}})
	now, n := start, 0
	arrive := func() (sluice.RequestID, *sluice.Error) {
		n++
		id := sluice.RequestID(fmt.Sprint("r", n))
		v := eng.Arrive(now, engine.Call{ID: id, Model: "m", Dialect: "openai", MaxWait: -1})
		eng.Advance(now)
		return id, v.Err
	}
	first, _ := arrive()
	for range 3 {
		if _, err := arrive(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ pass, want time.Duration }{
		{0, time.Second},                   // nothing is known
		{7 * time.Second, 7 * time.Second}, // the oldest has waited for so long
	} {
		now = now.Add(tt.pass)
		if _, err := arrive(); err == nil || err.Reason != sluice.QueueFull || err.RetryAfter != tt.want || !err.Expected {
			t.Errorf("after %v: %v", tt.pass, err)
		}
	}
	if err := eng.Settle(now, first, engine.Actual{}); err != nil {
		t.Fatal(err)
	}
	eng.Advance(now)
	if _, err := arrive(); err != nil { // takes the place of the one that runs now
		t.Fatal(err)
	}
	if _, err := arrive(); err == nil || err.RetryAfter != 4*7*time.Second {
		t.Errorf("three ahead of it, each takes 7 s: %v", err)
	}
}

// A hold lasts longer than its backend may be silent.
func TestHoldOutlastsItsBackend(t *testing.T) {
	for _, tt := range []struct {
		streaming        bool
		longest, silence time.Duration
		want             time.Duration
	}{
		{false, 0, 0, engine.DefaultHoldTTL},
		{false, time.Minute, time.Hour, engine.DefaultHoldTTL},
		{false, time.Hour, 0, time.Hour + time.Minute},
		{true, 5 * time.Hour, time.Hour, time.Hour + time.Minute},
	} {
		b := &route.Backend{ID: "b", Dialect: "openai", Weight: 1, Price: &price.Row{}, Longest: tt.longest, Silence: tt.silence}
		eng := engine.New(engine.Config{Table: &route.Table{
			Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
			Pools:  map[sluice.PoolID]*route.Pool{"a": {ID: "a", Backends: []*route.Backend{b}}},
		}})
		eng.Arrive(start, engine.Call{ID: "r", Model: "m", Dialect: "openai", Streaming: tt.streaming})
		if eng.Advance(start); tt.streaming {
			eng.Progress(start, "r", sluice.Usage{})
		}
		if n := len(eng.Advance(start.Add(tt.want - 1))); n != 0 {
			t.Errorf("%+v: expired early", tt)
		}
		if g := eng.Advance(start.Add(tt.want)); len(g) != 1 || g[0].Err.Reason != sluice.HoldExpired {
			t.Errorf("%+v: has not expired: %+v", tt, g)
		}
	}
}
