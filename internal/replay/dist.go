package replay

import (
	"math"
	"math/rand/v2"
	"time"
)

// dice draws from the distributions that traffic has.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

// gamma draws with a mean and a coefficient of variation, by Marsaglia and
// Tsang's method; the shape is 1/cv².
func (d dice) gamma(mean, cv float64) float64 {
	if cv <= 0 {
		return mean
	}
	shape := 1 / (cv * cv)
	scale := mean / shape
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-d.Float64(), 1/shape)
		shape++
	}
	a := shape - 1.0/3
	c := 1 / math.Sqrt(9*a)
	for {
		x := d.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-d.Float64()) < x*x/2+a-a*v+a*math.Log(v) {
			return a * v * scale * boost
		}
	}
}

// weibull draws with a shape and a scale.
func (d dice) weibull(shape, scale float64) float64 {
	return scale * math.Pow(-math.Log(1-d.Float64()), 1/shape)
}

// z90 is the 90 % quantile of the standard normal.
const z90 = 1.2815515655446004

// length draws a token count whose median and 90 % quantile are given,
// lognormally, within 1 and most.
func (d dice) length(p50, p90, most float64) int64 {
	p50 = max(p50, 1)
	sigma := 0.0
	if p90 > p50 {
		sigma = math.Log(p90/p50) / z90
	}
	return int64(min(max(math.Round(p50*math.Exp(sigma*d.NormFloat64())), 1), most))
}

// arrivals are the times of a renewal process.
type arrivals struct {
	d    dice
	mean float64 // seconds between two
	cv   float64
	at   float64
}

func newArrivals(o ReadOptions) *arrivals {
	rate := o.Rate
	if rate <= 0 {
		rate = 1
	}
	return &arrivals{d: newDice(o.Seed, 1), mean: 1 / rate, cv: 1}
}

func (a *arrivals) next() time.Duration {
	at := a.at
	a.at += a.d.gamma(a.mean, a.cv)
	return time.Duration(at * float64(time.Second))
}
