package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/config"
)

func TestForms(t *testing.T) {
	v := view{
		data:    map[string]any{"rows": []int{1}},
		columns: []string{"name", "n"},
		rows:    [][]string{{"a", "1"}, {"longer", "1000"}},
		foot:    []string{"total", "1001"},
	}
	for form, want := range map[string]string{
		"table": "NAME       N\na          1\nlonger  1000\ntotal   1001\n",
		"json":  "{\n  \"rows\": [\n    1\n  ]\n}\n",
		"yaml":  "rows:\n- 1\n",
		"csv":   "name,n\na,1\nlonger,1000\n",
	} {
		var b bytes.Buffer
		if err := (output{form}).print(&b, v); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want {
			t.Errorf("%s: got\n%q\nwant\n%q", form, got, want)
		}
	}
}

// TestTerminalIsSafe prints what others may have named.
func TestTerminalIsSafe(t *testing.T) {
	evil := "\x1b]0;x\x07\u009b31m\u202e\r=cmd()"
	var b bytes.Buffer
	if err := (output{"table"}).print(&b, view{columns: []string{"a"}, rows: [][]string{{evil}}}); err != nil {
		t.Fatal(err)
	}
	printError(&b, &admin.Problem{Detail: evil, Kind: "invalid", Hint: evil, Errors: []admin.ProblemDetail{{Message: evil}}})
	printError(&b, errors.New(evil))
	if strings.ContainsAny(b.String(), "\x1b\x07\u009b\u202e\r") {
		t.Errorf("control characters reach the terminal: %q", b.String())
	}
	b.Reset()
	if err := (output{"csv"}).print(&b, view{columns: []string{"a", "n"}, rows: [][]string{{"=cmd()", "-5"}}}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != "a,n\n'=cmd(),-5\n" {
		t.Errorf("csv: %q", got)
	}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":       {nil, 0},
		"any":           {errors.New("x"), 1},
		"problems":      {fmt.Errorf("load: %w", config.Problems{{Cause: "x"}}), 2},
		"invalid":       {&admin.Problem{Kind: "invalid"}, 2},
		"not found":     {&admin.Problem{Kind: "not_found"}, 3},
		"no token":      {&admin.Problem{Kind: "unauthenticated"}, 4},
		"forbidden":     {&admin.Problem{Kind: "forbidden"}, 4},
		"conflict":      {&admin.Problem{Kind: "conflict"}, 5},
		"store is down": {&admin.Problem{Kind: "overloaded"}, 7},
		"port in use":   {&sluice.Error{Kind: sluice.KindConflict}, 5},
		"coded":         {&codedError{code: 6}, 6},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// TestStory tells a request with a failed first attempt, and one that was
// refused.
func TestStory(t *testing.T) {
	var b strings.Builder
	cost := int64(12_000)
	x := &admin.Explanation{
		Request:  admin.Request{ID: "r1", Tenant: "acme", Project: "web", Key: "k1", Task: "sum", Class: "interactive", Operation: "chat", Model: "fast", Outcome: "completed", Status: 200, QueuedSeconds: .012, Seconds: 2},
		Dialect:  "openai",
		Stream:   true,
		Estimate: admin.Estimate{Input: 105, OutputBound: 4096, Held: "$0.01"},
		Steps: []admin.Attempt{
			{
				Attempt: 1, Pool: "chat", Backend: "gpu-a", Provider: "gpus", UpstreamModel: "llama", Outcome: "failed", Reason: "upstream_error", Charge: admin.Charge{Cost: "$0.00", Source: "none"},
				Facts: map[string]any{"estimate": map[string]any{"raw_input": 100, "output": 60, "output_hold": 200}},
			},
			{
				Attempt: 2, Pool: "hosted", Backend: "oai", Provider: "openai", UpstreamModel: "gpt", Outcome: "completed", Fallback: true, FirstSeconds: .4,
				Candidates: []admin.Candidate{{Pool: "hosted", Backend: "oai", Cached: 512, Cost: &cost}, {Pool: "chat", Backend: "gpu-a", Left: "tried"}},
				Charge:     admin.Charge{Tokens: map[string]sluice.Tokens{"input": 100, "cache_read": 20, "output": 30}, Source: "reported", Cost: "$0.0012", PriceVersion: "2026-11"},
			},
		},
		Total: admin.Charge{Tokens: map[string]sluice.Tokens{"input": 100, "cache_read": 20, "output": 30}, Source: "reported", Cost: "$0.0012"},
	}
	story(&b, x)
	for _, want := range []string{
		"request r1  completed  (status 200)",
		"tenant acme, project web, key k1, task sum",
		"105 input tokens (100 by character class, × the learned ratio), output at most 4096, 60 expected, 200 held; $0.01 of budget held",
		"12ms in the queue",
		"attempt 1  gpu-a in pool chat, failed: upstream_error",
		"attempt 2  oai in pool hosted (fallback), completed",
		"not gpu-a: tried",
		"chose oai, 512 input tokens believed cached, cost 12ms",
		"took 100 input + 20 cache read + 30 output tokens (reported), $0.0012 by price 2026-11",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	story(&b, &admin.Explanation{
		Request: admin.Request{ID: "r3", Outcome: "failed", Reason: "upstream_error", Status: 502},
		Steps:   []admin.Attempt{{Attempt: 1, Pool: "chat", Backend: "gpu-a", Outcome: "failed", Reason: "upstream_error", RetryDenied: "retry_budget_tenant", Charge: admin.Charge{Cost: "$0.00"}}},
	})
	if want := "no further attempt: retry_budget_tenant"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
	b.Reset()
	five := admin.ParseAmount("5")
	story(&b, &admin.Explanation{
		Request: admin.Request{ID: "r2", Outcome: "rejected", Reason: "rate_limited", Status: 429}, Steps: []admin.Attempt{{}},
		Refusal: &admin.RefusalFigure{Scope: "tenant", ID: "acme", Limit: "requests_per_minute", Amount: five, Requested: admin.ParseAmount("1"), Used: five, Held: admin.ParseAmount("0")},
	})
	for _, want := range []string{"rejected: rate_limited", "requests_per_minute of tenant acme did not fit: it needs 1, of 5 there are 5 used and 0 held", "no backend was reached", "settled    nothing"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
