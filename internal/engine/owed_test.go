package engine_test

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
)

// What is owed is refused by no limit and takes nothing from others' rates, says of none
// that it would have refused it, and is counted by budgets.
func TestOwedIsCountedAndNotRefused(t *testing.T) {
	day := sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(sluice.Dollar)}
	minute := sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1}
	p := policy(true, sluice.ScopeTenant, day, minute)
	p.Limits[sluice.ScopeKey] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}}
	r := newRig(t, outputAt(1), p)
	w := sluice.Work{OutputBound: 1_000_000, OutputHold: 1_000_000}
	first := r.mustCall(w)
	if _, err := r.call(w); err == nil {
		t.Fatal("there is room for another")
	}
	c := engine.Call{
		ID: "owed", Model: "m", Dialect: "openai", Work: w, Owed: true,
		Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Run: "r", Policy: p},
		RunLimits: []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerRun, Amount: 1}},
	}
	if v := r.eng.Arrive(r.now, c); v.Err != nil {
		t.Fatalf("refused: %v", v.Err)
	}
	g := r.eng.Advance(r.now)
	if len(g) != 1 || g[0].Err != nil || g[0].Would != nil || g[0].OutputBound != w.OutputBound {
		t.Fatalf("got %+v, want it to run as it is", g)
	}
	if err := r.settle(g[0], 0, 500_000, sluice.Dollar/2); err != nil {
		t.Fatal(err)
	}
	if err := r.settle(first, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(time.Minute)
	got := r.mustCall(w)
	if want := w.OutputBound / 2; got.OutputBound != want {
		t.Errorf("the next may write %d, want %d: half of the budget is spent", got.OutputBound, want)
	}
}
