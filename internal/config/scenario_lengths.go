package config

import (
	"cmp"
	"slices"

	"sluice"
	"sluice/internal/tabletop"
)

// Law is how long prompts or answers are: one of tokens, p50 with p99, uniform,
// quantiles.
type Law struct {
	Tokens    Count            `json:"tokens,omitempty" jsonschema:"always as many"`
	P50       Count            `json:"p50,omitempty" jsonschema:"log-normal with this median, and p99"`
	P99       Count            `json:"p99,omitempty" jsonschema:"what 1% exceed"`
	Uniform   []Count          `json:"uniform,omitempty" jsonschema:"evenly from the first to the second"`
	Quantiles map[string]Count `json:"quantiles,omitempty" jsonschema:"what each share does not exceed, such as {50%: 1020, 99%: 4142, 100%: 14050}; straight lines between"`
	Min       Count            `json:"min,omitempty" jsonschema:"what is drawn is held above"`
	Max       Count            `json:"max,omitempty" jsonschema:"what is drawn is held below"`
}

// Part is one of several laws.
type Part struct {
	Share Share `json:"share" jsonschema:"how many requests have it; all parts make 100%"`
	Law
}

// Lengths is a number of tokens, a law, or a mix of laws.
type Lengths struct {
	Law
	Mix []Part `json:"mix,omitempty" jsonschema:"one of several laws, drawn for each request: [{share: 90%, tokens: 1k}, {share: 10%, p50: 8k, p99: 60k}]"`
}

func (l *Lengths) decodeNode(d *decoder, n node, path string) {
	if _, ok := d.asMapping(n); ok {
		type plain Lengths // without this method
		d.into(n, (*plain)(l), path)
		return
	}
	text, ok := d.scalar(n, path)
	if !ok {
		return
	}
	if err := l.Tokens.UnmarshalText([]byte(text)); err != nil {
		d.reportError(n, path, err)
		return
	}
	d.pos[join(path, "tokens")] = nodePos(n)
}

// lengths compiles a law or a mix of laws.
func (r *reader) lengths(at string, in *Lengths) tabletop.Lengths {
	if len(in.Mix) == 0 {
		return r.law(at, &in.Law)
	}
	if in.Law.given() {
		r.fail(at, "put it into a part of the mix, or remove the mix", "says a mix and a law at once")
	}
	out := tabletop.Lengths{Shape: tabletop.Mixed, Min: sluice.Tokens(in.Min), Max: sluice.Tokens(in.Max)}
	sum := int64(0)
	for i := range in.Mix {
		p := &in.Mix[i]
		sum += int64(p.Share)
		out.Parts = append(out.Parts, tabletop.Part{Permille: int64(p.Share), Lengths: r.law(index(join(at, "mix"), i), &p.Law)})
	}
	if sum != 1000 && !r.brokenAt(join(at, "mix")) {
		r.fail(join(at, "mix"), "make them 100% in all", "the shares add up to %s", percent(sum))
	}
	return out
}

func (l *Law) given() bool {
	return l.Tokens > 0 || l.P50 > 0 || l.P99 > 0 || len(l.Uniform) > 0 || len(l.Quantiles) > 0
}

func (r *reader) law(at string, in *Law) tabletop.Lengths {
	out := tabletop.Lengths{Min: sluice.Tokens(in.Min), Max: sluice.Tokens(in.Max)}
	_, fixed := r.d.pos[join(at, "tokens")]
	if !r.onlyOne(at, map[string]bool{"tokens": fixed, "p50 with p99": in.P50 > 0 || in.P99 > 0, "uniform": len(in.Uniform) > 0, "quantiles": len(in.Quantiles) > 0}) {
		return out
	}
	if in.Max > 0 && in.Max < in.Min {
		r.fail(join(at, "max"), "raise it, or lower min", "%s is less than min, %s", in.Max, in.Min)
	}
	switch {
	case fixed:
		out.Shape, out.Mean = tabletop.Fixed, sluice.Tokens(in.Tokens)
	case in.P50 > 0 || in.P99 > 0:
		if in.P50 == 0 || in.P99 < in.P50 {
			r.fail(at, "write p50 and a p99 that is not less", "p50 %s and p99 %s make no law", in.P50, in.P99)
		}
		out.Shape, out.P50, out.P99 = tabletop.LogNormal, sluice.Tokens(in.P50), sluice.Tokens(in.P99)
	case len(in.Uniform) > 0:
		if len(in.Uniform) != 2 || in.Uniform[0] > in.Uniform[1] {
			r.fail(join(at, "uniform"), "write two numbers, the smaller first: [100, 2k]", "is not a range")
			return out
		}
		out.Shape, out.Min, out.Max = tabletop.Uniform, sluice.Tokens(in.Uniform[0]), sluice.Tokens(in.Uniform[1])
	default:
		out.Shape, out.Points = tabletop.Quantiles, r.quantiles(join(at, "quantiles"), in.Quantiles)
	}
	for name, n := range map[string]Count{"tokens": in.Tokens, "p99": in.P99, "max": in.Max} {
		if n > maxLengthTokens {
			r.fail(join(at, name), "write at most 10M", "%s tokens are more than any model takes", n)
		}
	}
	return out
}

// maxLengthTokens bounds a length.
const maxLengthTokens = 10_000_000

func (r *reader) quantiles(at string, in map[string]Count) []tabletop.Quantile {
	var out []tabletop.Quantile
	for _, key := range sorted(in) {
		var s Share
		if err := s.UnmarshalText([]byte(key)); err != nil {
			r.fail(join(at, key), shareFix, "%q is not a share", key)
			continue
		}
		out = append(out, tabletop.Quantile{Permille: int64(s), Tokens: sluice.Tokens(in[key])})
	}
	slices.SortFunc(out, func(a, b tabletop.Quantile) int { return cmp.Compare(a.Permille, b.Permille) })
	for i := 1; i < len(out); i++ {
		if out[i].Tokens < out[i-1].Tokens {
			r.fail(at, "let them grow", "%s at %s is less than %d at %s", Count(out[i].Tokens), percent(out[i].Permille), out[i-1].Tokens, percent(out[i-1].Permille))
		}
	}
	if n := len(out); n > 0 && out[n-1].Permille != 1000 && !r.brokenAt(at) {
		r.fail(at, "add 100%: the longest", "ends at %s", percent(out[n-1].Permille))
	}
	return out
}
