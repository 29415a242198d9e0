package telemetry

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/hook"
)

func TestInspected(t *testing.T) {
	m := New(Options{})
	m.DeclareHooks([]hook.Spec{{Name: "guard"}, {Name: "pii"}})
	m.Inspected(hook.Event{Hook: "guard", Stage: hook.AtRequest, Verdict: hook.Refuse, Took: 20 * time.Millisecond})
	m.Inspected(hook.Event{Hook: "guard", Stage: hook.AtEvent, Verdict: hook.Failed, Cause: hook.CauseTimeout, Took: time.Second})
	m.Inspected(hook.Event{Hook: "pii", Stage: hook.AtEvent, Verdict: hook.Redact, Counts: hook.Counts{hook.Email: 3}})
	m.Inspected(hook.Event{Hook: "nobody", Stage: hook.AtRequest, Verdict: hook.Failed, Cause: hook.CauseUnknown})
	_, text := series(t, m)
	for _, want := range []string{
		`sluice_hook_calls_total{hook="guard",stage="request",verdict="refuse"} 1`,
		`sluice_hook_failures_total{cause="timeout",hook="guard"} 1`,
		`sluice_hook_failures_total{cause="unknown",hook="other"} 1`,
		`sluice_hook_seconds_sum{hook="guard",stage="request"} 0.02`,
		`sluice_hook_redactions_total{hook="pii",kind="email"} 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
