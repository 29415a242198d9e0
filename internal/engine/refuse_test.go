package engine_test

import (
	"testing"

	"sluice"
)

// What can never fit says what to make smaller: of a limit on output that is the
// output.
func TestNeverFitsHint(t *testing.T) {
	for _, tt := range []struct {
		limit sluice.Limit
		run   bool
		want  string
	}{
		{ofRun(sluice.OutputTokens, 1), true, "ask for less output (max_tokens), or give the run a larger bound"},
		{ofRun(sluice.InputTokens, 1), true, "send less input, or give the run a larger bound"},
		{ofRun(sluice.AllTokens, 1), true, "send less input, ask for less output (max_tokens), or give the run a larger bound"},
		{sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 1}, false, "ask for less output (max_tokens), or ask for a larger limit"},
		{sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 1}, false, "send less input, or ask for a larger limit"},
	} {
		scope := sluice.ScopeKey
		if tt.run {
			scope = sluice.ScopeRun
		}
		r := newRig(t, outputAt(1), policy(false, scope, tt.limit))
		_, err := r.inRun(sluice.Work{Input: 100, OutputBound: 1000, OutputHold: 100})
		if err == nil || err.Reason != sluice.NeverFits || err.Hint != tt.want {
			t.Errorf("%v: got %+v, want the hint %q", tt.limit, err, tt.want)
		}
	}
}
