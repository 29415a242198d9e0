package rehearsal

import (
	"strings"
	"testing"

	"sluice/internal/config"
	"sluice/internal/tabletop"
	"sluice/internal/tabletop/scenarios"
)

// wanted are the scenarios that must ship.
var wanted = []string{"noisy-tenant", "quarter-fleet-loss", "retry-wave", "contract-tenant", "harbor", "code-bursts", "long-documents", "affinity-conversation", "affinity-synthetic", "regional-failover", "hedge", "everything-at-once", "all-long"}

func TestShippedScenarios(t *testing.T) {
	long(t)
	have := map[string]bool{}
	for _, name := range scenarios.Names() {
		have[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shipped(t, name, nil)
			if s.About == "" || len(s.Expect) == 0 || len(s.Events) == 0 && len(s.Policies) < 3 {
				t.Errorf("it says nothing about itself, expects nothing, or nothing happens and nothing is compared: %q", s.About)
			}
			for seed := 1; seed <= seeds(t); seed++ {
				judged(t, run(t, s, config.PolicySluice, seed))
				compared(t, run(t, s, config.PolicyNaive, seed))
			}
		})
	}
	for _, name := range wanted {
		if !have[name] {
			t.Errorf("%s does not ship", name)
		}
	}
}

// judged wants every expectation met.
func judged(t *testing.T, r *tabletop.Result) {
	t.Helper()
	for _, v := range r.Verdicts {
		if !v.Passed {
			t.Errorf("seed %d, %s, phase %s: %s: got %s", r.Seed, r.Policy, v.Phase, v.Text, v.Got)
		}
	}
	if len(r.Verdicts) == 0 || !r.Passed {
		t.Errorf("seed %d, %s: not passed, of %d verdicts", r.Seed, r.Policy, len(r.Verdicts))
	}
}

// compared wants every expectation met until the first event, and not all of them
// after it; where nothing happens, not all of them.
func compared(t *testing.T, r *tabletop.Result) {
	t.Helper()
	missed := 0
	for _, v := range r.Verdicts {
		switch {
		case v.Passed:
		case v.Phase == r.Phases[0].Name && len(r.Phases) > 1:
			t.Errorf("seed %d, %s misses before anything has happened: %s: got %s", r.Seed, r.Policy, v.Text, v.Got)
		default:
			missed++
		}
	}
	if missed == 0 {
		t.Errorf("seed %d: %s meets everything after the event too: the scenario shows nothing", r.Seed, r.Policy)
	}
}

// TestEverythingAtOnce: with the ladder the storm is good for more requests than the calm
// before it, and all of it is given back; without, nothing that differs but the ladder,
// it is not.
func TestEverythingAtOnce(t *testing.T) {
	long(t)
	t.Parallel()
	s := shipped(t, "everything-at-once", nil)
	with, without := run(t, s, config.PolicySluice, 1), run(t, s, "without", 1)
	judged(t, with)
	compared(t, without)
	for _, v := range without.Verdicts {
		if v.Phase == "storm" && strings.Contains(v.Text, "goodput") && v.Passed {
			t.Errorf("without the ladder: %s: got %s", v.Text, v.Got)
		}
	}
}

// A run says the same again, whoever runs beside it.
func TestSameSeedSameResult(t *testing.T) {
	t.Parallel()
	s := shipped(t, "contract-tenant", nil)
	a := run(t, s, config.PolicySluice, 1)
	b, err := s.Run(t.Context(), tabletop.Options{Policy: config.PolicySluice, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if x, y := document(t, a), document(t, b); x != y {
		t.Error("two runs of one seed differ")
	}
	c := run(t, s, config.PolicySluice, 2)
	if document(t, a) == document(t, c) {
		t.Error("another seed gives the same")
	}
}
