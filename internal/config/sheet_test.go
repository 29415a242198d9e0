package config

import (
	"strings"
	"testing"

	"sluice/internal/capacity"
)

const mixSheet = `gpus: 4
lose: 25%
rps: 100
before:
  - {tenant: acme, share: 50%, input: 1k, output: 100}
  - {tenant: rest, share: 50%, input: {mean: 1000, p50: 800, p90: 2k, p99: 6k, long: [{share: 1%, tokens: 100k}]}, output: {mean: 100}}
after:
  - {tenant: acme, rpm: 3000, input: "20k", output: 100, cache_hit: 50%, retries: 10%}
`

func TestSheet(t *testing.T) {
	var m capacity.MixFile
	if err := ReadSheet("mix.yaml", []byte(mixSheet), &m, nil); err != nil {
		t.Fatal(err)
	}
	before, after, err := m.Workloads()
	if err != nil {
		t.Fatal(err)
	}
	if m.GPUs != 4 || len(before) != 2 || len(after) != 1 || before[1].Input.P90 != 2000 || before[1].Input.Long[0].Tokens != 100_000 {
		t.Errorf("got %+v", m)
	}
	for i, w := range append(before, after...) {
		if w.Rate.Cmp(capacity.Int(50)) != 0 {
			t.Errorf("row %d: got %s requests/s, want 50", i, w.Rate)
		}
	}
}

// TestSheetMistakes says where, what and how to mend it, all at once.
func TestSheetMistakes(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		into       Sheet
		want       []string
	}{
		{"mix", "gpu: 4\nlose: 100%\nbefore:\n  - {tenant: a, rps: -3, input: {mean: 1000, p9: 2k}, output: 1}\n  - {rps: 1, input: p50=9, output: 1, rpm: 3}\n  - {rps: 1, input: {p50: 9, p90: 3}}\n", &capacity.MixFile{}, []string{
			`f.yaml:1:1: gpu: unknown field`, `did you mean "gpus"`,
			`f.yaml:2:7: lose: is the whole fleet`, `below 100%`,
			`f.yaml:4:22: before[0].rps: "-3" is negative`, `20/min`,
			`before[0].input.p9: unknown field`, `did you mean "p90"`,
			`before[1].rpm: stands beside rps`, `keep one`,
			`before[2].output: is missing`,
			`before[2].input: has p90 of 3 below p50 of 9`, `p50 ≤ p90`,
		}},
		{"shares", "rps: 10\nbefore:\n  - {share: 60%, input: 1k, output: 1}\n  - {share: 60%, input: 2k, output: 1}\n", &capacity.MixFile{}, []string{
			`f.yaml:2:1: before: has shares of 120% of the file's rps`, `100% at most`,
		}},
		{"allocation", "gpus: 0\nmodels:\n  - {name: a, profile: p, weight: -1, demand: [{input: 1, output: 1}]}\n  - {name: a, profile: p, headroom: 100%, demand: []}\n", &capacity.AllocationFile{}, []string{
			`f.yaml:1:7: gpus: is not between`, `models[0].weight: is -1, and not between`, `models[0].demand[0].rps: is missing`, `models[1].name: "a" is listed twice`, `models[1].headroom: is all`,
		}},
		{"replica", "prefill_rate: 0\nstep_base: 8\n", &ReplicaFile{}, []string{`f.yaml:1:15: prefill_rate: would never answer`, `step_base: "8" is not a time`}},
		{"empty", "", &capacity.MixFile{}, []string{"f.yaml:1:1: the file is empty"}},
	} {
		err := ReadSheet("f.yaml", []byte(tc.text), tc.into, nil)
		if err == nil {
			t.Errorf("%s: no mistake was found", tc.name)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not told in\n%s", tc.name, want, err)
			}
		}
	}
}
