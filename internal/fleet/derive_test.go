package fleet

import (
	"testing"

	"sluice"
)

// What a measured row is of.
const (
	linear     = iota // input tokens/s of the linear layers alone, in batches of 2,048
	prefill           // input tokens/s of prefill, at prompts of 2,048
	throughput        // input tokens/s of requests of 2,048 in and 128 out at full memory
	memory            // tokens of key-value memory
)

type measured struct {
	name      string
	what      int
	model     string
	gpu       string
	tp        int64
	precision Precision
	want      int64
	fit       bool // else held out
}

// rows are published measurements, in the order of their publication's table; of
// each GPU type every other row fits its efficiency.
func rows() []measured {
	return []measured{
		{"llm-d, vLLM", prefill, "qwen3-32b", "h100", 2, BF16, 15_928, true},
		{"llm-d, SGLang", prefill, "qwen3-32b", "h100", 2, BF16, 15_360, false},
		{"TensorRT-LLM", throughput, "llama-3.1-8b", "h100", 1, FP8, 3450 * 16, true},
		{"TensorRT-LLM", throughput, "llama-3.3-70b", "h100", 2, FP8, 762 * 16, false},
		{"TensorRT-LLM", throughput, "llama-3.1-405b", "h100", 8, FP8, 453 * 16, true},
		{"Vidur", linear, "llama-2-7b", "h100", 1, BF16, 50_500, false},
		{"Vidur", linear, "llama-2-70b", "h100", 4, BF16, 18_000, true},
		{"Vidur", linear, "llama-2-70b", "h100", 8, BF16, 32_100, false},
		{"llm-d, Qwen3-VL", prefill, "qwen3-32b", "h200", 2, BF16, 15_751, true},
		{"TensorRT-LLM", throughput, "llama-3.3-70b", "h200", 1, FP8, 442 * 16, false},
		{"Vidur", linear, "llama-3.1-8b", "a100", 1, BF16, 14_100, true},
		{"Vidur", linear, "llama-3.3-70b", "a100", 4, BF16, 6000, false},
		{"Vidur", linear, "llama-3.3-70b", "a100", 8, BF16, 11_000, true},
		{"llm-d", memory, "qwen3-32b", "h100", 2, BF16, 307_328, false}, // nothing is fitted for memory
	}
}

func find(t *testing.T, model, gpu string) (m Model, g GPU) {
	t.Helper()
	for _, x := range Models() {
		if x.Name == model {
			m = x
		}
	}
	for _, x := range GPUs() {
		if x.Name == gpu {
			g = x
		}
	}
	if m.Name == "" || g.Name == "" {
		t.Fatalf("no %s or no %s", model, gpu)
	}
	return m, g
}

// predict is the model's answer to a row at an efficiency.
func (r measured) predict(t *testing.T, efficiency int64) int64 {
	m, g := find(t, r.model, r.gpu)
	g.Efficiency = efficiency
	p, err := Derive(m, g, r.tp, r.precision)
	if err != nil {
		t.Fatal(err)
	}
	switch r.what {
	case linear:
		return efficiency * g.BF16 * r.tp * 1_000_000 / (2 * m.ActiveParams)
	case prefill:
		return 2048 * 1_000_000_000 / int64(p.Prefill(0, 2048))
	case throughput:
		return 2048 * rate(p, 2048, 128) / 1000
	}
	return int64(p.KVCapacity)
}

// rate is the requests per 1,000 s of an engine that is full of requests of this
// shape, each of which takes its prefill and its share of the steps. The attention
// of the engine that was measured moves 1.3 times the context's bytes, the least
// of the range that Derive takes the most of: with that, its decode-bound rows on
// one H100 come out within 1 %, see TestWhatDeriveDoesNotCover.
func rate(p Profile, in, out sluice.Tokens) int64 {
	jobs := int64(p.KVCapacity / (in + out))
	p.StepPerToken = p.StepPerToken * 1300 / kvTraffic
	step := p.Step(jobs, sluice.Tokens(jobs)*(in+out/2))
	return 1_000_000_000_000 / (int64(p.Prefill(0, in)) + int64(step)*int64(out)/jobs)
}

// off is how far the prediction is from the measurement, in thousandths of it.
func (r measured) off(t *testing.T, efficiency int64) int64 {
	return (r.predict(t, efficiency) - r.want) * 1000 / r.want
}

