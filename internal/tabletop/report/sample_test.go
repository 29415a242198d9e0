package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"sluice"
	"sluice/internal/tabletop"
)

// shape is what a made-up result looks like.
type shape struct {
	policies []string
	tenants  int // beside noisy and quiet
	buckets  int
	names    func(i int) string // of tenants; nil numbers them
	partial  bool
}

// made is results with curves like those of a rehearsal: a tenant begins to send
// long prompts, what has no defence drowns, and recovers slowly.
func made(s shape) []*tabletop.Result {
	if s.names == nil {
		s.names = func(i int) string { return fmt.Sprintf("tenant-%02d", i) }
	}
	var out []*tabletop.Result
	for i, name := range s.policies {
		out = append(out, madeOne(s, name, i == 1))
	}
	return out
}

const madeLength = 10 * time.Minute

func madeOne(s shape, policy string, drowns bool) *tabletop.Result {
	rng := rand.New(rand.NewPCG(7, uint64(len(policy))))
	r := &tabletop.Result{
		Scenario: "noisy-tenant", About: "One tenant raises half of its prompts to 20k tokens at unchanged requests per second: the others keep their targets.",
		Policy: policy, Seed: 7, Warmup: time.Minute, Length: madeLength, Ended: madeLength + 20*time.Second, Passed: !drowns, Partial: s.partial,
		Marks: []tabletop.Mark{{At: 3 * time.Minute, Label: "noisy sends 20k prompts"}, {At: 3*time.Minute + 5*time.Second, Label: "operator lowers noisy's class"}, {At: 7 * time.Minute, Label: "noisy is as before"}},
	}
	for i, p := range []struct {
		name     string
		from, to time.Duration
	}{{"before", time.Minute, 3 * time.Minute}, {"noisy", 3 * time.Minute, 7 * time.Minute}, {"after", 7 * time.Minute, madeLength}} {
		r.Phases = append(r.Phases, madePhase(s, p.name, p.from, p.to, drowns && i > 0))
	}
	for i, text := range []string{"interactive.ttft.p99 < 800ms", "tenant.quiet.slo >= 99%", "retries.amplification <= 1.1", "lost == 0", "fairness.gap <= bound"} {
		for _, ph := range []string{"before", "noisy", "after"} {
			bad := drowns && ph != "before" && i < 3
			got := []string{"612ms", "99.7%", "1.02", "0", "31,200 of 98,304"}[i]
			if bad {
				got = []string{"41.2s", "31.4%", "2.71"}[i]
			}
			r.Verdicts = append(r.Verdicts, tabletop.Verdict{Text: text, Phase: ph, Got: got, Want: []string{"< 800ms", ">= 99%", "<= 1.1", "== 0", "<= bound"}[i], Passed: !bad, Line: 40 + i})
		}
	}
	r.Series = madeSeries(s, rng, drowns)
	return r
}

func madeFigures(rate float64, over time.Duration, bad bool) tabletop.Figures {
	n := int64(rate * over.Seconds())
	f := tabletop.Figures{Requests: n, Good: n * 997 / 1000, Completed: n * 998 / 1000, Cancelled: n / 1000, Left: n / 2000, Impatient: n/1000 - n/2000, Rejected: n / 1000}
	ttft, wait := 240*time.Millisecond, 12*time.Millisecond
	if bad {
		f.Good, f.Completed, f.Rejected, f.Impatient, f.Cancelled, f.Left = n*31/100, n*60/100, n*20/100, n*20/100, n*20/100, 0
		ttft, wait = 14*time.Second, 13*time.Second
	}
	f.Reasons = []tabletop.ReasonCount{{Reason: sluice.RateLimited, Count: n / 100}, {Reason: sluice.QueueTimeout, Count: f.Rejected}}
	if n > 0 {
		f.SLO = f.Good * 1000 / n
		f.PerGood = sluice.Nano(1_234_567 * n / max(1, f.Good))
	}
	f.Goodput = float64(f.Good) / over.Seconds()
	f.InputTokens, f.OutputTokens, f.Served = rate*1000, rate*300, rate*295
	spread := func(mid time.Duration) tabletop.Percentiles {
		return tabletop.Percentiles{Count: n, Mean: mid * 11 / 10, P50: mid, P90: mid * 17 / 10, P99: mid * 26 / 10, P999: mid * 4, Max: mid * 5}
	}
	f.TTFT, f.TPOT, f.E2E, f.Queue = spread(ttft), spread(21*time.Millisecond), spread(ttft*20), spread(wait)
	f.Work, f.Cost = n*1300, sluice.Nano(1_234_567*n)
	return f
}

