package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/tabletop"
)

// lines is one group over time, of each policy that charts show.
type lines struct {
	kind, name string
	of         []*tabletop.Line
}

// drawn is the number of policies that charts show.
func (c *comparison) drawn() int { return min(palette, len(c.results)) }

// series joins the groups of all results' series, in the order of the first
// result that has them.
func (c *comparison) series() (out []lines) {
	for i, r := range c.results[:c.drawn()] {
		for n := range r.Series.Groups {
			l := &r.Series.Groups[n]
			at := slices.IndexFunc(out, func(o lines) bool { return o.kind == l.Kind && o.name == l.Name })
			if at < 0 {
				at = len(out)
				out = append(out, lines{l.Kind, l.Name, make([]*tabletop.Line, c.drawn())})
			}
			out[at].of[i] = l
		}
	}
	return out
}

// refusedReasons are those of all series, in the order of the vocabulary.
func refusedReasons(groups []lines) (out []sluice.Reason) {
	for _, g := range groups {
		for _, l := range g.of {
			if l == nil {
				continue
			}
			for _, r := range l.Rejected {
				if !slices.Contains(out, r.Reason) && slices.ContainsFunc(r.Counts, func(n int64) bool { return n > 0 }) {
					out = append(out, r.Reason)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// drawing is what charts of groups need beside the group.
type drawing struct {
	*comparison
	axis
	reasons []sluice.Reason
}

// curves makes one of each policy's line.
func (d drawing) curves(g lines, what, kind string, of func(s tabletop.Series, l *tabletop.Line) []float64) (out []curve) {
	for i, l := range g.of {
		if l != nil {
			out = append(out, curve{i, strings.TrimSpace(d.names[i] + " " + what), kind, of(d.results[i].Series, l)})
		}
	}
	return out
}

// timing are the curves of two percentiles, the higher in front.
func (d drawing) timing(g lines, p50, p99 func(l *tabletop.Line) []time.Duration) []curve {
	high := d.curves(g, "p99", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 { return highest(d.axis, s, p99(l), 1e-9) })
	low := d.curves(g, "p50", "p50", func(s tabletop.Series, l *tabletop.Line) []float64 { return highest(d.axis, s, p50(l), 1e-9) })
	var out []curve
	for i := range high {
		out = append(out, high[i], low[i])
	}
	return out
}

// charts are the panels of a group, what people feel first.
func (d drawing) charts(g lines, key string) []chart {
	asked := d.curves(g, "asked", "asked", func(s tabletop.Series, l *tabletop.Line) []float64 { return rates(d.axis, s, l.Requests) })
	good := d.curves(g, "good", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 { return rates(d.axis, s, l.Good) })
	ttft := d.timing(g, func(l *tabletop.Line) []time.Duration { return l.TTFT50 }, func(l *tabletop.Line) []time.Duration { return l.TTFT99 })
	tpot := d.timing(g, func(l *tabletop.Line) []time.Duration { return l.TPOT50 }, func(l *tabletop.Line) []time.Duration { return l.TPOT99 })
	queue := d.curves(g, "", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 { return highest(d.axis, s, l.QueueAge, 1e-9) })
	out := []chart{
		{title: "Goodput", about: "good requests per second; grey: asked for", unit: inRate, curves: append(good, asked[:min(1, len(asked))]...)},
		{title: "Time to first token", about: "p99 and, thin, p50", unit: inSeconds, curves: append(ttft, d.wanted(g, "ttft")...)},
		{title: "Time per output token", about: "p99 and, thin, p50", unit: inSeconds, curves: append(tpot, d.wanted(g, "tpot")...)},
		{title: "Queue age", about: "how long the oldest has waited", unit: inWait, curves: append(queue, d.wanted(g, "queue")...)},
		{title: "Refused", about: "refusals per second by reason", unit: inRate, piles: d.refused(g)},
		{title: "Demand", about: "input tokens per second asked for", unit: inRate, curves: d.curves(g, "", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 { return rates(d.axis, s, l.Input) })},
		{title: "Active KV", about: "tokens of memory held", unit: inTokens, curves: d.curves(g, "", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 { return highest(d.axis, s, l.KV, 1) })},
		{title: "Share of the work", about: "beside the fair share, thin", unit: inPercent, curves: d.shares(g)},
		{title: "Cost per useful completion", about: "dollars for a thousand", unit: inDollars, curves: d.curves(g, "", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 {
			return perGood(d.axis, s, l.PerGood, l.Good)
		})},
	}
	for i := range out {
		out[i].key = fmt.Sprintf("%s-%d", key, i)
	}
	return out
}

// shares are each policy's share, and the fair one where it differs from the
// fair share of the policies before.
func (d drawing) shares(g lines) []curve {
	out := d.curves(g, "", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 { return means(d.axis, s, l.Share) })
	fair := d.curves(g, "fair", "fair", func(s tabletop.Series, l *tabletop.Line) []float64 { return means(d.axis, s, l.FairShare) })
	for i, f := range fair {
		if !slices.ContainsFunc(fair[:i], func(o curve) bool { return path(scale{hi: 100}, o.values) == path(scale{hi: 100}, f.values) }) {
			out = append(out, f)
		}
	}
	return out
}

// refused piles up refusals by reason, one pile of each policy.
func (d drawing) refused(g lines) (out []pile) {
	for i, l := range g.of {
		p := pile{policy: clean(d.names[i])}
		for n, reason := range d.reasons {
			if l == nil {
				break
			}
			for _, r := range l.Rejected {
				if r.Reason == reason {
					p.parts = append(p.parts, curve{i, d.names[i] + ": " + reason.String(), fmt.Sprint(n % reasonPalette), rates(d.axis, d.results[i].Series, r.Counts)})
				}
			}
		}
		out = append(out, p)
	}
	return out
}

// reasonPalette is how many reasons have a color of their own.
const reasonPalette = 8

// bound matches an expectation of a group's time, such as
// "after: tenant.quiet.ttft.p99 <= 1.5s".
var bound = regexp.MustCompile(`^(?:[^:]*: *)?(?:(tenant)\.)?(.+)\.(ttft|tpot|queue)\.(p50|p99) *<=? *([0-9.a-zµ]+)$`)

// wanted are the bounds that expectations set to a time of the group, as level lines.
func (d drawing) wanted(g lines, what string) (out []curve) {
	for _, v := range d.verdicts {
		m := bound.FindStringSubmatch(v.text)
		if m == nil || m[2] != g.name || m[3] != what || (m[1] == "tenant") != (g.kind == "tenant") {
			continue
		}
		most, err := time.ParseDuration(m[5])
		if err != nil {
			continue
		}
		c := curve{name: "expected " + m[4] + " below", kind: "want", values: make([]float64, d.columns)}
		for i := range c.values {
			c.values[i] = most.Seconds()
		}
		if !slices.ContainsFunc(out, func(o curve) bool { return o.values[0] == c.values[0] }) {
			out = append(out, c)
		}
	}
	return out
}

// pool is one pool over time, of each policy that charts show.
type pool struct {
	name string
	of   []*tabletop.PoolLine
}

// pools joins the pools of all results' series.
func (c *comparison) pools() (out []pool) {
	for i, r := range c.results[:c.drawn()] {
		for n := range r.Series.Pools {
			l := &r.Series.Pools[n]
			at := slices.IndexFunc(out, func(o pool) bool { return o.name == string(l.Pool) })
			if at < 0 {
				at = len(out)
				out = append(out, pool{string(l.Pool), make([]*tabletop.PoolLine, c.drawn())})
			}
			out[at].of[i] = l
		}
	}
	return out
}

// poolCharts are the panels of a pool.
func (d drawing) poolCharts(p pool, key string) []chart {
	line := func(of func(s tabletop.Series, l *tabletop.PoolLine) []float64) (out []curve) {
		for i, l := range p.of {
			if l != nil {
				out = append(out, curve{i, d.names[i], "p99", of(d.results[i].Series, l)})
			}
		}
		return out
	}
	return []chart{
		{title: "Waiting", about: "requests in its queue", unit: inWhole, key: key + "-w", curves: line(func(s tabletop.Series, l *tabletop.PoolLine) []float64 { return highest(d.axis, s, l.Waiting, 1) })},
		{title: "Running", about: "requests at its backends", unit: inWhole, key: key + "-r", curves: line(func(s tabletop.Series, l *tabletop.PoolLine) []float64 { return highest(d.axis, s, l.Running, 1) })},
		{title: "Backends up", about: "the fewest", unit: inWhole, key: key + "-u", curves: line(func(s tabletop.Series, l *tabletop.PoolLine) []float64 { return lowest(d.axis, s, l.Up) })},
		{title: "Demand", about: "asked for, of what serves", unit: inPercent, key: key + "-d", curves: line(func(s tabletop.Series, l *tabletop.PoolLine) []float64 { return highest(d.axis, s, l.Demand, 0.1) })},
		{title: "KV memory", about: "of what its backends have", unit: inPercent, key: key + "-k", curves: line(func(s tabletop.Series, l *tabletop.PoolLine) []float64 { return highest(d.axis, s, l.KVUsed, 0.1) })},
	}
}
