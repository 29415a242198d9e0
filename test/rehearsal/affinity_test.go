package rehearsal

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/config"
	"sluice/internal/tabletop"
)

var update = flag.Bool("update", false, "rewrite the table of docs/operations/affinity.md")

// affinities are the scenarios of prefix affinity, and by what factor more input is
// found in caches than where backends take turns.
var affinities = []struct {
	name, trace string
	factor      float64
}{
	{"affinity-conversation", "mooncake_conversation.jsonl", 2.8},
	{"affinity-synthetic", "mooncake_synthetic.jsonl", 4},
}

// rivals are the policies that the shipped one is held against, by the name that the
// table has for them.
var rivals = []struct{ policy, says string }{
	{"round-robin", "in turn"},
	{"least-loaded", "least loaded"},
	{"two-choices", "two at random, the sooner"},
	{"best-match", "longest match"},
	{config.PolicySluice, "**affinity**"},
}

// hits is the share of input that was found in caches, and skew what the replica
// computed that computed most, against their mean.
func hits(r *tabletop.Result) (share, skew float64) {
	var found, computed, most float64
	b := r.Phases[0].Backends
	for i := range b {
		found += float64(b[i].HitTokens)
		computed += float64(b[i].Prefilled)
		most = max(most, float64(b[i].Prefilled))
	}
	return found / (found + computed), most * float64(len(b)) / computed
}

// Keeping to where a prefix is finds a multiple of what taking turns finds, and no
// replica computes much more than another, although all prompts of the conversations
// have their first block in common: by rows in the shape of the recordings, and by the
// recordings where there are any.
func TestAffinity(t *testing.T) {
	long(t)
	for _, a := range affinities {
		traces := []string{""}
		if path := filepath.Join("..", "..", "..", "shared", "traces", a.trace); exists(path) {
			traces = append(traces, path)
		}
		for _, trace := range traces {
			t.Run(a.name+"/"+filepath.Base(trace), func(t *testing.T) {
				t.Parallel()
				var in map[string]string
				if trace != "" {
					in = map[string]string{"chats": trace}
				}
				s := shipped(t, a.name, in)
				s.Name += trace // another run
				share, skew := hits(run(t, s, config.PolicySluice, 1))
				turns, _ := hits(run(t, s, "round-robin", 1))
				t.Logf("%.1f %% of the input in caches, %.1f %% in turn, skew %.3f", 100*share, 100*turns, skew)
				if share < a.factor*turns {
					t.Errorf("%.1f %% of the input was found in caches, %.2f times the %.1f %% of taking turns: want %g times", 100*share, share/turns, 100*turns, a.factor)
				}
				if skew > 1.1 {
					t.Errorf("one replica computed %.3f times the mean: want at most 1.1", skew)
				}
			})
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The table of the page is what runs give; -update rewrites it. It also shows that the
// longest match alone collapses.
func TestAffinityTable(t *testing.T) {
	long(t)
	const path = "../../docs/operations/affinity.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| scenario | choice | input found in caches | of taking turns | most computed ÷ mean | TTFT p50 | p99 | completed |\n|---|---|---|---|---|---|---|---|\n")
	for _, a := range affinities {
		s := shipped(t, a.name, nil)
		turns, _ := hits(run(t, s, "round-robin", 1))
		for i, v := range rivals {
			r := run(t, s, v.policy, 1)
			share, skew := hits(r)
			name := ""
			if i == 0 {
				name = "`" + a.name + "`"
			}
			all := &r.Phases[0].All
			fmt.Fprintf(&b, "| %s | %s | %.1f %% | × %.2f | %.2f | %v | %v | %.1f %% |\n", name, v.says, 100*share, share/turns, skew,
				all.TTFT.P50.Round(10*time.Millisecond), all.TTFT.P99.Round(100*time.Millisecond), 100*float64(all.Completed)/float64(all.Requests))
			if v.policy == "best-match" && a.name == "affinity-conversation" && skew < 2 {
				t.Errorf("the longest match alone has a skew of %.2f: the page says that it collapses", skew)
			}
		}
	}
	before, rest, ok := strings.Cut(string(text), "<!-- table -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- end of table -->")
	if !ok || !ok2 {
		t.Fatalf("%s has no table", path)
	}
	now := before + "<!-- table -->\n" + b.String() + "<!-- end of table -->" + after
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != string(text) {
		t.Errorf("%s is stale, rewrite with -update; it should say\n%s", path, b.String())
	}
}
