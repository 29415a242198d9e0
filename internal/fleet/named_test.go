package fleet

import (
	"testing"
	"time"

	"sluice"
)

// The seeds agree with the catalog that they come from, per output token by batch
// at 1,500 tokens of context, within 5 %.
func TestSeedsMatchTheirCatalog(t *testing.T) {
	batches := []int64{1, 32, 128, 256}
	for name, want := range map[string]struct {
		kv, prefillFrom, prefillTo int64
		steps                      [4]time.Duration // µs
	}{
		"llama-3.1-8b-1xh100":      {443_000, 30_000, 30_000, [4]time.Duration{8000, 11_700, 23_000, 38_000}},
		"llama-3.1-8b-1xa100":      {443_000, 9700, 9700, [4]time.Duration{12_400, 18_000, 37_000, 61_000}},
		"qwen3-32b-2xh100":         {315_000, 15_500, 15_500, [4]time.Duration{16_000, 20_000, 31_000, 46_000}},
		"llama-3.3-70b-4xh100":     {473_000, 12_000, 14_000, [4]time.Duration{17_500, 20_000, 27_000, 37_000}},
		"llama-3.3-70b-fp8-4xh100": {1_380_000, 20_000, 20_000, [4]time.Duration{10_000, 11_000, 15_000, 20_000}},
		"llama-3.3-70b-8xh100":     {1_380_000, 20_000, 28_000, [4]time.Duration{10_000, 11_000, 15_000, 20_000}},
	} {
		p, ok := ProfileNamed(name)
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		if off := int64(p.KVCapacity) - want.kv; off > want.kv/200 || off < -want.kv/200 {
			t.Errorf("%s: memory of %d, want %d", name, p.KVCapacity, want.kv)
		}
		if p.PrefillRate < want.prefillFrom || p.PrefillRate > want.prefillTo {
			t.Errorf("%s: prefill of %d, want %d to %d", name, p.PrefillRate, want.prefillFrom, want.prefillTo)
		}
		for i, n := range batches {
			got, want := p.Step(n, sluice.Tokens(n*1500)), want.steps[i]*time.Microsecond
			if (got - want).Abs() > want/20 {
				t.Errorf("%s: %s in a batch of %d, want %s", name, got, n, want)
			}
		}
	}
}

// Every seed against what its model and GPUs derive: memory and the step alone
// within 1 %, prefill never above, and at most 30 % below.
func TestSeedsAreConservative(t *testing.T) {
	for _, n := range Profiles() {
		if n.Basis != Seed {
			continue
		}
		m, g := find(t, n.Model, n.GPU)
		d, err := Derive(m, g, n.GPUs, n.Precision)
		if err != nil {
			t.Fatal(err)
		}
		p := n.Profile
		if off := p.KVCapacity - d.KVCapacity; off > d.KVCapacity/100 || off < -d.KVCapacity/100 {
			t.Errorf("%s: memory of %d, derived %d", n.Name, p.KVCapacity, d.KVCapacity)
		}
		if got, want := p.Step(1, 1500), d.Step(1, 1500); (got - want).Abs() > want/100 {
			t.Errorf("%s: step of %s, derived %s", n.Name, got, want)
		}
		if got, want := p.Prefill(0, 2048), d.Prefill(0, 2048); got < want || got > want*143/100 {
			t.Errorf("%s: 2,048 tokens prefill in %s, derived %s", n.Name, got, want)
		}
		if p.StartUp.Truncate(time.Second) != d.StartUp {
			t.Errorf("%s: starts in %s, derived %s", n.Name, p.StartUp, d.StartUp)
		}
	}
}

func TestEveryNamedProfileIsWhole(t *testing.T) {
	names := map[string]bool{}
	for i, n := range Profiles() {
		if got := ProfileNames()[i]; got != n.Name {
			t.Errorf("got %s in the place of %s", got, n.Name)
		}
		p := n.Profile
		if p.PrefillRate < 1000 || p.KVCapacity < 10_000 || p.StepBase < time.Millisecond || p.StepPerJob <= 0 || p.StepPerToken <= 0 || p.StartUp < time.Minute || n.GPUs < 1 {
			t.Errorf("%s: %+v", n.Name, p)
		}
		if names[n.Name] {
			t.Errorf("%s is there twice", n.Name)
		}
		names[n.Name] = true
	}
	if _, ok := ProfileNamed("llama"); ok {
		t.Error("found a profile by half a name")
	}
}
