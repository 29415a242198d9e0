package engine_test

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// operated is an engine with a pool of two backends of one credential each, and a
// fallback pool of a third.
func operated(t *testing.T) *session {
	t.Helper()
	table := parseTable(t, "pool p\nbackend a pool=p conc=9\nbackend b pool=p conc=9\npool q\nbackend c pool=q conc=9\nmodel m pools=p fallback=q")
	for _, p := range table.Pools {
		for _, b := range p.Backends {
			b.Keys = []route.Key{{ID: "k"}, {ID: "own-" + string(b.ID)}}
		}
	}
	return &session{t: t, eng: engine.New(engine.Config{Table: table}), now: start}
}

func (s *session) order(o engine.Order, want bool) {
	s.t.Helper()
	if changed, err := s.eng.Operate(s.now, o); err != nil || changed != want {
		s.t.Errorf("%+v: changed %v, %v", o, changed, err)
	}
}

// A drained backend finishes what it runs and gets nothing more, over reloads too; with
// all of a pool drained requests go on elsewhere, and with all there are, they are
// refused without a time at which to come back.
func TestDrain(t *testing.T) {
	s := operated(t)
	first, _ := s.send(time.Minute)
	s.order(engine.Order{Backend: "a", Drain: true}, true)
	s.order(engine.Order{Backend: "a", Drain: true}, false)
	for range 5 {
		if g, _ := s.send(time.Minute); g.Backend.ID != "b" || g.Candidates[0].Left != "drained" {
			t.Errorf("got %s of %+v", g.Backend.ID, g.Candidates)
		}
	}
	s.answer(first, time.Second, time.Millisecond)
	plan, err := s.eng.Prepare(parseTable(t, "pool p\nbackend a pool=p conc=9\nbackend b pool=p conc=9\npool q\nbackend c pool=q conc=9\nmodel m pools=p fallback=q"))
	if err != nil {
		t.Fatal(err)
	}
	s.eng.Swap(s.now, plan)
	s.order(engine.Order{Backend: "b", Drain: true}, true)
	if g, _ := s.send(time.Minute); g.Backend == nil || g.Backend.ID != "c" || !g.Fallback {
		t.Errorf("with the pool drained: %+v", g)
	}
	var drained []sluice.BackendID
	for _, c := range s.eng.HealthChanges() {
		if c.Backend != "" && c.To == "drained" {
			drained = append(drained, c.Backend)
		}
	}
	if len(drained) != 2 {
		t.Errorf("told of %v", drained)
	}
	s.order(engine.Order{Backend: "c", Drain: true}, true)
	if _, v := s.send(time.Minute); v.Err == nil || v.Err.Reason != sluice.NoBackend || v.Err.RetryAfter != 0 {
		t.Errorf("with all drained: %+v", v.Err)
	}
	s.order(engine.Order{Backend: "a", Undrain: true}, true)
	if g, _ := s.send(time.Minute); g.Backend == nil || g.Backend.ID != "a" {
		t.Errorf("undrained: %+v", g)
	}
	if _, err := s.eng.Operate(s.now, engine.Order{Backend: "z", Drain: true}); sluice.AsError(err).Kind != sluice.KindNotFound {
		t.Errorf("a backend that is not there: %v", err)
	}
}

// An operator makes a credential usable where it is out: everywhere, or at one backend.
func TestEnableCredential(t *testing.T) {
	s := operated(t)
	out := func() (n int) {
		for _, c := range s.eng.Dump(s.now, engine.Zoom{}, 20).Credentials {
			if c.State != route.CredentialUsable {
				n++
			}
		}
		return n
	}
	s.eng.Observe(s.now, engine.Signal{Backend: "a", Key: "k", Refused: true, Everywhere: true})
	s.eng.Observe(s.now, engine.Signal{Backend: "a", Key: "own-a", Refused: true})
	s.eng.Observe(s.now, engine.Signal{Backend: "b", Key: "own-b", Spent: true})
	if out() != 3 {
		t.Fatalf("%d are out", out())
	}
	s.order(engine.Order{Enable: "k", Backend: "b"}, false) // it is out everywhere
	for i, o := range []engine.Order{{Enable: "k"}, {Enable: "own-a", Backend: "a"}, {Enable: "own-b"}} {
		s.order(o, true)
		if out() != 2-i {
			t.Errorf("after %+v %d are out", o, out())
		}
		s.order(o, false)
	}
	for _, o := range []engine.Order{{Enable: "z"}, {Enable: "own-a", Backend: "b"}} {
		if _, err := s.eng.Operate(s.now, o); sluice.AsError(err).Kind != sluice.KindNotFound {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
