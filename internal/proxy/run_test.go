package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// A run counts its requests, tokens, money and time, and one that is spent says so.
func TestRun(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 1, usage: usage(900, 100)}}},
		policy: sluice.Policy{Limits: func() (out [sluice.NumScopes][]sluice.Limit) {
			out[sluice.ScopeRun] = []sluice.Limit{
				{Dimension: sluice.Requests, Window: sluice.PerRun, Amount: 4},
				{Dimension: sluice.RunTime, Window: sluice.PerRun, Amount: int64(time.Hour)},
			}
			return out
		}()},
	}, func(t *testing.T, r *rig) {
		step := func(run, limits string) got {
			h := http.Header{"Sluice-Run": {run}}
			if limits != "" {
				h["Sluice-Run-Limits"] = []string{limits}
			}
			return r.do(ask{header: h, max: 100})
		}
		refused := func(g got, want string) {
			t.Helper()
			if g.status != 429 || g.header.Get("sluice-reason") != "budget_spent" || g.header.Get("x-should-retry") != "false" || !strings.Contains(g.body, want) {
				t.Errorf("got %d %q %s, want a spent run: %s", g.status, g.header.Get("sluice-reason"), g.body, want)
			}
		}
		for range 4 {
			if g := step("plan", ""); g.status != 200 || g.header.Get("sluice-dropped") != "" {
				t.Fatalf("got %d, dropped %q: %s", g.status, g.header.Get("sluice-dropped"), g.body)
			}
		}
		refused(step("plan", ""), "the run may take 4 steps, of which 4 are spent and 0 held")
		if f := r.last().Final; f.Run != "plan" || f.Reason != sluice.BudgetSpent {
			t.Errorf("recorded run %q, reason %v", f.Run, f.Reason)
		}

		if g := step("tight", "steps=2, tokens=1M"); g.status != 200 {
			t.Fatalf("got %d %s", g.status, g.body)
		}
		step("tight", "steps=50")
		refused(step("tight", ""), "the run may take 2 steps")

		g := step("loose", "steps=50,time=2h,spend=$2")
		if d := g.header.Get("sluice-dropped"); g.status != 200 || d != "sluice-run-limits.steps=4, sluice-run-limits.time=1h0m0s" {
			t.Errorf("got %d, dropped %q", g.status, d)
		}

		step("tokens", "tokens=1010")
		refused(step("tokens", ""), "the run may take 1010 tokens, of which 1000 are spent and 0 held")
		step("money", "spend=$0.0011") // soft: what it held was less than what it took
		refused(step("money", ""), "the run may take $0.0011, of which $0.0011 are spent and $0.00 held")

		step("clock", "time=10m")
		time.Sleep(10*time.Minute - time.Second)
		if g := step("clock", ""); g.status != 200 {
			t.Errorf("within its time: got %d %s", g.status, g.body)
		}
		time.Sleep(time.Second)
		refused(step("clock", ""), "the run may last 10m0s and began 10m0s ago")

		for limits, want := range map[string]string{
			"steps": "write bounds such as", "steps=0": "write a positive amount such as steps=50", "step=1": "use steps, input_tokens", "steps=1,steps=2": "twice",
			"time=soon": "time=10m", "spend=-1": "spend=$2", "tokens=1.5": "tokens=1M", "": "write bounds such as",
		} {
			h := http.Header{"Sluice-Run": {"r"}, "Sluice-Run-Limits": {limits}}
			if g := r.do(ask{header: h}); g.status != 400 || !strings.Contains(g.body, want) {
				t.Errorf("%q: got %d %s, want it to say %q", limits, g.status, g.body, want)
			}
		}
	})
}

// A request is asked for no more output than its run has left, and the client is told.
func TestRunBoundsOutput(t *testing.T) {
	for _, tt := range []struct{ name, path, bound, limits, forwarded, told string }{
		{"names more", "/v1/chat/completions", `,"max_tokens":4000`, "output_tokens=50", `"max_tokens":50`, "max_tokens=50"},
		{"names less", "/v1/chat/completions", `,"max_tokens":40`, "output_tokens=50", `"max_tokens":40`, ""},
		{"names none", "/v1/chat/completions", ``, "output_tokens=50", `"max_completion_tokens":50`, "max_completion_tokens=50"},
		{"names none, room for all", "/v1/chat/completions", ``, "output_tokens=1M", `"max_completion_tokens":4096`, ""},
		{"names none, of input", "/v1/chat/completions", ``, "input_tokens=1M", ``, ""},
		{"names 0", "/v1/messages", `,"max_tokens":0`, "output_tokens=50", `"max_tokens":1`, "max_tokens=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dialect, sent := wire.OpenAI, ""
			if tt.path == "/v1/messages" {
				dialect = wire.Anthropic
			}
			inBubble(t, setup{places: []place{{handler: both{dialect, &sent}, dialect: dialect}}}, func(t *testing.T, r *rig) {
				g := r.do(ask{
					path: tt.path, body: `{"model":"m","messages":[{"role":"user","content":"hi"}]` + tt.bound + `}`,
					header: http.Header{"Sluice-Run": {"job"}, "Sluice-Run-Limits": {tt.limits}},
				})
				if told := g.header.Get("Sluice-Dropped"); g.status != 200 || told != tt.told {
					t.Errorf("got %d, dropped %q, want %q: %s", g.status, told, tt.told, g.body)
				}
				if !strings.Contains(sent, tt.forwarded) || tt.forwarded == "" && strings.Contains(sent, "max_") {
					t.Errorf("forwarded %s, want %s", sent, tt.forwarded)
				}
			})
		})
	}
}
