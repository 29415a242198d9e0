package rehearsal

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sluice/internal/config"
	"sluice/internal/tabletop"
	"sluice/internal/tabletop/scenarios"
)

// seeds are how many each scenario is run with.
func seeds(t testing.TB) int {
	t.Helper()
	text, ok := os.LookupEnv("SLUICE_REHEARSAL_SEEDS")
	if !ok {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SLUICE_REHEARSAL_SEEDS is %q: want a number from 1", text)
	}
	return n
}

// long leaves a test out under the race detector, which makes it ten times as long
// and finds nothing in it: a run is one goroutine.
func long(t *testing.T) {
	t.Helper()
	if race {
		t.Skip("too long for the race detector")
	}
}

// shipped reads a scenario that ships.
func shipped(t testing.TB, name string, traces map[string]string) *tabletop.Scenario {
	t.Helper()
	file, data, err := scenarios.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.ReadScenario(file, data, config.ScenarioOptions{Open: scenarios.Open, Traces: traces})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// written reads a scenario of a test.
func written(t testing.TB, text string) *tabletop.Scenario {
	t.Helper()
	s, err := config.ReadScenario("test.yaml", []byte(text), config.ScenarioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// results are runs of scenarios that ship, each made once.
var results struct {
	mu sync.Mutex
	of map[string]func() (*tabletop.Result, error)
}

// run is a run of a scenario that ships.
func run(t testing.TB, s *tabletop.Scenario, policy string, seed int, acts ...string) *tabletop.Result {
	t.Helper()
	key := fmt.Sprint(s.Name, policy, seed, acts)
	results.mu.Lock()
	if results.of == nil {
		results.of = make(map[string]func() (*tabletop.Result, error))
	}
	once := results.of[key]
	if once == nil {
		once = sync.OnceValues(func() (*tabletop.Result, error) {
			return s.Run(t.Context(), tabletop.Options{Policy: policy, Seed: uint64(seed), Acts: acts})
		})
		results.of[key] = once
	}
	results.mu.Unlock()
	r, err := once()
	if err != nil {
		t.Fatal(err)
	}
	if r.Partial {
		t.Fatalf("%s was cut short at %s", key, r.Ended)
	}
	return r
}

// phaseOf finds a phase.
func phaseOf(t testing.TB, r *tabletop.Result, name string) *tabletop.Phase {
	t.Helper()
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	t.Fatalf("%s has no phase %q", r.Scenario, name)
	return nil
}

// figuresOf finds the figures of all, or of a class, tenant or source, as
// "source bulk" names it.
func figuresOf(t testing.TB, p *tabletop.Phase, whose string) *tabletop.Figures {
	t.Helper()
	kind, name, _ := strings.Cut(whose, " ")
	groups := map[string][]tabletop.Named{"class": p.Classes, "tenant": p.Tenants, "source": p.Sources}
	if kind == "all" {
		return &p.All
	}
	for i := range groups[kind] {
		if groups[kind][i].Name == name {
			return &groups[kind][i].Figures
		}
	}
	t.Fatalf("phase %s has no %s", p.Name, whose)
	return nil
}