// One efficiency per GPU type: the one whose worst error over the rows that fit it
// is the least. Every row, held out or not, is then met: memory within 5 %, prefill
// within 10 %.
func TestDeriveMeetsTheMeasuredRows(t *testing.T) {
	for _, g := range GPUs() {
		fitted, least := int64(0), int64(1<<62)
		for e := int64(300); e <= 900; e++ {
			worst := int64(0)
			for _, r := range rows() {
				if r.gpu == g.Name && r.fit {
					worst = max(worst, r.off(t, e), -r.off(t, e))
				}
			}
			if worst < least {
				fitted, least = e, worst
			}
		}
		if g.Efficiency != fitted {
			t.Errorf("%s has efficiency %d, its rows fit %d", g.Name, g.Efficiency, fitted)
		}
	}
	for _, r := range rows() {
		_, g := find(t, r.model, r.gpu)
		bound := int64(100)
		if r.what == memory {
			bound = 50
		}
		off := r.off(t, g.Efficiency)
		if off > bound || off < -bound {
			t.Errorf("%s, %s on %d × %s: got %d, measured %d", r.name, r.model, r.tp, r.gpu, r.predict(t, g.Efficiency), r.want)
		}
		t.Logf("%-15s %-15s %d × %s %s: %d for %d, %+.1f %%, fits: %t", r.name, r.model, r.tp, r.gpu, r.precision, r.predict(t, g.Efficiency), r.want, float64(off)/10, r.fit)
	}
}

// The weights' part of a step against the measured floor of the linear layers, up
// to four GPUs; with eight the floor is 15 to 18 % above.
func TestStepFloor(t *testing.T) {
	for _, r := range []struct {
		model, gpu string
		tp         int64
		want       int64 // µs
	}{
		{"llama-2-7b", "h100", 1, 5700},
		{"llama-2-70b", "h100", 4, 14_300},
		{"llama-3.1-8b", "a100", 1, 9700},
		{"llama-3.3-70b", "a100", 4, 24_900},
	} {
		m, g := find(t, r.model, r.gpu)
		got := picosAt(2*m.ActiveParams/1000*weightTraffic, g.Bandwidth*r.tp) / 1_000_000
		if off := (got - r.want) * 1000 / r.want; off > 60 || off < -60 {
			t.Errorf("%s on %d × %s: got %d µs, measured %d", r.model, r.tp, r.gpu, got, r.want)
		}
	}
}

// What the model says of rows that it is not meant for, so that the package
// comment can say how far off it is. TPU and CPU rows have no GPU here.
func TestWhatDeriveDoesNotCover(t *testing.T) {
	m, g := find(t, "gpt-oss-120b", "h100")
	p, err := Derive(m, g, 1, MXFP4)
	if err != nil {
		t.Fatal(err)
	}
	// Routing and uneven experts cost a mixture more than its arithmetic.
	if got := 2048 * 1_000_000_000 / int64(p.Prefill(0, 2048)); got < 39_065*13/10 {
		t.Errorf("a mixture of experts prefills %d tokens/s, measured 39,065: is it covered now?", got)
	}
	// Output tokens/s, bound by decode: one GPU comes out right; several wait for
	// each other in every layer, which the model leaves out.
	for _, r := range []struct {
		model    string
		tp       int64
		in, out  sluice.Tokens
		want     int64
		from, to int64 // permille of the measurement
	}{
		{"llama-3.1-8b", 1, 128, 2048, 22_714, 990, 1010},
		{"llama-3.1-8b", 1, 1000, 1000, 15_220, 990, 1010},
		{"llama-3.3-70b", 2, 128, 2048, 6651, 1100, 1200},
		{"llama-3.1-405b", 8, 128, 2048, 4340, 1600, 1800},
	} {
		m, g := find(t, r.model, "h100")
		p, err := Derive(m, g, r.tp, FP8)
		if err != nil {
			t.Fatal(err)
		}
		got := rate(p, r.in, r.out) * int64(r.out) / 1000
		if part := got * 1000 / r.want; part < r.from || part > r.to {
			t.Errorf("%s on %d, %d in and %d out: got %d, %d ‰ of the measurement, want %d to %d", r.model, r.tp, r.in, r.out, got, part, r.from, r.to)
		}
	}
}

func TestDeriveRefuses(t *testing.T) {
	for _, tt := range []struct {
		model, gpu string
		tp         int64
		precision  Precision
		want       string
	}{
		{"llama-3.3-70b", "h100", 1, BF16, "llama-3.3-70b in bf16 does not fit into 1 × h100: its weights are 141 GB"},
		{"llama-3.3-70b", "a100", 4, FP8, "a100 has no fp8 arithmetic: use bf16"},
		{"qwen3-32b", "h100", 2, MXFP4, "qwen3-32b is not published in mxfp4: use bf16 or fp8"},
		{"qwen3-32b", "h100", 16, BF16, "16 GPUs: a replica has 1 to 8 of one node"},
	} {
		m, g := find(t, tt.model, tt.gpu)
		if _, err := Derive(m, g, tt.tp, tt.precision); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
