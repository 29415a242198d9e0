package capacity

import (
	"cmp"
	"fmt"
	"strings"

	"sluice"
)

// Lengths says how long the inputs or outputs of a workload are: a mean alone is
// a workload of requests that are all alike.
//
// Quantiles give it a shape. Between two of them every length is at one end or
// the other, in the same proportion everywhere, which is the one that meets Mean
// if it is given, else one half. Of all shapes with these quantiles and this mean
// that is the most spread, and memory, which grows with the square, is never
// planned too small. Long adds requests beside these.
type Lengths struct {
	Mean Amount `json:"mean,omitzero" jsonschema:"tokens of a request on average, Long left aside: 1500, 2k"`
	P50  Tokens `json:"p50,omitempty" jsonschema:"tokens that half of the requests do not exceed"`
	P90  Tokens `json:"p90,omitempty" jsonschema:"tokens that nine in ten do not exceed"`
	P99  Tokens `json:"p99,omitempty" jsonschema:"tokens that 99 in 100 do not exceed"`
	Max  Tokens `json:"max,omitempty" jsonschema:"tokens that none exceeds; left out: the last quantiles' ratio goes on"`
	Long []Long `json:"long,omitempty" jsonschema:"very long requests beside the others"`

	sample *moments // of what was seen, to be stretched to Mean; nil: none
}

// Long is a share of requests of one length.
type Long struct {
	Share  Share  `json:"share" jsonschema:"of all requests: 2%"`
	Tokens Tokens `json:"tokens" jsonschema:"of each of them: 100k"`
}

// point is a share of requests with one length.
type point struct{ share, tokens Amount }

// Alike is lengths that are all the same.
func Alike[T ~int | ~int64](n T) Lengths { return Lengths{Mean: Int(n)} }

// Sample is the spread of lengths that were seen, each as likely as another. The
// zero value is none.
type Sample struct{ seen *moments }

// SampleOf takes lengths of requests; nil where they have none.
func SampleOf(seen []sluice.Tokens) Sample {
	m := moments{}
	for _, n := range seen {
		x := Int(1)
		for k := range m.power {
			m.power[k] = m.power[k].Plus(x)
			x = x.Times(Int(n))
		}
		m.longest = Max(m.longest, Int(n))
	}
	if m.power[1].Sign() <= 0 {
		return Sample{}
	}
	for k := range m.power {
		m.power[k] = m.power[k].Over(Int(len(seen)))
	}
	return Sample{&m}
}

// Stretched is lengths of this spread with another mean.
func (s Sample) Stretched(mean Amount) Lengths { return Lengths{Mean: mean, sample: s.seen} }

// Shorthand marks that one line can stand for the mapping.
func (*Lengths) Shorthand() {}

