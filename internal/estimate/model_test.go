package estimate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"sluice"
)

func key(tenant, model, task string) Key {
	return Key{Tenant: sluice.TenantID(tenant), Model: model, Task: task}
}

// TestTrace replays testdata/model.dd: observations and what is expected after
// them.
func TestTrace(t *testing.T) {
	var m *Model
	datadriven.RunTest(t, "testdata/model.dd", func(t *testing.T, d *datadriven.TestData) string {
		var tenant, model, task string
		arg := func(name string, into any) {
			if d.HasArg(name) {
				d.ScanArgs(t, name, into)
			}
		}
		arg("tenant", &tenant)
		arg("model", &model)
		arg("task", &task)
		k := key(tenant, model, task)
		var raw, reported, bound int64
		n := 1
		arg("raw", &raw)
		arg("reported", &reported)
		arg("bound", &bound)
		arg("times", &n)
		switch d.Cmd {
		case "new":
			o := Options{}
			arg("keys", &o.Keys)
			m = New(o)
		case "input":
			for range n {
				m.ObserveInput(k, sluice.Tokens(raw), sluice.Tokens(reported))
			}
		case "counted":
			for range n {
				m.ObserveCounted(k, sluice.Tokens(raw), sluice.Tokens(reported))
			}
		case "output":
			for range n {
				m.ObserveOutput(k, sluice.Tokens(reported))
			}
		case "expect":
			if bound > 0 {
				e, h := m.Output(k, sluice.Tokens(bound))
				return fmt.Sprintf("output %d, holds %d\n", e, h)
			}
			r := sluice.Tokens(raw)
			return fmt.Sprintf("input %d, at most %d; counted %d\n", m.Input(k, r), m.InputUpper(k, r), m.Counted(k, r))
		default:
			d.Fatalf(t, "unknown command %q", d.Cmd)
		}
		return fmt.Sprintf("%d tenants, %d models, %d tasks\n", max(m.input.tenants.len(), m.tenants.len()), max(m.input.models.len(), m.models.len()), m.tasks.len())
	})
}

// TestConverges gives every tenant and model a hidden ratio, and noise.
func TestConverges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := New(Options{})
	for _, hidden := range []float64{0.5, 0.9, 1, 1.35, 2.6} {
		k := key(fmt.Sprint("tenant-", hidden), "model", "")
		for range 200 {
			raw := sluice.Tokens(100 + rng.IntN(20_000))
			noise := 1 + 0.10*(rng.Float64()*2-1)
			m.ObserveInput(k, raw, sluice.Tokens(float64(raw)*hidden*noise))
			m.ObserveCounted(k, raw, sluice.Tokens(float64(raw)*hidden*noise))
		}
		got := float64(m.Input(k, 1_000_000)) / 1e6
		if got < hidden*0.97 || got > hidden*1.03 {
			t.Errorf("hidden ratio %.2f: learned %.3f", hidden, got)
		}
		if upper := float64(m.InputUpper(k, 1_000_000)) / 1e6; upper < got*1.05 || upper > got*1.25 {
			t.Errorf("hidden ratio %.2f, noise of ±10 %%: the upper estimate is %.3f", hidden, upper)
		}
	}
}

// TestAbortedStreamsLandWithinTwoPercent sums streams that were cut, after some
// that completed: cD4's part of this package.
func TestAbortedStreamsLandWithinTwoPercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := New(Options{})
	k := key("acme", "sim-large", "")
	report := func(counted int) sluice.Tokens {
		return sluice.Tokens(float64(counted) * 1.27 * (0.94 + 0.12*rng.Float64()))
	}
	var estimated, truth sluice.Tokens
	for i := range 2000 {
		n := 20 + rng.IntN(800)
		if i > 100 && i%4 == 0 {
			estimated += m.Counted(k, sluice.Tokens(n))
			truth += report(n)
			continue
		}
		m.ObserveCounted(k, sluice.Tokens(n), report(n))
	}
	if off := float64(estimated)/float64(truth) - 1; off < -0.02 || off > 0.02 {
		t.Errorf("estimated %d, truly %d: %+.2f %%", estimated, truth, 100*off)
	}
}

