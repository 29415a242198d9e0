package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice"
)

// Quality says how far a fitted profile can be trusted.
type Quality struct {
	Overhead time.Duration // of every request, whatever its size: network and front end, not in the profile
	Fields   []FittedField // in the order of Profile; one that is not here was not fitted
	Missing  []string      // what could not be told, and which probe would tell it
}

// FittedField is one figure of a fitted profile.
type FittedField struct {
	Name     string // of the field of Profile
	Samples  int    // that it rests on
	Permille int64  // its standard error, of itself
	How      string
}

// Fit recovers a profile from what the probes of [Plan] gave, in any order and with
// any of them missing. A figure that cannot be told is 0, and Quality.Missing says
// why.
//
// The time to the first token of a prompt alone is
//
//	TTFT = overhead + p/PrefillRate + PrefillPerPair·p(p+1)/2
//
// of which the last term is taken only where it explains the errors of the first
// two and matters. The time per token of n requests that decode together is
//
//	t = StepBase + n·StepPerJob + n·context·StepPerToken
//
// Both are fits by least squares of relative errors to the medians of the probes,
// with outliers weighed down. Memory is the tokens in use over the share that the
// engine says is in use, or what requests held when one had to wait. Slots are the
// most requests that ran at once where others waited with memory to spare.
func Fit(samples []Sample) (Profile, Quality) {
	var p Profile
	var q Quality
	groups := grouped(samples)
	fitPrefill(groups, &p, &q)
	fitStep(groups, &p, &q)
	fitMemory(groups, &p, &q)
	return p, q
}

// group is the samples of one probe, by their medians.
type group struct {
	probe          Probe
	samples        int
	paced          int // samples with a time per token
	input, context float64
	ttft, perToken float64 // ns
	atOnce         int
	running        int // the most that the engine said; 0 where it said nothing
	waiting        bool
	kv             int64   // millionths, the most that the engine said while all decoded
	memory         float64 // tokens in use over that share
}

func grouped(samples []Sample) []group {
	by := map[Probe][]Sample{}
	for _, s := range samples {
		by[s.Probe] = append(by[s.Probe], s)
	}
	var out []group
	for probe, of := range by {
		g := group{probe: probe, samples: len(of), atOnce: probe.Concurrency}
		var input, context, ttft, perToken []float64
		for _, s := range of {
			input, ttft = append(input, float64(s.Input)), append(ttft, float64(s.TTFT))
			if s.PerToken > 0 {
				perToken, context = append(perToken, float64(s.PerToken)), append(context, float64(s.Context))
			}
			g.atOnce = min(g.atOnce, s.AtOnce)
			g.running = max(g.running, s.Reading.Running)
			if r := s.Reading; s.InUse > 0 && r.KVMillionths > g.kv {
				g.kv, g.memory = r.KVMillionths, float64(s.InUse)*1e6/float64(r.KVMillionths)
			}
			g.waiting = g.waiting || s.Reading.Waiting > 0
		}
		g.paced = len(perToken)
		g.input, g.context, g.ttft, g.perToken = median(input), median(context), median(ttft), median(perToken)
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.probe.Concurrency, b.probe.Concurrency), cmp.Compare(a.probe.Input, b.probe.Input), cmp.Compare(a.probe.Output, b.probe.Output), cmp.Compare(a.probe.Repeat, b.probe.Repeat))
	})
	return out
}

func fitPrefill(groups []group, p *Profile, q *Quality) {
	var points []point
	n := 0
	for _, g := range groups {
		if g.probe.Concurrency == 1 && g.ttft > 0 {
			points = append(points, point{[3]float64{1, g.input, g.input * (g.input + 1) / 2}, g.ttft, g.samples})
			n += g.samples
		}
	}
	const missing = "PrefillRate: it takes prompts of three sizes or more, sent alone"
	if len(points) < 3 {
		q.Missing = append(q.Missing, missing)
		return
	}
	l, ok := regress(points, [3]bool{true, true, false})
	if curved, good := regress(points, [3]bool{true, true, true}); len(points) > 3 && good && ok {
		last := points[len(points)-1]
		if part := curved.at[2] * last.x[2] / last.y; part > 0.03 && curved.at[1] > 0 && l.sse > 4*curved.sse {
			l = curved
		}
	}
	if !ok || l.at[1] <= 0 {
		q.Missing = append(q.Missing, missing)
		return
	}
	p.PrefillRate = int64(math.Round(1e9 / l.at[1]))
	p.PrefillPerPair = int64(math.Round(l.at[2] * picos))
	q.Overhead = time.Duration(l.at[0])
	q.add("PrefillRate", n, l.err[1]/l.at[1], "time to first token by length of prompt")
	if p.PrefillPerPair > 0 {
		q.add("PrefillPerPair", n, l.err[2]/l.at[2], "its part that grows with the square")
	}
}

