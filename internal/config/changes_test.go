package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const routedFile = `
providers:
  host: {dialect: openai, base_url: https://a.example/v1, api_key: "${PEPPER}"}
pools:
  one: {backends: [{name: a-1, provider: host, model: x, price: free}, {name: a-2, provider: host, model: x, price: free}]}
  two: {backends: [{name: b-1, provider: host, model: x, price: free, domain: b}]}
  far: {backends: [{name: c-1, provider: host, model: x, price: free, domain: c}]}
models:
  m:
    pools: [{pool: one, weight: 3}, {pool: two, weight: 1}]
    fallback: [{pool: far, evaluated: {suite: s, score: 0.9, date: 2026-11-01}}]
  n: {pools: [one]}
plans:
  gold: {class: interactive}
`

// Changes are read back as they were written, and join one over the other.
func TestChangesJoin(t *testing.T) {
	var first *Changes
	first = first.With(&Changes{
		Models:   map[string]*ModelChange{"m": {Pools: map[string]*PoolChange{"one": {Weight: new(Count(1))}}, Sticky: new(Sticky("run"))}},
		Backends: map[string]*BackendChange{"a-1": {Weight: new(int64(0))}},
	})
	both := first.With(&Changes{
		Models: map[string]*ModelChange{"m": {
			Pools:    map[string]*PoolChange{"one": {Weight: new(Count(9))}, "two": {Weight: new(Count(0)), Canary: new(Percent(5))}},
			Fallback: &[]Fallback{{Pool: "far"}}, MaxSpend: new(Money(50_000_000)),
		}},
	})
	text, err := both.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseChanges(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(both, again); diff != "" {
		t.Errorf("-written +read\n%s", diff)
	}
	c := parsed(t, routedFile, ParseOptions{Changes: again})
	found, err := Diff(parsed(t, routedFile, ParseOptions{}), c)
	if err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{"routing", "models.m.max_spend", "", "$0.05"},
		{"routing", "models.m.pools[one].weight", "3", "9"},
		{"routing", "models.m.pools[two].canary", "", "5%"},
		{"routing", "models.m.pools[two].weight", "1", ""},
		{"routing", "models.m.sticky", "", "run"},
		{"routing", "pools.one.backends[a-1].weight", "1", "0"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if back := both.With(&Changes{Backends: map[string]*BackendChange{"a-1": {Reset: true}}}); len(back.Backends) != 0 || len(both.Backends) != 1 {
		t.Errorf("a change that is taken back leaves %v", back.Backends)
	}
	if c.Models["m"].Fallback[0].Evaluated == nil {
		t.Error("a fallback that the file has lost its evaluation")
	}
	if n := len(first.Models["m"].Pools); n != 1 || *first.Models["m"].Pools["one"].Weight != 1 {
		t.Error("what was joined has changed")
	}
}

// A change that the file has no place for, or that leaves a rule of the file broken,
// is told like a mistake of the file.
func TestChangesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		changes Changes
		want    string
	}{
		"model":      {Changes{Models: map[string]*ModelChange{"mm": {}}}, `model "mm" is not declared`},
		"pool":       {Changes{Models: map[string]*ModelChange{"m": {Pools: map[string]*PoolChange{"far": {Weight: new(Count(1))}}}}}, `pool "far" is not one of the model's first pools`},
		"backend":    {Changes{Backends: map[string]*BackendChange{"a-9": {Weight: new(int64(0))}}}, `backend "a-9" is not declared`},
		"sticky":     {Changes{Models: map[string]*ModelChange{"m": {Sticky: new(Sticky("tenant"))}}}, `"tenant" is not one of`},
		"half":       {Changes{Models: map[string]*ModelChange{"m": {Pools: map[string]*PoolChange{"two": {Weight: new(Count(0))}}}}}, "some pools have a weight and others have none"},
		"evaluation": {Changes{Models: map[string]*ModelChange{"n": {Fallback: &[]Fallback{{Pool: "far"}}}}}, `fallback "far" is not evaluated`},
	} {
		_, err := ParseWith("sluice.yaml", []byte(routedFile), ParseOptions{Env: openEnv, Changes: &c.changes})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if _, err := ParseChanges(`{"models":{"m":{"pool":{}}}}`); err == nil {
		t.Error("a word that is not known was read")
	}
}

// Only what two files mean is compared, and no value of a variable shows.
func TestDiffIsByMeaning(t *testing.T) {
	same := strings.ReplaceAll(routedFile, "models:\n", "# a comment\nmodels:\n")
	same = strings.Replace(same, "plans:\n  gold: {class: interactive}\n", "plans: {gold: {weight: 1, class: interactive}}\nbody_limit: 32MiB\n", 1)
	same = strings.Replace(same, "{name: a-1, provider: host, model: x, price: free}, {name: a-2, provider: host, model: x, price: free}", "{name: a-2, provider: host, model: x, price: free}, {name: a-1, provider: host, weight: 1, model: x, price: free}", 1)
	found, err := Diff(parsed(t, routedFile, ParseOptions{}), parsed(t, same, ParseOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 0 {
		t.Errorf("two files that mean the same differ in %v", found)
	}

	other := strings.Replace(routedFile, "pools: [{pool: one, weight: 3}, {pool: two, weight: 1}]", "pools: [two, one]", 1)
	other = strings.Replace(other, "  n: {pools: [one]}\n", "", 1)
	other = strings.Replace(other, "class: interactive", "class: batch", 1) + "listen: 127.0.0.1:9\ndata: ${PEPPER}\n"
	if found, err = Diff(parsed(t, routedFile, ParseOptions{}), parsed(t, other, ParseOptions{})); err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{"routing", "models.m.pools[one].weight", "3", ""},
		{"routing", "models.m.pools[two].weight", "1", ""},
		{"routing", "models.m.pools in order", "one, two", "two, one"},
		{"routing", "models.n", `{"pools":[{"pool":"one"}]}`, ""},
		{"callers", "plans.gold.class", "interactive", "batch"},
		{"process", "data", "./sluice-data", "${PEPPER}"},
		{"process", "listen", "127.0.0.1:8080", "127.0.0.1:9"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
