package tabletop

import (
	"math"
	"strconv"
	"strings"
	"time"

	"sluice"
)

// unit is what a figure is told in.
type unit uint8

const (
	unitCount unit = iota // a number, of a rate too
	unitTime              // nanoseconds
	unitShare             // a part of 1
	unitMoney             // nano-dollars
	unitRatio             // a number about 1
	unitPart              // a number of requests, or their part of all
)

func (u unit) String() string {
	return [...]string{"a number", "a duration", "a share", "an amount of money", "a ratio", "a share or number of requests"}[u]
}

func (u unit) example() string {
	return [...]string{"120 or 1.5k", "800ms", "99%", "$0.02", "1.1", "5% or 0"}[u]
}

// takes reports whether a value of another unit can be compared with.
func (u unit) takes(v unit) bool {
	switch u {
	case unitRatio:
		return v == unitCount
	case unitPart:
		return v == unitCount || v == unitShare
	}
	return u == v
}

// parseValue reads a number with its unit.
func parseValue(s string) (v float64, u unit, ok bool) {
	if s == "" || !strings.ContainsAny(s[:1], "0123456789.$+-") {
		return 0, 0, false
	}
	if money, is := strings.CutPrefix(s, "$"); is {
		n, err := sluice.ParseMoney(money)
		return float64(n), unitMoney, err == nil
	}
	if part, is := strings.CutSuffix(s, "%"); is {
		x, err := strconv.ParseFloat(part, 64)
		return x / 100, unitShare, err == nil
	}
	number, by := s, 1.0
	if n, is := strings.CutSuffix(s, "k"); is {
		number, by = n, 1e3
	} else if n, is := strings.CutSuffix(s, "M"); is {
		number, by = n, 1e6
	}
	if x, err := strconv.ParseFloat(number, 64); err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
		return x * by, unitCount, true
	}
	d, err := time.ParseDuration(s)
	return float64(d), unitTime, err == nil
}