func TestWildReportsAreBounded(t *testing.T) {
	m := New(Options{})
	k := key("acme", "m", "")
	for range 100 {
		m.ObserveInput(k, 1000, 1100)
	}
	m.ObserveInput(k, 1000, 1<<62)
	if got := m.Input(k, 1000); got > 1130 {
		t.Errorf("one wild report moved 1100 to %d", got)
	}
	for range 1000 {
		m.ObserveInput(k, 1, 1<<62)
	}
	if got := m.Input(k, 1000); got > 4000 {
		t.Errorf("wild reports moved the ratio to %d in a thousand", got)
	}
	for range 1000 {
		m.ObserveInput(k, 1<<62, 1)
	}
	if got := m.Input(k, 1000); got < 250 {
		t.Errorf("tiny reports moved the ratio to %d in a thousand", got)
	}
	m.ObserveInput(k, 0, 5)
	m.ObserveInput(k, 5, -1)
	m.ObserveOutput(k, -1)
	m.ObserveCounted(k, -5, 5)
	if got := m.Input(k, -7); got != 0 {
		t.Errorf("a negative count gave %d", got)
	}
	if got := m.InputUpper(k, 1<<62); got <= 0 {
		t.Errorf("a huge count gave %d", got)
	}
}

func TestFallbacks(t *testing.T) {
	m := New(Options{})
	known := key("acme", "m", "summary")
	for range 100 {
		m.ObserveInput(known, 1000, 1300)
		m.ObserveOutput(known, 100)
	}
	tests := []struct {
		name  string
		k     Key
		input sluice.Tokens
		hold  sluice.Tokens
	}{
		{"known", known, 1300, 103},
		{"another task", key("acme", "m", "chat"), 1300, 103},
		{"another tenant", key("blue", "m", "summary"), 1300, 103},
		{"another model starts from all models' ratio", key("acme", "n", ""), 1300, 512},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := m.Input(tt.k, 1000); got < tt.input-1 || got > tt.input+1 {
				t.Errorf("input: got %d, want %d", got, tt.input)
			}
			if _, got := m.Output(tt.k, 32_000); got != tt.hold {
				t.Errorf("hold: got %d, want %d", got, tt.hold)
			}
		})
	}
	if e, h := m.Output(key("x", "y", ""), 64); e > 64 || h != 64 {
		t.Errorf("cold below its bound: got %d, %d", e, h)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const keys = 100
	m := New(Options{Keys: keys})
	for i := range 100_000 {
		k := key(fmt.Sprint("t", i), "m", fmt.Sprint("task", i))
		m.ObserveInput(k, 100, 100)
		m.ObserveOutput(k, 10)
		m.Input(key(fmt.Sprint("unseen", i), fmt.Sprint("model", i), ""), 1)
	}
	for name, n := range map[string]int{
		"ratios": len(m.input.tenants.nodes), "tenants": len(m.tenants.nodes), "tasks": len(m.tasks.nodes), "models": len(m.models.nodes),
	} {
		if n > keys+1 {
			t.Errorf("%s: %d entries", name, n)
		}
	}
	if got := m.models.len(); got != 1 {
		t.Errorf("reads made %d models", got)
	}
}

func TestTableDropsTheLeastRecentlyUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		got := newTable[int, int](limit)
		var model []int // oldest first
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			k := rapid.IntRange(0, 9).Draw(t, "key")
			at := -1
			for i, x := range model {
				if x == k {
					at = i
				}
			}
			if at >= 0 {
				model = append(model[:at], model[at+1:]...)
			}
			if rapid.Bool().Draw(t, "put") {
				*got.put(k) = k + 1
				if model = append(model, k); len(model) > limit {
					model = model[1:]
				}
			} else {
				v := got.get(k)
				if (v != nil) != (at >= 0) || v != nil && *v != k+1 {
					t.Fatalf("get %d: got %v, model has it at %d", k, v, at)
				}
				if at >= 0 {
					model = append(model, k)
				}
			}
			if got.len() != len(model) {
				t.Fatalf("%d entries, the model has %d", got.len(), len(model))
			}
		}
	})
}

func TestHoldIsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(Options{Keys: rapid.IntRange(1, 4).Draw(t, "keys")})
		k := func() Key {
			s := rapid.SampledFrom([]string{"", "a", "b"})
			return key(s.Draw(t, "tenant"), s.Draw(t, "model"), s.Draw(t, "task"))
		}
		for range rapid.IntRange(0, 60).Draw(t, "observations") {
			m.ObserveOutput(k(), sluice.Tokens(rapid.Int64().Draw(t, "reported")))
			m.ObserveCut(k(), sluice.Tokens(rapid.Int64().Draw(t, "cut")), sluice.Tokens(rapid.Int64().Draw(t, "cut bound")))
		}
		bound := sluice.Tokens(rapid.Int64().Draw(t, "bound"))
		e, h := m.Output(k(), bound)
		if h > max(bound, 0) || e > h || e < 0 || bound > 0 && h == 0 {
			t.Fatalf("bound %d: expected %d, hold %d", bound, e, h)
		}
	})
}

// TestQuantileError holds the histogram to its documented error, against the
// sorted observations.
func TestQuantileError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		n := rapid.IntRange(1, fullCounts-1).Draw(t, "n")
		scale := rapid.Float64Range(1, 100_000).Draw(t, "scale")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		counts := map[sluice.Tokens]int{}
		sum := 0.0
		for range n {
			x := sluice.Tokens(rng.ExpFloat64()*scale) + 1
			counts[x]++
			sum += float64(x)
			h.add(x)
		}
		q := h.quantile(95)
		below := 0
		for x, c := range counts {
			if x <= q {
				below += c
			}
		}
		if below*100 < 95*n {
			t.Fatalf("%d of %d are within %d", below, n, q)
		}
		lower := 0
		for x, c := range counts {
			if float64(x) < float64(q)/1.1251-1 {
				lower += c
			}
		}
		if lower*100 >= 95*n {
			t.Fatalf("%d is more than an eighth above the quantile", q)
		}
		if mean := sum / float64(n); float64(h.mean()) < mean*0.93-1 || float64(h.mean()) > mean*1.07+1 {
			t.Fatalf("mean %.1f, got %d", mean, h.mean())
		}
	})
}

func TestBucketsAreSeamless(t *testing.T) {
	for i := range numBuckets {
		if bucket(lowerEdge(i)) != i || bucket(upperEdge(i)) != i {
			t.Fatalf("bucket %d is %d to %d, which fall in %d and %d", i, lowerEdge(i), upperEdge(i), bucket(lowerEdge(i)), bucket(upperEdge(i)))
		}
	}
	if got := bucket(1<<63 - 1); got != numBuckets-1 {
		t.Errorf("a huge output falls in %d", got)
	}
}

// TestHistogramForgets shows a change of habit taking over.
func TestHistogramForgets(t *testing.T) {
	var h histogram
	for range 5000 {
		h.add(4000)
	}
	for range 5 * fullCounts / 2 {
		h.add(50)
	}
	if got := h.quantile(95); got > 60 {
		t.Errorf("the 95th percentile is still %d", got)
	}
	if h.total < 0 || h.total > fullCounts*grain {
		t.Errorf("total is %d", h.total)
	}
}

func BenchmarkModel(b *testing.B) {
	m := New(Options{})
	k := key("acme", "m", "summary")
	for range 100 {
		m.ObserveInput(k, 1000, 1300)
		m.ObserveOutput(k, 100)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Input(k, 1000)
		m.Output(k, 32_000)
		m.ObserveInput(k, 1000, 1300)
		m.ObserveOutput(k, 100)
	}
}
