package tabletop

import (
	"math"
	"math/rand/v2"

	"sluice"
)

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// draw draws a length. It is at least 1.
func (l *Lengths) draw(r *rand.Rand) sluice.Tokens {
	n := l.raw(r)
	if l.Max > 0 {
		n = min(n, l.Max)
	}
	return max(n, l.Min, 1)
}

func (l *Lengths) raw(r *rand.Rand) sluice.Tokens {
	switch l.Shape {
	case Uniform:
		return l.Min + sluice.Tokens(r.Int64N(max(int64(l.Max-l.Min), 0)+1))
	case LogNormal:
		return round(float64(l.P50) * math.Exp(l.sigma()*r.NormFloat64()))
	case Quantiles:
		return l.quantile(r.Float64() * 1000)
	case Mixed:
		u := r.Int64N(1000)
		for i := range l.Parts {
			if u -= l.Parts[i].Permille; u < 0 {
				return l.Parts[i].Lengths.draw(r)
			}
		}
		return l.Parts[len(l.Parts)-1].Lengths.draw(r)
	}
	return l.Mean
}

// given reports whether there is a law at all: a recording has lengths of its own.
func (l *Lengths) given() bool { return l.Shape != Fixed || l.Mean > 0 }

// sigma is the standard deviation of the logarithm.
func (l *Lengths) sigma() float64 {
	if l.P99 <= l.P50 || l.P50 <= 0 {
		return 0
	}
	return math.Log(float64(l.P99)/float64(l.P50)) / z99
}

// quantile is the length at a permille: linear between the points, from Min at 0.
func (l *Lengths) quantile(u float64) sluice.Tokens {
	at, tokens := 0.0, float64(l.Min)
	for _, q := range l.Points {
		if p := float64(q.Permille); u <= p {
			if p <= at {
				return q.Tokens
			}
			return round(tokens + (float64(q.Tokens)-tokens)*(u-at)/(p-at))
		}
		at, tokens = float64(q.Permille), float64(q.Tokens)
	}
	return round(tokens)
}

// Average is the mean of the law, its bounds left aside where it is a lognormal
// one: what sizes a load before it is drawn.
func (l *Lengths) Average() float64 {
	switch l.Shape {
	case Uniform:
		return float64(l.Min+l.Max) / 2
	case LogNormal:
		s := l.sigma()
		return float64(l.P50) * math.Exp(s*s/2)
	case Quantiles:
		sum, at, tokens := 0.0, 0.0, float64(l.Min)
		for _, q := range l.Points {
			sum += (float64(q.Permille) - at) * (float64(q.Tokens) + tokens) / 2
			at, tokens = float64(q.Permille), float64(q.Tokens)
		}
		return (sum + (1000-at)*tokens) / 1000
	case Mixed:
		sum := 0.0
		for i := range l.Parts {
			sum += float64(l.Parts[i].Permille) / 1000 * l.Parts[i].Lengths.Average()
		}
		return sum
	}
	return float64(l.Mean)
}

func round(x float64) sluice.Tokens {
	return sluice.Tokens(min(math.Round(x), 1<<40))
}
