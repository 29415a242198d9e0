package rehearsal

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// hedges are the policies of the scenario hedge, as its page names them.
var hedges = []struct{ policy, says string }{
	{"plain", "no hedge"},
	{"sluice", "`hedge: {after: p95}`"},
	{"fixed", "`hedge: {after: 150ms}`"},
	{"breaker", "the same, with `breaker: {first_token: 200ms}`"},
}

// The figures of the page are what runs give; -update rewrites them. A hedge brings the
// late first tokens forward within the budget of retries, and costs what it says.
func TestHedgeFigures(t *testing.T) {
	long(t)
	const path = "../../docs/operations/retries.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := shipped(t, "hedge", nil)
	var b strings.Builder
	b.WriteString("| | first token, p50 | p99 | in time | attempts ÷ requests | hedges | of them won | cost of a good answer |\n|---|---|---|---|---|---|---|---|\n")
	var plain time.Duration
	for i, v := range hedges {
		r := run(t, s, v.policy, 1)
		p := phaseOf(t, r, "after")
		f, a := figuresOf(t, p, "class interactive"), &p.Retries
		fmt.Fprintf(&b, "| %s | %v | %v | %.1f %% | %.2f | %d | %d | %v |\n", v.says, f.TTFT.P50.Round(time.Millisecond), f.TTFT.P99.Round(time.Millisecond),
			float64(f.SLO)/10, float64(a.Attempts)/float64(a.Dispatched), a.Hedged, a.Won, f.PerGood)
		switch {
		case i == 0:
			plain = f.TTFT.P99
		case f.TTFT.P99*10 > plain:
			t.Errorf("%s: the p99 of the first token is %v, without a hedge %v: want a tenth", v.policy, f.TTFT.P99, plain)
		case a.Attempts*10 > a.Dispatched*11:
			t.Errorf("%s: %d attempts at %d requests", v.policy, a.Attempts, a.Dispatched)
		}
	}
	before, rest, ok := strings.Cut(string(text), "<!-- hedges -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- end of hedges -->")
	if !ok || !ok2 {
		t.Fatalf("%s has no table of hedges", path)
	}
	now := before + "<!-- hedges -->\n" + b.String() + "<!-- end of hedges -->" + after
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != string(text) {
		t.Errorf("%s is stale, rewrite with -update; it should say\n%s", path, b.String())
	}
}
