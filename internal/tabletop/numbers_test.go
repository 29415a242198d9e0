package tabletop

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

// TestWorkloads: what is asked for, and what a machine's memory holds, comes out as
// the arithmetic says.
func TestWorkloads(t *testing.T) {
	large(t)
	const seconds = 120
	for _, c := range []struct {
		name         string
		rate         float64 // requests/s
		in           Lengths
		out          sluice.Tokens
		input        float64 // tokens/s
		output       float64
		replicas     int
		within       float64 // sampling error
		arrivals     Process
		alsoInMemory bool
	}{
		{name: "30 requests/s", rate: 30, in: Lengths{Mean: 2000}, out: 300, input: 60_000, output: 9000, replicas: 6, within: 0.05, alsoInMemory: true},
		{name: "100 requests/s", rate: 100, in: Lengths{Mean: 1000}, out: 100, input: 100_000, output: 10_000, replicas: 8, arrivals: Even, within: 0.001, alsoInMemory: true},
		{name: "half of them longer", rate: 100, in: Lengths{Shape: Mixed, Parts: []Part{{500, Lengths{Mean: 1000}}, {500, Lengths{Mean: 20_000}}}}, out: 100, input: 1_050_000, output: 10_000, replicas: 8, arrivals: Even, within: 0.03},
		{name: "Harbor", rate: 20.0 / 60, in: Lengths{Mean: 1500}, out: 200, input: 500, output: 66.67, replicas: 1, arrivals: Even, within: 0.001},
		{name: "Harbor, half of them longer", rate: 20.0 / 60, in: Lengths{Shape: Mixed, Parts: []Part{{500, Lengths{Mean: 1500}}, {500, Lengths{Mean: 15_000}}}}, out: 200, input: 2750, output: 66.67, replicas: 1, arrivals: Even, within: 0.35},
		{name: "120 requests/s", rate: 120, in: Lengths{Mean: 800}, out: 300, input: 96_000, output: 36_000, replicas: 8, within: 0.04},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := tenant("a", c.rate, 0, 0)
			x.Arrivals.Process, x.Input, x.Output, x.Client = c.arrivals, c.in, Lengths{Mean: c.out}, Client{Bound: c.out}
			engine := fleet.Llama8BOnH100()
			s := world(c.replicas, engine, x)
			s.Warmup, s.Length = 20*time.Second, 20*time.Second+seconds*time.Second
			p := mustRun(t, s, Options{}).Phases[0]
			near(t, "input tokens/s", p.All.InputTokens, c.input, c.within)
			near(t, "output tokens/s", p.All.OutputTokens, c.output, c.within)
			if !c.alsoInMemory {
				return
			}
			near(t, "tokens served", p.All.Served, c.output, c.within+0.02)
			var held float64
			for _, b := range p.Backends {
				held += float64(b.KVMean) / 1000 * float64(engine.KVCapacity)
			}
			// By Little's law: requests/s × the integral of the context over a request's
			// time in the machine. A prompt is computed evenly.
			in, out := c.in.Average(), float64(c.out)
			ttft, tpot := p.All.TTFT.Mean.Seconds(), p.All.TPOT.Mean.Seconds()
			want := c.rate * (ttft*in/2 + out*tpot*(in+out/2))
			near(t, "tokens in memory", held, want, c.within+0.05)
		})
	}
}
