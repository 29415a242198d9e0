package engine_test

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// advance lets time pass and returns what came of a request.
func (s *short) advance(d time.Duration, id sluice.RequestID) (found engine.Grant) {
	s.now = s.now.Add(d)
	for _, g := range s.eng.Advance(s.now) {
		if g.ID == id {
			found = g
		}
	}
	return found
}

// Batch that came while the pool was on the ground, and then had to wait for its ladder,
// says so however it ends.
func TestLadderIsFeltByWhatWaitsForIt(t *testing.T) {
	for name, end := range map[string]func(s *short, id sluice.RequestID) (*engine.Felt, ladder.Tier){
		"its deadline passes": func(s *short, id sluice.RequestID) (*engine.Felt, ladder.Tier) {
			g := s.advance(time.Minute, id)
			if g.Err == nil || g.Err.Reason != sluice.QueueTimeout || g.Err.Hint == "" {
				t.Errorf("it ended with %v", g.Err)
			}
			return g.Felt, g.Tier
		},
		"its client leaves": func(s *short, id sluice.RequestID) (*engine.Felt, ladder.Tier) {
			f := s.eng.Felt(id)
			s.eng.Cancel(s.now, id, sluice.ClientGone)
			if f == nil || s.eng.Felt(id) != nil {
				t.Fatalf("it felt %v, and then %v", f, s.eng.Felt(id))
			}
			return f, f.Tier
		},
		"it runs when the ladder is down": func(s *short, id sluice.RequestID) (*engine.Felt, ladder.Tier) {
			s.advance(time.Second, id)
			s.pin(ladder.None)
			s.settle("r1")
			g := s.advance(0, id)
			if g.Backend == nil {
				t.Errorf("it does not run: %v", g.Err)
			}
			return g.Felt, g.Tier
		},
	} {
		s := newShort(t, 1, nil)
		s.arrive(s.call(sluice.Interactive, nil))
		b := s.call(sluice.Batch, func(c *engine.Call) { c.MaxWait = time.Minute })
		if v, _ := s.arrive(b); v.Tier != ladder.None || v.Felt != nil {
			t.Fatalf("%s: on the ground: %+v", name, v)
		}
		s.pin(ladder.Defer)
		f, tier := end(s, b.ID)
		if f == nil || tier != ladder.Defer || f.Pool != "big" || !f.Did.Has(engine.EffectDefer) || f.Raised.Cause != ladder.CausePin || f.Raised.By != "ann" || f.Raised.Reason != "drill" || f.Since.IsZero() {
			t.Errorf("%s: it felt %+v, tier %v", name, f, tier)
		}
	}
}

// What did not wait for the ladder says nothing of it.
func TestLadderIsNotFeltByOthers(t *testing.T) {
	s := newShort(t, 1, func(t *route.Table) {
		t.Pools["big"].Sharing.Contracts = []sched.Contract{{Tenant: "promised", Slots: 1}}
	})
	s.arrive(s.call(sluice.Interactive, func(c *engine.Call) { c.Principal.Tenant = "promised" }))
	promised := s.call(sluice.Batch, func(c *engine.Call) { c.Principal.Tenant = "promised" })
	s.arrive(promised)
	standard := s.call(sluice.Standard, nil)
	s.arrive(standard)
	s.pin(ladder.Defer)
	for _, c := range []engine.Call{promised, standard} {
		if f := s.eng.Felt(c.ID); f != nil {
			t.Errorf("%s of %s felt %+v", c.Class, c.Principal.Tenant, f)
		}
	}
	s.pin(ladder.None)
	s.advance(time.Second, "")
	late := s.call(sluice.Batch, nil)
	s.arrive(late)
	if f := s.eng.Felt(late.ID); f != nil {
		t.Errorf("what came afterwards felt %+v", f)
	}
}

// Every refusal of a pool that stands on a tier says so, whatever it is for; and an answer
// is counted as bounded when it is to be given.
func TestLadderIsFeltByWhatIsRefused(t *testing.T) {
	s := newShort(t, 1, func(t *route.Table) { t.Pools["big"].Queue.Requests = 1 })
	s.pin(ladder.Defer)
	clamped := func() int64 { return s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder.Counts.Clamped }
	first := s.call(sluice.Standard, nil)
	s.arrive(first)
	v, _ := s.arrive(s.call(sluice.Standard, nil))
	if v.Err != nil || v.Tier != ladder.Defer || !v.Felt.Did.Has(engine.EffectClamp) || clamped() != 1 {
		t.Errorf("it waits: %+v, %d bounded", v, clamped())
	}
	for class, reason := range map[sluice.Class]sluice.Reason{sluice.Batch: sluice.QueueFull, sluice.Standard: sluice.QueueFull} {
		if v, _ := s.arrive(s.call(class, nil)); v.Err == nil || v.Err.Reason != reason || v.Tier != ladder.Defer || v.Felt == nil {
			t.Errorf("%s: %+v", class, v)
		}
	}
	if v, _ := s.arrive(s.call(sluice.Standard, func(c *engine.Call) { c.Free = true })); v.Tier != ladder.Defer {
		t.Errorf("of what counts tokens: %+v", v)
	}
	if clamped() != 1 {
		t.Errorf("%d answers bounded, and one has begun", clamped())
	}
	s.settle(first.ID)
	if s.advance(0, ""); clamped() != 2 {
		t.Errorf("%d answers bounded, and two have begun", clamped())
	}
}

// What is too long for its tier is kept out where it would wait, and taken where it has room
// at once: a pool of which all prompts are long does not stand idle. A pin keeps all out.
func TestLadderTakesLongInputsThatNobodyWaitsFor(t *testing.T) {
	long := func(c *engine.Call) { c.Work.Input, c.Work.InputBound, c.MaxWait = 50_000, 50_000, time.Hour }
	s := newShort(t, 1, nil)
	first := s.call(sluice.Interactive, long)
	s.arrive(first)
	s.arrive(s.call(sluice.Interactive, long))
	tier := func() ladder.Tier { return s.eng.Dump(s.now, engine.Zoom{}, 9).Pools[0].Ladder.Acting.Tier() }
	for tier() < ladder.Context {
		s.advance(250*time.Millisecond, "")
	}
	v, _ := s.arrive(s.call(sluice.Interactive, long))
	s.refused(v, "no input above 32768 tokens")
	s.settle(first.ID)
	s.advance(0, "")
	s.settle("r2")
	v, g := s.arrive(s.call(sluice.Interactive, long))
	if s.taken(v, "big"); g.Backend == nil || v.Tier < ladder.Context {
		t.Errorf("with the pool idle on tier %v: %+v", v.Tier, g)
	}
	s.settle(lastOf(s))
	s.pin(ladder.Context)
	v, _ = s.arrive(s.call(sluice.Interactive, long))
	s.refused(v, "no input above 32768 tokens")
}

// lastOf is the id of the request that came last.
func lastOf(s *short) sluice.RequestID { return sluice.RequestID(fmt.Sprint("r", s.n)) }
