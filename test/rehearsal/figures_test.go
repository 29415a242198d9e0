package rehearsal

import (
	"bytes"
	"math"
	"testing"

	"sluice/internal/config"
	"sluice/internal/tabletop"
	"sluice/internal/tabletop/report"
)

// document is the machine-readable report of a run.
func document(t *testing.T, r *tabletop.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.JSON(&b, []*tabletop.Result{r}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// stream is a Poisson stream of requests of fixed lengths.
type stream struct{ rate, input, output float64 }

// near holds a rate of tokens to what streams ask for within three standard
// deviations: the number of requests of a stream in a time is Poisson, so that the
// variance of its tokens is n·L².
func near(t *testing.T, what string, got, seconds float64, tokens func(stream) float64, streams ...stream) {
	t.Helper()
	mean, variance := 0.0, 0.0
	for _, s := range streams {
		mean += s.rate * tokens(s)
		variance += s.rate * tokens(s) * tokens(s) / seconds
	}
	if most := 3 * math.Sqrt(variance); math.Abs(got-mean) > most {
		t.Errorf("%s: %.1f tokens/s, want %.1f ± %.1f", what, got, mean, most)
	}
}

func input(s stream) float64  { return s.input }
func output(s stream) float64 { return s.output }

// demand holds a phase to the streams that it is made of.
func demand(t *testing.T, r *tabletop.Result, phase string, streams ...stream) {
	t.Helper()
	p := phaseOf(t, r, phase)
	seconds := (p.To - p.From).Seconds()
	near(t, phase+": input", p.All.InputTokens, seconds, input, streams...)
	near(t, phase+": output", p.All.OutputTokens, seconds, output, streams...)
	near(t, phase+": requests", float64(p.All.Requests)/seconds, seconds, func(stream) float64 { return 1 }, streams...)
}

// fleetOf is a scenario of one stream on n replicas.
const fleetOf = `
length: 5m10s
warmup: 10s
gateway:
  providers: {gpus: {dialect: openai, engine: vllm, price: free}}
  pools:
    chat:
      backends:
        - &gpu {name: gpu-1, provider: gpus, model: m, capacity: {concurrency: 256, kv_tokens: 443k}}
        - {<<: *gpu, name: gpu-2}
        - {<<: *gpu, name: gpu-3}
        - {<<: *gpu, name: gpu-4}
        - {<<: *gpu, name: gpu-5}
        - {<<: *gpu, name: gpu-6}
        - {<<: *gpu, name: gpu-7}
        - {<<: *gpu, name: gpu-8}
  models: {chat: {pools: [chat]}}
  tenants: {app: {}}
fleet: {chat: {profile: llama-3.1-8b-1xh100}}
traffic:
`

// 30 requests/s of 2,000 in and 300 out are 60,000 input tokens/s and 9,000 output
// tokens/s.
func TestFigureOfThirtyRequests(t *testing.T) {
	long(t)
	t.Parallel()
	s := written(t, fleetOf+"  - {tenant: app, arrivals: 30/s, input: 2k, output: 300, max_tokens: 300}\n")
	for seed := 1; seed <= seeds(t); seed++ {
		r := play(t, s, seed)
		demand(t, r, tabletop.PhaseWhole, stream{30, 2000, 300})
	}
}

// 120 requests/s of 800 in and 300 out are 96,000 input tokens/s and 36,000 output
// tokens/s. Eight replicas of 30,000 input tokens/s hold it: 40 % of what they can
// prefill, and everything that is asked for is served.
func TestFigureOfEightGPUs(t *testing.T) {
	long(t)
	t.Parallel()
	s := written(t, fleetOf+"  - {tenant: app, arrivals: 120/s, input: 800, output: 300, max_tokens: 300, target: {ttft: 2s, tpot: 100ms}}\n")
	load := stream{120, 800, 300}
	r := play(t, s, 1)
	demand(t, r, tabletop.PhaseWhole, load)
	p := phaseOf(t, r, tabletop.PhaseWhole)
	sum := 0.0
	for _, b := range p.Backends {
		sum += float64(b.Prefill) / 1000 / 8
	}
	const want = 96_000.0 / 8 / 30_000
	if off := 3*math.Sqrt(120*300)/(120*300) + 0.005; math.Abs(sum-want) > want*off {
		t.Errorf("the fleet prefills %.1f %% of what it could, want %.1f %%", 100*sum, 100*want)
	}
	if p.All.SLO < 990 || p.All.Rejected > 0 {
		t.Errorf("over water, and yet %d permille are good and %d rejected", p.All.SLO, p.All.Rejected)
	}
	near(t, "served", p.All.Served, (p.To - p.From).Seconds(), output, load)
}

// play runs a scenario of a test under the shipped policy.
func play(t *testing.T, s *tabletop.Scenario, seed int) *tabletop.Result {
	t.Helper()
	r, err := s.Run(t.Context(), tabletop.Options{Policy: config.PolicySluice, Seed: uint64(seed)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// 100 requests/s of 1k are 100,000 input tokens/s; with half of them at 20k they are
// 1,050,000: 10.5 times as many, at unchanged requests/s.
func TestFigureOfTheNoisyTenant(t *testing.T) {
	long(t)
	t.Parallel()
	s := shipped(t, "noisy-tenant", nil)
	for seed := 1; seed <= seeds(t); seed++ {
		r := run(t, s, config.PolicySluice, seed)
		demand(t, r, "before", stream{100, 1000, 100})
		demand(t, r, "after", stream{50, 1000, 100}, stream{50, 20_000, 100})
		ratio(t, r, 10.5)
	}
}

// Harbor's 20 requests/min of 1,500 in and 200 out are 500 input tokens/s and 66.7
// output tokens/s; with half of the inputs at 15,000 they are 2,750, 5.5 times as
// many, and output stays.
func TestFigureOfHarbor(t *testing.T) {
	long(t)
	t.Parallel()
	s := shipped(t, "harbor", nil)
	const half = 10.0 / 60
	for seed := 1; seed <= seeds(t); seed++ {
		r := run(t, s, config.PolicySluice, seed)
		demand(t, r, "before", stream{2 * half, 1500, 200})
		demand(t, r, "after", stream{half, 1500, 200}, stream{half, 15_000, 200})
		ratio(t, r, 5.5)
	}
}

// ratio holds how many times as many input tokens come after the event. The error of
// a ratio of two figures with relative errors a and b is at most a + b.
func ratio(t *testing.T, r *tabletop.Result, want float64) {
	t.Helper()
	before, after := phaseOf(t, r, "before"), phaseOf(t, r, "after")
	got := after.All.InputTokens / before.All.InputTokens
	// Of the second half the large requests make nearly all of the tokens.
	off := 3/math.Sqrt(float64(before.All.Requests)) + 3/math.Sqrt(float64(after.All.Requests)/2)
	if math.Abs(got-want) > want*off {
		t.Errorf("seed %d: %.2f times the input, want %.1f ± %.2f", r.Seed, got, want, want*off)
	}
}