// UnmarshalText reads the one line: a mean, quantiles, and shares of long
// requests, such as 1500 or 1500,2%:100k or p50=800,p90=3k,p99=12k,max=32k.
func (l *Lengths) UnmarshalText(b []byte) error {
	const hint = "write a mean (1500), quantiles (p50=800,p90=3k,p99=12k) and shares of long ones (2%:100k), between commas"
	*l = Lengths{}
	for field := range strings.SplitSeq(string(b), ",") {
		field = strings.TrimSpace(field)
		if share, tokens, ok := strings.Cut(field, ":"); ok {
			var long Long
			if err := cmp.Or(long.Share.UnmarshalText([]byte(share)), long.Tokens.UnmarshalText([]byte(tokens))); err != nil {
				return err
			}
			l.Long = append(l.Long, long)
			continue
		}
		name, value, named := strings.Cut(field, "=")
		if !named {
			name, value = "mean", field
		}
		if name == "mean" {
			if err := l.Mean.UnmarshalText([]byte(value)); err != nil {
				return mistake(hint, "%s", sluice.AsError(err).Msg)
			}
			continue
		}
		to, ok := map[string]*Tokens{"p50": &l.P50, "p90": &l.P90, "p99": &l.P99, "max": &l.Max}[name]
		if !ok {
			return mistake(hint, "%q is neither mean nor p50, p90, p99 or max", name)
		}
		if err := to.UnmarshalText([]byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// String is the one line.
func (l Lengths) String() string {
	var parts []string
	if l.Mean.Sign() > 0 {
		parts = append(parts, l.Mean.Text(1))
	}
	for _, q := range []struct {
		name string
		n    Tokens
	}{{"p50", l.P50}, {"p90", l.P90}, {"p99", l.P99}, {"max", l.Max}} {
		if q.n > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", q.name, q.n))
		}
	}
	for _, long := range l.Long {
		parts = append(parts, fmt.Sprintf("%s%%:%d", long.Share.Times(Int(100)).Text(2), long.Tokens))
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ",")
}

// none reports that nothing was said.
func (l Lengths) none() bool {
	return l.Mean.Sign() == 0 && l.P50 == 0 && l.P90 == 0 && l.P99 == 0 && l.Max == 0 && len(l.Long) == 0
}

// anchor is a quantile: at most tokens in a part of the requests.
type anchor struct {
	name   string
	part   Amount
	tokens Tokens
}

// anchors are the quantiles that were given, with both ends; nil if there are
// none.
func (l Lengths) anchors() []anchor {
	out := []anchor{{"the least", Int(0), 1}}
	for _, a := range []anchor{{"p50", Ratio(1, 2), l.P50}, {"p90", Ratio(9, 10), l.P90}, {"p99", Ratio(99, 100), l.P99}} {
		if a.tokens > 0 {
			out = append(out, a)
		}
	}
	if len(out) == 1 {
		return nil
	}
	last, before := out[len(out)-1].tokens, out[len(out)-2].tokens
	if len(out) == 2 {
		before = (last + 1) / 2
	}
	most := l.Max
	if most == 0 {
		most = Tokens(min(Int(last).Times(Int(last)).Over(Int(before)).Ceil(), max(maxTokens, int64(last))))
	}
	return append(out, anchor{"max", Int(1), most})
}

// points is the distribution, or what is wrong with it.
func (l Lengths) points() ([]point, error) {
	rest := Int(1)
	var long []point
	for _, x := range l.Long {
		rest = rest.Minus(x.Share.Amount)
		long = append(long, point{x.Share.Amount, Int(x.Tokens)})
	}
	if rest.Sign() < 0 {
		return nil, mistake("let the shares of long requests sum up to 100% at most", "has long requests of %s%% of all", Int(1).Minus(rest).Times(Int(100)).Text(1))
	}
	anchors := l.anchors()
	if anchors == nil {
		if l.Max > 0 && Int(l.Max).Cmp(l.Mean) < 0 {
			return nil, mistake("give max the mean at least", "has a mean of %s above its max of %d", l.Mean, l.Max)
		}
		return append([]point{{rest, l.Mean}}, long...), nil
	}
	base, err := spread(anchors, l.Mean)
	if err != nil {
		return nil, err
	}
	for i := range base {
		base[i].share = base[i].share.Times(rest)
	}
	return append(base, long...), nil
}

// spread puts every length at an end of its span between quantiles.
func spread(anchors []anchor, mean Amount) ([]point, error) {
	var low, high Amount
	for i := 1; i < len(anchors); i++ {
		a, b := anchors[i-1], anchors[i]
		if b.tokens < a.tokens {
			return nil, mistake("let p50 ≤ p90 ≤ p99 ≤ max", "has %s of %d below %s of %d", b.name, b.tokens, a.name, a.tokens)
		}
		width := b.part.Minus(a.part)
		low = low.Plus(width.Times(Int(a.tokens)))
		high = high.Plus(width.Times(Int(b.tokens)))
	}
	upper := Ratio(1, 2)
	if mean.Sign() > 0 {
		if mean.Cmp(low) < 0 || mean.Cmp(high) > 0 {
			return nil, mistake(fmt.Sprintf("these quantiles have a mean from %s to %s; or give them no mean", low.Text(1), high.Text(1)), "has a mean of %s that its quantiles do not allow", mean)
		}
		upper = mean.Minus(low).Over(high.Minus(low))
	}
	var out []point
	for i := 1; i < len(anchors); i++ {
		a, b := anchors[i-1], anchors[i]
		width := b.part.Minus(a.part)
		out = append(out,
			point{width.Times(Int(1).Minus(upper)), Int(a.tokens)},
			point{width.Times(upper), Int(b.tokens)})
	}
	return out, nil
}

// moments are the means of the powers, E[x] to E[x⁴], and the longest.
type moments struct {
	power   [5]Amount
	longest Amount
}

func (l Lengths) moments() (m moments, err error) {
	if l.sample != nil {
		stretch, x := l.Mean.Over(l.sample.power[1]), Int(1)
		for k := range m.power {
			m.power[k] = l.sample.power[k].Times(x)
			x = x.Times(stretch)
		}
		m.longest = l.sample.longest.Times(stretch)
		return m, nil
	}
	points, err := l.points()
	for _, p := range points {
		if p.share.Sign() == 0 {
			continue
		}
		x := p.share
		for k := range m.power {
			m.power[k] = m.power[k].Plus(x)
			x = x.Times(p.tokens)
		}
		m.longest = Max(m.longest, p.tokens)
	}
	return m, err
}