func madePhase(s shape, name string, from, to time.Duration, bad bool) tabletop.Phase {
	over := to - from
	p := tabletop.Phase{Name: name, From: from, To: to, All: madeFigures(100, over, bad)}
	for i, c := range []string{"interactive", "standard", "batch"} {
		f := madeFigures(60/float64(i+1), over, bad)
		f.Share, f.FairShare = 1000/int64(i+2), 1000/int64(i+2)
		p.Classes = append(p.Classes, tabletop.Named{Name: c, Figures: f})
	}
	tenants := []string{"noisy", "quiet"}
	for i := range s.tenants {
		tenants = append(tenants, s.names(i))
	}
	for i, t := range tenants {
		f := madeFigures(50/float64(i+1), over, bad && t != "noisy")
		f.Share, f.FairShare = 1000/int64(len(tenants)), 1000/int64(len(tenants))
		if bad && t == "noisy" {
			f.Share = 900
		}
		p.Tenants = append(p.Tenants, tabletop.Named{Name: t, Figures: f})
		p.Sources = append(p.Sources, tabletop.Named{Name: t + " chat", Figures: f}, tabletop.Named{Name: t + " jobs", Figures: f})
	}
	for i := range 4 {
		p.Backends = append(p.Backends, tabletop.BackendUse{Backend: sluice.BackendID(fmt.Sprintf("gpu-%d", i)), Attempts: 3000, Failed: int64(i), Busy: 930, KVMean: 610, KVMax: 955, Prefill: 720, Hits: 310, Prefilled: 690_000, HitTokens: 310_000})
	}
	p.Retries = tabletop.Retries{Admitted: p.All.Requests, Attempts: p.All.Requests * 102 / 100, Dispatched: p.All.Requests, Amplification: 1020, Refused: 4, Resubmitted: 31}
	if bad {
		p.Retries = tabletop.Retries{Admitted: p.All.Requests * 2, Attempts: p.All.Requests * 5, Dispatched: p.All.Requests * 184 / 100, Amplification: 2712, Resubmitted: 12_400}
	}
	p.Fairness = []tabletop.FairnessGap{{Pool: "chat", Class: "interactive", Gap: 31_200, Bound: 98_304, A: "noisy", B: "quiet"}}
	p.Books = tabletop.Books{Admitted: p.All.Requests, Settled: p.All.Requests, Cost: p.All.Cost}
	return p
}

func madeSeries(s shape, rng *rand.Rand, drowns bool) tabletop.Series {
	out := tabletop.Series{Bucket: madeLength / time.Duration(max(1, s.buckets)), Count: s.buckets}
	lines := [][2]string{{"class", "interactive"}, {"class", "standard"}, {"class", "batch"}, {"tenant", "noisy"}, {"tenant", "quiet"}}
	for i := range s.tenants {
		lines = append(lines, [2]string{"tenant", s.names(i)})
	}
	for i, l := range lines {
		out.Groups = append(out.Groups, madeLine(s, rng, l[0], l[1], drowns, 60/float64(1+i%5), out.Bucket))
	}
	for _, p := range []sluice.PoolID{"chat", "hosted"} {
		line := tabletop.PoolLine{Pool: p}
		for b := range s.buckets {
			load, up := trouble(float64(b)/float64(s.buckets), drowns), int64(8)
			if load > 0.5 {
				up = 6
			}
			line.Waiting = append(line.Waiting, int64(800*load))
			line.Running = append(line.Running, int64(200+56*load))
			line.KVUsed = append(line.KVUsed, int64(500+480*load))
			line.Up = append(line.Up, up)
			line.Demand = append(line.Demand, int64(700*load))
		}
		out.Pools = append(out.Pools, line)
	}
	return out
}

// trouble is from 0 to 1 over the part x of the run.
func trouble(x float64, drowns bool) float64 {
	switch {
	case x < 0.3:
		return 0
	case !drowns && x < 0.7:
		return 0.08
	case !drowns:
		return 0
	case x < 0.7:
		return math.Min(1, (x-0.3)*5)
	}
	return math.Max(0, 1-(x-0.7)*3)
}

func madeLine(s shape, rng *rand.Rand, kind, name string, drowns bool, rate float64, bucket time.Duration) tabletop.Line {
	l := tabletop.Line{Kind: kind, Name: name, Rejected: []tabletop.ReasonLine{{Reason: sluice.RateLimited}, {Reason: sluice.QueueFull}, {Reason: sluice.QueueTimeout}}}
	for b := range s.buckets {
		x := float64(b) / float64(s.buckets)
		bad := trouble(x, drowns)
		noise := func() float64 { return 0.85 + 0.3*rng.Float64() }
		n := int64(rate * bucket.Seconds() * noise())
		long := 1.0
		if (name == "noisy" || kind == "class") && x >= 0.3 && x < 0.7 {
			long = 10.5
		}
		l.Requests = append(l.Requests, n)
		l.Good = append(l.Good, int64(float64(n)*(1-0.9*bad)))
		l.Input = append(l.Input, int64(float64(n)*1000*long*noise()))
		p50 := time.Duration(float64(180*time.Millisecond) * noise() * math.Exp(4.2*bad))
		p99 := time.Duration(float64(p50) * (2 + noise()))
		if name == "batch" && x > 0.5 && x < 0.55 {
			p50, p99 = -1, -1
		}
		l.TTFT50, l.TTFT99 = append(l.TTFT50, p50), append(l.TTFT99, p99)
		l.TPOT50 = append(l.TPOT50, time.Duration(float64(19*time.Millisecond)*noise()*(1+bad)))
		l.TPOT99 = append(l.TPOT99, time.Duration(float64(33*time.Millisecond)*noise()*(1+2*bad)))
		l.QueueAge = append(l.QueueAge, time.Duration(float64(20*time.Second)*bad*noise()))
		l.KV = append(l.KV, int64(rate*2000*noise()*(1+3*bad)))
		l.Rejected[0].Counts = append(l.Rejected[0].Counts, int64(float64(n)*0.02*noise()))
		l.Rejected[1].Counts = append(l.Rejected[1].Counts, int64(float64(n)*0.2*bad*noise()))
		l.Rejected[2].Counts = append(l.Rejected[2].Counts, int64(float64(n)*0.4*bad*noise()))
		l.Share = append(l.Share, int64(200*noise()+600*bad))
		l.FairShare = append(l.FairShare, 210)
		l.PerGood = append(l.PerGood, sluice.Nano(1_200_000*noise()/(1-0.9*bad)))
	}
	return l
}