func fitStep(groups []group, p *Profile, q *Quality) {
	var points []point
	n := 0
	for _, g := range groups {
		if g.perToken > 0 {
			jobs := float64(g.probe.Concurrency)
			points = append(points, point{[3]float64{1, jobs, jobs * g.context}, g.perToken, g.paced})
			n += g.paced
		}
	}
	if len(points) < 3 {
		q.Missing = append(q.Missing, "StepBase, StepPerJob, StepPerToken: it takes the time per token at three loads or more, of several contexts and batches")
		return
	}
	l, ok := regress(points, [3]bool{true, true, true})
	if !ok {
		q.Missing = append(q.Missing, "StepBase, StepPerJob, StepPerToken: the probes do not tell batch and context apart: send short and long prompts, alone and together")
		return
	}
	p.StepBase = time.Duration(math.Round(l.at[0]))
	p.StepPerJob = time.Duration(math.Round(l.at[1]))
	p.StepPerToken = int64(math.Round(l.at[2] * picos))
	for k, name := range []string{"StepBase", "StepPerJob", "StepPerToken"} {
		if l.at[k] > 0 {
			q.add(name, n, l.err[k]/l.at[k], "time per token by batch and context")
		} else {
			q.Missing = append(q.Missing, name+": too small to be told from the rest, taken as 0")
		}
	}
}

// fitMemory tells what bounds the batch: memory, or slots.
func fitMemory(groups []group, p *Profile, q *Quality) {
	if kv, n, err := readMemory(groups); n > 0 {
		p.KVCapacity = sluice.Tokens(kv)
		q.add("KVCapacity", n, err, "tokens in use over the share that the engine reports")
	} else if kv, n, err := fillMemory(groups); n > 0 {
		p.KVCapacity = sluice.Tokens(kv)
		q.add("KVCapacity", n, err, "what requests held when the next had to wait")
	} else {
		q.Missing = append(q.Missing, "KVCapacity: the engine's readings were not there, and no probe filled its memory: raise the budget")
	}
	most, waited := 0, false
	for _, g := range groups {
		n, waits := g.atOnce, g.atOnce < g.probe.Concurrency
		if g.waiting && g.running > 0 {
			n, waits = g.running, true
		}
		if n > most {
			most, waited = n, waits && !g.full(n, p.KVCapacity)
		}
	}
	if !waited {
		q.Missing = append(q.Missing, fmt.Sprintf("Slots: %d requests ran at once and none had to wait for a slot", most))
		return
	}
	p.Slots = most
	q.add("Slots", most, 0, "requests that ran while others waited")
}

// full reports whether n requests of the group fill nine tenths of the memory.
func (g group) full(n int, kv sluice.Tokens) bool {
	return kv > 0 && sluice.Tokens(n+1)*(g.probe.Input+g.probe.Output) > kv*9/10
}

// readMemory is the memory by the engine's own readings: of the fullest probes,
// since a share is the more exact the larger it is.
func readMemory(groups []group) (kv float64, samples int, err float64) {
	most := int64(0)
	for _, g := range groups {
		most = max(most, g.kv)
	}
	var all []float64
	for _, g := range groups {
		if g.kv > 0 && g.kv*2 >= most {
			all = append(all, g.memory)
			samples += g.samples
		}
	}
	kv = median(all)
	for _, v := range all {
		err = max(err, math.Abs(v-kv)/max(kv, 1))
	}
	return kv, samples, err
}

// fillMemory is the memory by what requests held when the next had to wait, in
// probes that ran fewer at once than another did, so that slots were not what they
// lacked. An engine that reserves the whole context held their outputs too, one
// that gives memory as it is needed hardly any: of the two the one is taken by
// which the probes agree, and the mean where only one probe tells.
func fillMemory(groups []group) (kv float64, samples int, err float64) {
	most := 0
	for _, g := range groups {
		most = max(most, g.atOnce)
	}
	var reserved, needed []float64
	best := group{}
	for _, g := range groups {
		if g.atOnce == g.probe.Concurrency || g.atOnce == most || g.atOnce == 0 {
			continue
		}
		n := float64(g.atOnce) + 0.5 // the next did not fit
		reserved = append(reserved, n*float64(g.probe.Input+g.probe.Output))
		needed = append(needed, n*float64(g.probe.Input))
		samples += g.samples
		if g.atOnce > best.atOnce {
			best = g
		}
	}
	if len(reserved) == 0 {
		return 0, 0, 0
	}
	n, in, out := float64(best.atOnce)+0.5, float64(best.probe.Input), float64(best.probe.Output)
	err = 0.5 / n
	switch r, d := spread(reserved), spread(needed); {
	case len(reserved) == 1:
		return n * (in + out/2), samples, err + out/2/(in+out)
	case r <= d:
		return n * (in + out), samples, err
	}
	return n * in, samples, err
}

// spread is the range of positive values, of their median.
func spread(v []float64) float64 { return (slices.Max(v) - slices.Min(v)) / median(v) }

func (q *Quality) add(name string, samples int, err float64, how string) {
	q.Fields = append(q.Fields, FittedField{Name: name, Samples: samples, Permille: int64(math.Ceil(err * 1000)), How: how})
}