// show writes a figure as people read it.
func (u unit) show(v float64) string {
	switch u {
	case unitTime:
		d := time.Duration(v)
		switch {
		case d >= 10*time.Second:
			return d.Round(100 * time.Millisecond).String()
		case d >= time.Second:
			return d.Round(10 * time.Millisecond).String()
		case d >= 10*time.Millisecond:
			return d.Round(100 * time.Microsecond).String()
		}
		return d.Round(time.Microsecond).String()
	case unitShare:
		return strconv.FormatFloat(math.Floor(v*100_000)/1000, 'f', -1, 64) + "%"
	case unitMoney:
		return sluice.Nano(v).String()
	case unitRatio:
		return strconv.FormatFloat(math.Ceil(v*1000)/1000, 'f', -1, 64)
	}
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// metric is a word of the grammar and where its figure is found.
type metric struct {
	name    string
	unit    unit
	stats   []string // figures of it
	plain   bool     // it is one without a stat, too
	bounded bool
	whole   bool // of the whole run: a phase means nothing to it

	figure  func(f *Figures, stat string) (float64, bool) // of all, classes, tenants and sources
	part    func(f *Figures, stat string) int64           // of unitPart: how many requests
	phase   func(p *Phase) (float64, bool)                // of all
	backend func(b *BackendUse) float64
}

// of reports whether a kind of subject has the metric.
func (m *metric) of(kind string) bool {
	switch {
	case kind == "backend":
		return m.backend != nil
	case kind == "all":
		return m.figure != nil || m.part != nil || m.phase != nil || m.whole
	case m.whole:
		return kind == "class"
	}
	return m.figure != nil || m.part != nil
}

func (m *metric) subjects() string {
	switch {
	case m.backend != nil && m.phase == nil:
		return "backends: write backend.NAME." + m.name
	case m.backend != nil:
		return "backends and of the whole: write backend.NAME." + m.name + " or " + m.name
	case m.whole:
		return "classes and of the whole: write " + m.name
	case m.phase != nil:
		return "the whole: write " + m.name
	}
	return "classes, tenants and sources"
}

var timeStats = []string{"p50", "p90", "p99", "p999", "mean", "max"}

func timed(name string, of func(f *Figures) *Percentiles) metric {
	return metric{name: name, unit: unitTime, stats: timeStats, figure: func(f *Figures, stat string) (float64, bool) {
		p := of(f)
		return float64(p.stat(stat)), p.Count > 0
	}}
}

func (p *Percentiles) stat(name string) time.Duration {
	switch name {
	case "p50":
		return p.P50
	case "p90":
		return p.P90
	case "p99":
		return p.P99
	case "p999":
		return p.P999
	case "mean":
		return p.Mean
	}
	return p.Max
}

func figure(name string, u unit, of func(f *Figures) float64) metric {
	return metric{name: name, unit: u, figure: func(f *Figures, _ string) (float64, bool) { return of(f), true }}
}

func part(name string, of func(f *Figures) int64) metric {
	return metric{name: name, unit: unitPart, part: func(f *Figures, _ string) int64 { return of(f) }}
}

func ofPhase(name string, u unit, of func(p *Phase) float64) metric {
	return metric{name: name, unit: u, phase: func(p *Phase) (float64, bool) { return of(p), true }}
}

func ofBackend(name string, u unit, of func(b *BackendUse) float64) metric {
	return metric{name: name, unit: u, backend: of}
}

// reasons is the words of rejected.REASON.
func reasons() (words []string) {
	for r := sluice.Reason(1); r < sluice.NumReasons; r++ {
		words = append(words, r.String())
	}
	return words
}

// metrics is every word there is.
var metrics = []metric{
	timed("ttft", func(f *Figures) *Percentiles { return &f.TTFT }),
	timed("tpot", func(f *Figures) *Percentiles { return &f.TPOT }),
	timed("e2e", func(f *Figures) *Percentiles { return &f.E2E }),
	timed("queue", func(f *Figures) *Percentiles { return &f.Queue }),
	{name: "slo", unit: unitShare, figure: func(f *Figures, _ string) (float64, bool) {
		n := f.Requests - f.Left
		return float64(f.Good) / float64(max(n, 1)), n > 0
	}},
	figure("requests", unitCount, func(f *Figures) float64 { return float64(f.Requests) }),
	figure("good", unitCount, func(f *Figures) float64 { return float64(f.Good) }),
	figure("goodput", unitCount, func(f *Figures) float64 { return f.Goodput }),
	figure("input_tokens_per_second", unitCount, func(f *Figures) float64 { return f.InputTokens }),
	figure("output_tokens_per_second", unitCount, func(f *Figures) float64 { return f.OutputTokens }),
	figure("served_tokens_per_second", unitCount, func(f *Figures) float64 { return f.Served }),
	figure("share", unitShare, func(f *Figures) float64 { return float64(f.Share) / 1000 }),
	figure("fair_share", unitShare, func(f *Figures) float64 { return float64(f.FairShare) / 1000 }),
	figure("cost", unitMoney, func(f *Figures) float64 { return float64(f.Cost) }),
	{name: "cost_per_good", unit: unitMoney, figure: func(f *Figures, _ string) (float64, bool) { return float64(f.PerGood), f.Good > 0 }},
	part("completed", func(f *Figures) int64 { return f.Completed }),
	part("failed", func(f *Figures) int64 { return f.Failed }),
	part("cancelled", func(f *Figures) int64 { return f.Cancelled }),
	part("impatient", func(f *Figures) int64 { return f.Impatient }),
	part("away", func(f *Figures) int64 { return f.Away }),
	part("unfinished", func(f *Figures) int64 { return f.Unfinished }),
	{name: "rejected", unit: unitPart, stats: reasons(), plain: true, part: func(f *Figures, stat string) int64 {
		if stat == "" {
			return f.Rejected
		}
		for _, r := range f.Reasons {
			if r.Reason.String() == stat {
				return r.Count
			}
		}
		return 0
	}},
	{name: "retries.amplification", unit: unitRatio, phase: func(p *Phase) (float64, bool) {
		r := &p.Retries
		return float64(r.Attempts) / float64(max(r.Dispatched, 1)), r.Dispatched > 0
	}},
	ofPhase("retries.attempts", unitCount, func(p *Phase) float64 { return float64(p.Retries.Attempts) }),
	ofPhase("retries.refused", unitCount, func(p *Phase) float64 { return float64(p.Retries.Refused) }),
	ofPhase("retries.resubmitted", unitCount, func(p *Phase) float64 { return float64(p.Retries.Resubmitted) }),
	ofPhase("retries.hedged", unitCount, func(p *Phase) float64 { return float64(p.Retries.Hedged) }),
	ofPhase("retries.hedges_won", unitCount, func(p *Phase) float64 { return float64(p.Retries.Won) }),
	{name: "fairness.gap", unit: unitCount, bounded: true, phase: func(p *Phase) (float64, bool) {
		most := 0.0
		for _, g := range p.Fairness {
			most = max(most, float64(g.Gap))
		}
		return most, true
	}},
	ofPhase("lost", unitCount, func(p *Phase) float64 { return float64(p.Books.Lost) }),
	ofPhase("settled_twice", unitCount, func(p *Phase) float64 { return float64(p.Books.Twice) }),
	ofPhase("open", unitCount, func(p *Phase) float64 { return float64(p.Books.Open) }),
	{name: "kv", unit: unitShare, phase: meanKV, backend: func(b *BackendUse) float64 { return float64(b.KVMean) / 1000 }},
	ofBackend("kv_max", unitShare, func(b *BackendUse) float64 { return float64(b.KVMax) / 1000 }),
	ofBackend("busy", unitShare, func(b *BackendUse) float64 { return float64(b.Busy) / 1000 }),
	ofBackend("prefill", unitShare, func(b *BackendUse) float64 { return float64(b.Prefill) / 1000 }),
	{name: "prefill_skew", unit: unitRatio, phase: prefillSkew},
	ofBackend("attempts", unitCount, func(b *BackendUse) float64 { return float64(b.Attempts) }),
	ofBackend("failures", unitCount, func(b *BackendUse) float64 { return float64(b.Failed) }),
	{
		name: "prefix_hits", unit: unitShare, phase: allHits,
		backend: func(b *BackendUse) float64 { return float64(b.HitTokens) / float64(max(b.HitTokens+b.Prefilled, 1)) },
	},
	{name: "recovery", unit: unitTime, whole: true},
}

func meanKV(p *Phase) (float64, bool) {
	sum := 0.0
	for i := range p.Backends {
		sum += float64(p.Backends[i].KVMean) / 1000
	}
	return sum / float64(max(len(p.Backends), 1)), len(p.Backends) > 0
}

// prefillSkew is what the backend computed that computed most, against their mean.
func prefillSkew(p *Phase) (float64, bool) {
	var most, all sluice.Tokens
	for i := range p.Backends {
		most = max(most, p.Backends[i].Prefilled)
		all += p.Backends[i].Prefilled
	}
	return float64(most) * float64(len(p.Backends)) / float64(max(all, 1)), all > 0
}

func allHits(p *Phase) (float64, bool) {
	var hits, all sluice.Tokens
	for i := range p.Backends {
		hits += p.Backends[i].HitTokens
		all += p.Backends[i].HitTokens + p.Backends[i].Prefilled
	}
	return float64(hits) / float64(max(all, 1)), all > 0
}

// of finds the operand's figure in a phase, and how it reads. It is false where
// there is no sample.
func (o *operand) of(p *Phase, r *recovery, before *Phase, as unit) (float64, bool) {
	m := o.metric
	switch {
	case m.whole:
		return o.recovery(r, before)
	case o.kind == "backend":
		for i := range p.Backends {
			if string(p.Backends[i].Backend) == o.name {
				return m.backend(&p.Backends[i]), true
			}
		}
		return 0, false
	case o.kind == "all" && m.phase != nil:
		return m.phase(p)
	}
	f := o.figures(p)
	if f == nil {
		return 0, false
	}
	if m.part == nil {
		return m.figure(f, o.stat)
	}
	n := float64(m.part(f, o.stat))
	if as == unitCount {
		return n, true
	}
	return n / float64(max(f.Requests, 1)), f.Requests > 0
}

func (o *operand) figures(p *Phase) *Figures {
	list := p.Classes
	switch o.kind {
	case "all":
		return &p.All
	case "tenant":
		list = p.Tenants
	case "source":
		list = p.Sources
	}
	for i := range list {
		if list[i].Name == o.name {
			return &list[i].Figures
		}
	}
	return nil
}

// recovery is the time until requests fared as in the first phase.
func (o *operand) recovery(r *recovery, before *Phase) (float64, bool) {
	class := sluice.NumClasses
	if o.kind == "class" {
		var c sluice.Class
		if err := c.UnmarshalText([]byte(o.name)); err != nil {
			return 0, false
		}
		class = int(c)
	}
	f := o.figures(before)
	if f == nil {
		return 0, false
	}
	d, ok := r.of(class, f.SLO)
	return float64(d), ok
}

// shown is the unit in which both sides are told.
func (e *Expectation) shown() unit {
	u := e.left.metric.unit
	if u != unitPart {
		return u
	}
	if e.right.metric == nil && e.unit == unitCount {
		return unitCount
	}
	return unitShare
}
