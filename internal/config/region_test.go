package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/route"
)

const regional = `
region: eu-west
regions:
  eu-west: {headroom: 40%, demand: [{rps: 20, input: 800, output: 200}]}
  us-east: {headroom: planner, demand: [{rps: 20, input: 800, output: 200}]}
providers:
  gpus: {dialect: openai, engine: vllm, base_url: http://10.0.0.1:8000/v1, price: free}
pools:
  us:
    locality: {prefer: [us-east], failover: overload, return: 5m}
    backends:
      - {name: us-1, provider: gpus, model: llama, region: us-east, domain: us, capacity: {concurrency: 48}}
      - {name: us-2, provider: gpus, model: llama, region: us-east, domain: us, capacity: {concurrency: 48}}
  eu:
    backends:
      - {name: eu-1, provider: gpus, model: llama, region: eu-west, domain: eu, capacity: {concurrency: 48}}
      - {name: eu-2, provider: gpus, model: llama, region: eu-west, domain: eu, capacity: {concurrency: 48}}
  ap: {backends: [{name: ap-1, provider: gpus, model: llama, region: ap, domain: ap, capacity: {concurrency: 2}}, {name: any, provider: gpus, model: llama, domain: any}]}
models:
  chat: {pools: [us, eu, ap], locality: {prefer: local}}
  theirs: {pools: [us, eu]}
  free: {pools: [eu, us]}
`

func compiled(t *testing.T, text string) *Snapshot {
	t.Helper()
	c, err := Parse("sluice.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(c, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLocalityCompiles(t *testing.T) {
	s := compiled(t, regional)
	for model, want := range map[string]*route.Locality{
		"chat":   {Regions: []string{"eu-west", "us-east", "ap", ""}},
		"theirs": {Regions: []string{"us-east", "eu-west"}, Overload: true, Return: 5 * time.Minute},
		"free":   nil,
	} {
		for id, m := range s.Table.Models {
			if string(id) == model {
				if diff := cmp.Diff(want, m.Locality); diff != "" {
					t.Errorf("%s (-want +got):\n%s", model, diff)
				}
			}
		}
	}
	// 20 requests a second of these use 47 % of two replicas, which leaves 52 % in whole
	// percents; of a region that says nothing it is 25 %.
	if diff := cmp.Diff(map[string]int64{"eu-west": 400, "us-east": 520, "ap": 250}, s.Table.Headroom); diff != "" {
		t.Errorf("headrooms (-want +got):\n%s", diff)
	}
	naive := compiled(t, "policy: naive\n"+regional)
	for id, m := range naive.Table.Models {
		if m.Locality != nil {
			t.Errorf("naive has a locality of %s", id)
		}
	}
}

func TestRegionsLint(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		want     string // in a warning
	}{
		"as it is, ap has no place":  {"", "", "a headroom of 25% is not one request at a time in pool ap"},
		"more than the planner says": {"headroom: 40%", "headroom: 60%", "60% is more than the planner says there is"},
		"a loss nobody bears":        {"us-east: {headroom: planner, demand: [{rps: 20", "us-east: {headroom: 90%, demand: [{rps: 90", "cannot take what"},
		"one domain":                 {"domain: us,", "domain: eu,", "both fail together"},
		"a hasty return":             {"return: 5m", "return: 5s", "before the backends have all of their share"},
		"bound for nothing":          {", locality: {prefer: local}", "", ""},
	} {
		text := strings.Replace(regional, tt.from, tt.to, -1)
		var found strings.Builder
		for _, w := range compiled(t, text).Warnings {
			found.WriteString(w.Path + ": " + w.Cause + "\n")
		}
		if tt.want != "" && !strings.Contains(found.String(), tt.want) {
			t.Errorf("%s: no warning of %q in\n%s", name, tt.want, found.String())
		}
	}
}

func TestRegionMistakes(t *testing.T) {
	for name, tt := range map[string]struct{ from, to, want string }{
		"local is nowhere":   {"region: eu-west\nregions", "regions", "local is nowhere"},
		"no such region":     {"prefer: local", "prefer: [eu-wst]", "no backend is in region"},
		"twice":              {"prefer: local", "prefer: [local, eu-west, eu-west]", "stands twice"},
		"no demand":          {"headroom: planner, demand: [{rps: 20, input: 800, output: 200}]", "headroom: planner", "knows no demand"},
		"an unknown profile": {"headroom: 40%", "profile: abacus, headroom: 40%", "unknown name"},
		"not a rate":         {"rps: 20", "rps: often", "is not an amount"},
		"not a share":        {"headroom: 40%", "headroom: some", "is not a headroom"},
		"for ever":           {"return: 5m", "return: 5h", "longer than a return may take"},
	} {
		_, err := Parse("sluice.yaml", []byte(strings.Replace(regional, tt.from, tt.to, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
