package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/engine"
)

// inRun asks for a place for a step of a run.
func (r *rig) inRun(w sluice.Work, limits ...sluice.Limit) (engine.Grant, *sluice.Error) {
	r.n++
	c := engine.Call{
		ID: sluice.RequestID(fmt.Sprint("r", r.n)), Model: "m", Dialect: "openai", Work: w, RunLimits: limits,
		Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Run: "job", Policy: r.policy},
	}
	if v := r.eng.Arrive(r.now, c); v.Err != nil {
		return engine.Grant{}, v.Err
	}
	for _, g := range r.eng.Advance(r.now) {
		if g.ID == c.ID {
			return g, g.Err
		}
	}
	r.Fatalf("%s: neither granted nor refused", c.ID)
	return engine.Grant{}, nil
}

func ofRun(d sluice.Dimension, n int64) sluice.Limit {
	return sluice.Limit{Dimension: d, Window: sluice.PerRun, Amount: n}
}

// A run holds all the output that a request of it may have, and lowers that to what it
// has left: so no request takes more, nor several of them together.
func TestRunBoundsOutput(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit sluice.Limit
		bound sluice.Tokens // of the first request, of 100 input tokens
		next  sluice.Tokens // of one beside it; 0 if it is refused
		then  sluice.Tokens // of one after the first, which took half of its bound
	}{
		{"output", ofRun(sluice.OutputTokens, 50), 50, 0, 25},
		{"output, more than one needs", ofRun(sluice.OutputTokens, 1030), 1000, 30, 530},
		{"output, more than two need", ofRun(sluice.OutputTokens, 5000), 1000, 1000, 1000},
		{"all", ofRun(sluice.AllTokens, 180), 80, 0, 0},
		{"all, more than one needs", ofRun(sluice.AllTokens, 1250), 1000, 50, 550},
		{"input", ofRun(sluice.InputTokens, 500), 1000, 1000, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := sluice.Work{Input: 100, InputBound: 400, OutputBound: 1000, OutputHold: 20, Output: 10}
			check := func(r *rig, what string, want sluice.Tokens) engine.Grant {
				t.Helper()
				g, err := r.inRun(w)
				switch {
				case want == 0 && (err == nil || err.Kind != sluice.KindBudgetExhausted):
					t.Errorf("%s: got %+v, %v, want it to be refused", what, g, err)
				case want > 0 && (err != nil || g.OutputBound != want || g.Clamped != (want < 1000)):
					t.Errorf("%s: got %d, clamped %v, %v, want %d", what, g.OutputBound, g.Clamped, err, want)
				case want > 0 && g.Whole != (tt.limit.Dimension != sluice.InputTokens):
					t.Errorf("%s: the backend is to be told: %v", what, g.Whole)
				}
				return g
			}
			r := newRig(t, outputAt(1), policy(false, sluice.ScopeRun, tt.limit))
			first := check(r, "first", tt.bound)
			next := check(r, "beside it", tt.next)
			if next.Backend != nil {
				r.eng.Cancel(r.now, next.ID, sluice.ClientGone)
			}
			if err := r.settle(first, 100, tt.bound/2, 0); err != nil {
				t.Fatal(err)
			}
			check(r, "after it", tt.then)
		})
	}
}

// What a request asks of its run bounds that request too; a rate goes on holding what
// is expected.
func TestRunBoundsOutputAsAsked(t *testing.T) {
	perMinute := sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 300}
	r := newRig(t, outputAt(1), policy(true, sluice.ScopeKey, perMinute))
	w := sluice.Work{Input: 10, OutputBound: 4000, OutputHold: 100}
	if g := r.mustCall(w); g.OutputBound != 4000 || g.Whole {
		t.Errorf("outside of a run: got %d, whole %v", g.OutputBound, g.Whole)
	}
	if g, err := r.inRun(w, ofRun(sluice.OutputTokens, 2000)); err != nil || g.OutputBound != 2000 {
		t.Errorf("got %d, %v, want 2000", g.OutputBound, err)
	}
	_, err := r.inRun(w) // what is asked once is asked for good
	if err == nil || err.Reason != sluice.BudgetHeld || !strings.Contains(err.Msg, "0 are spent and 2000 held") {
		t.Errorf("got %v, want a run that is held", err)
	}
}
