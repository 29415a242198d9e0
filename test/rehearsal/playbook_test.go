package rehearsal

import (
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/config"
	"sluice/internal/tabletop"
	"sluice/internal/tabletop/scenarios"
)

// effect is one act of a scenario and the figure that it is played for.
type effect struct {
	scenario, act string
	phase, whose  string
	what          string // the figure, as the playbook names it
	better        int    // +1 if more is better, −1 if less is
	figure        func(*tabletop.Figures) float64
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// effects are the plays of docs/operations/overload-playbook.md.
var effects = []effect{
	{"noisy-tenant", "lower-limit", "after", "tenant quiet-1", "ttft.p50", -1, func(f *tabletop.Figures) float64 { return seconds(f.TTFT.P50) }},
	{"noisy-tenant", "shorten-wait", "after", "tenant noisy", "queue.p50", -1, func(f *tabletop.Figures) float64 { return seconds(f.Queue.P50) }},
	{"noisy-tenant", "enlarge", "after", "tenant noisy", "completed", 1, func(f *tabletop.Figures) float64 { return float64(f.Completed) }},
	{"quarter-fleet-loss", "headroom", "after", "class interactive", "ttft.p90", -1, func(f *tabletop.Figures) float64 { return seconds(f.TTFT.P90) }},
	{"quarter-fleet-loss", "batch-ceiling", "after", "class interactive", "ttft.p50", -1, func(f *tabletop.Figures) float64 { return seconds(f.TTFT.P50) }},
	{"contract-tenant", "raise-contract", "overflow", "source bulk", "slo", 1, func(f *tabletop.Figures) float64 { return float64(f.SLO) / 1000 }},
	{"contract-tenant", "pin-shares", "overflow", "source bulk", "ttft.p50", -1, func(f *tabletop.Figures) float64 { return seconds(f.TTFT.P50) }},
	{"regional-failover", "more-headroom", "lost", "tenant reports", "ttft.p50", -1, func(f *tabletop.Figures) float64 { return seconds(f.TTFT.P50) }},
	{"slow-backend", "drain", "after", "class interactive", "slo", 1, func(f *tabletop.Figures) float64 { return float64(f.SLO) / 1000 }},
}

// Each act does what its play says: with the same seed, the figure is better with it
// than without, in every pair, and by more than twice the standard error in the mean.
func TestPlaysHaveTheirEffect(t *testing.T) {
	long(t)
	for _, e := range effects {
		t.Run(e.scenario+"/"+e.act, func(t *testing.T) {
			t.Parallel()
			s := shipped(t, e.scenario, nil)
			var gains []float64
			sum := [2]float64{}
			for seed := 1; seed <= seeds(t); seed++ {
				at := func(acts ...string) float64 {
					return e.figure(figuresOf(t, phaseOf(t, run(t, s, config.PolicySluice, seed, acts...), e.phase), e.whose))
				}
				with, without := at(e.act), at()
				sum[0], sum[1] = sum[0]+with, sum[1]+without
				gains = append(gains, float64(e.better)*(with-without))
			}
			n := float64(len(gains))
			t.Logf("%s of %s: %.3g with the act, %.3g without, each time better by %.3g", e.what, e.whose, sum[0]/n, sum[1]/n, gains)
			if least := slices.Min(gains); least <= 0 {
				t.Errorf("%s of %s is no better with the act: %v", e.what, e.whose, gains)
			}
			if mean, err := spread(gains); len(gains) > 1 && mean <= 2*err {
				t.Errorf("%s of %s gains %.3g, standard error %.3g: that may be chance", e.what, e.whose, mean, err)
			}
		})
	}
}

// spread is the mean of a sample and its standard error.
func spread(sample []float64) (mean, err float64) {
	n := float64(len(sample))
	for _, x := range sample {
		mean += x / n
	}
	sum := 0.0
	for _, x := range sample {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum / max(n-1, 1) / n)
}

// The playbook has a play for every act of a scenario that ships, and for no other,
// and the figure that it promises is the one that is measured.
func TestPlaybookIsWhole(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations/overload-playbook.md")
	if err != nil {
		t.Fatal(err)
	}
	plays := map[string]string{}
	line := regexp.MustCompile("(?m)^Rehearsed: `sluice tabletop run ([a-z-]+) --act ([a-z-]+)`; (.*)$")
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		plays[m[1]+" "+m[2]] = m[3]
	}
	acts := map[string]bool{}
	for _, name := range scenarios.Names() {
		for _, a := range shipped(t, name, nil).Acts {
			acts[name+" "+a.Name] = true
			if a.About == "" {
				t.Errorf("act %s of %s says nothing about itself", a.Name, name)
			}
		}
	}
	for _, e := range effects {
		key := e.scenario + " " + e.act
		if promised, ok := plays[key]; !ok || !strings.Contains(promised, "`"+e.what+"`") || !strings.Contains(promised, "`"+strings.Replace(e.whose, " ", ".", 1)) && !strings.Contains(promised, "`"+strings.TrimPrefix(e.whose, "class ")) {
			t.Errorf("the playbook does not promise %s of %s by %s: %q", e.what, e.whose, key, promised)
		}
		if !acts[key] {
			t.Errorf("%s is no act of a scenario", key)
		}
		delete(plays, key)
		delete(acts, key)
	}
	for key := range plays {
		t.Errorf("the play %s is not measured", key)
	}
	for key := range acts {
		t.Errorf("the act %s is no play", key)
	}
}

// Whatever metric and command the playbook names exists.
func TestPlaybookNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations/overload-playbook.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bsluice_[a-z_]+`).FindAllString(string(text), -1) {
		if !strings.Contains(string(metrics), "`"+name+"`") {
			t.Errorf("there is no metric %s", name)
		}
	}
	for _, part := range []string{"**Signs**", "**Act**", "**Expect**", "**Revert**"} {
		if got := strings.Count(string(text), part); got != len(effects) {
			t.Errorf("%d plays have %s, want %d", got, part, len(effects))
		}
	}
}

// Every command of the playbook is one, with its flags.
func TestPlaybookCommandsParse(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations/overload-playbook.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range regexp.MustCompile("(?m)^sluice (.*)$|`sluice ([a-z]+ [^`]*)`").FindAllStringSubmatch(string(text), -1) {
		args := append(strings.Fields(m[1]+m[2]), "--help") // which is obeyed once all else has been parsed
		var said strings.Builder
		env := cli.Env{Args: args, Stdout: io.Discard, Stderr: &said, Getenv: func(string) (string, bool) { return "", false }}
		if code := cli.Run(t.Context(), env); code != 0 {
			t.Errorf("sluice %s: exit code %d: %s", strings.Join(args, " "), code, said.String())
		}
		n++
	}
	if n < 10 {
		t.Errorf("found %d commands", n)
	}
}
