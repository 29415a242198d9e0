package fair

import (
	"math/rand/v2"
	"time"

	"sluice"
)

// Client is a stream of requests of one tenant's project.
type Client struct {
	Tenant  sluice.TenantID
	Project sluice.ProjectID // DefaultProject if empty
	Weight  int64            // of the tenant: at least 1
	Class   sluice.Class
	Pool    sluice.PoolID // the first one if empty
	Task    string

	Arrivals Arrivals
	Sizes    Sizes
	Rows     []Row // instead of Arrivals and Sizes

	Bound     sluice.Tokens // the output bound that it sends; 0: the true length
	MaxWait   time.Duration // 0: a day
	Patience  time.Duration // it leaves after so long, unless it is served; 0: never
	LeaveAt   int64         // permille of requests that leave at a random moment within Patience
	Running   int64         // its tenant's limit on concurrency; 0: none
	PerMinute int64         // requests per minute that a naive gateway lets through; 0: all
}

// Size is the length of a request in tokens, cached input included.
type Size struct{ In, Cached, Out sluice.Tokens }

// Row is one line of a trace.
type Row struct {
	At time.Duration
	Size
}

// Arrivals is the moment of the next request after prev; negative prev asks for the first.
type Arrivals func(r *rand.Rand, prev time.Duration) time.Duration

// Sizes draws a request's length.
type Sizes func(r *rand.Rand) Size

// Poisson arrives at random, rate times per second.
func Poisson(rate float64) Arrivals {
	return func(r *rand.Rand, prev time.Duration) time.Duration {
		return max(prev, 0) + time.Duration(r.ExpFloat64()/rate*float64(time.Second))
	}
}

// Every arrives rate times per second, evenly, first after phase of one interval.
func Every(rate, phase float64) Arrivals {
	step := float64(time.Second) / rate
	n := -1
	return func(_ *rand.Rand, prev time.Duration) time.Duration {
		if prev < 0 {
			n = -1
		}
		n++
		return time.Duration((float64(n) + phase) * step)
	}
}

// OnOff passes those arrivals that fall into the first of each two periods.
func OnOff(a Arrivals, period time.Duration) Arrivals {
	return func(r *rand.Rand, prev time.Duration) time.Duration {
		for {
			prev = a(r, prev)
			if prev/period%2 == 0 {
				return prev
			}
		}
	}
}

// From starts arrivals after a while.
func From(start time.Duration, a Arrivals) Arrivals {
	return func(r *rand.Rand, prev time.Duration) time.Duration {
		if prev < 0 {
			return start + a(r, -1)
		}
		return start + a(r, prev-start)
	}
}

// Backlog is n requests at once, and then rate per second.
func Backlog(n int, rate float64) Arrivals {
	rest := Every(rate, 0)
	k := 0
	return func(r *rand.Rand, prev time.Duration) time.Duration {
		if prev < 0 {
			k = 0
			_ = rest(r, -1)
		}
		if k++; k <= n {
			return 0
		}
		return rest(r, prev)
	}
}

// Fixed is one length for all.
func Fixed(in, out sluice.Tokens) Sizes {
	return func(*rand.Rand) Size { return Size{In: in, Out: out} }
}

// Between draws input and output evenly, bounds included.
func Between(in1, in2, out1, out2 sluice.Tokens) Sizes {
	return func(r *rand.Rand) Size {
		return Size{In: in1 + sluice.Tokens(r.Int64N(int64(in2-in1)+1)), Out: out1 + sluice.Tokens(r.Int64N(int64(out2-out1)+1))}
	}
}

// Mix draws from one of several, the first with a probability in permille.
func Mix(permille int64, a, b Sizes) Sizes {
	return func(r *rand.Rand) Size {
		if r.Int64N(1000) < permille {
			return a(r)
		}
		return b(r)
	}
}

// Predictor says what a request's output is expected to be, and what it holds.
type Predictor interface {
	Output(tenant sluice.TenantID, task string, bound, truth sluice.Tokens) (expected, hold sluice.Tokens)
	Observe(tenant sluice.TenantID, task string, truth sluice.Tokens)
}

// Exact knows the true length.
type Exact struct{}

// Output is the truth.
func (Exact) Output(_ sluice.TenantID, _ string, _, truth sluice.Tokens) (expected, hold sluice.Tokens) {
	return truth, truth
}

// Observe learns nothing.
func (Exact) Observe(sluice.TenantID, string, sluice.Tokens) {}

// Wrong is off by a random factor from 1/by to by.
type Wrong struct {
	By   float64
	Rand *rand.Rand
}

// Output is the truth times or over something.
func (w Wrong) Output(_ sluice.TenantID, _ string, bound, truth sluice.Tokens) (expected, hold sluice.Tokens) {
	f := 1 + w.Rand.Float64()*(w.By-1)
	n := float64(truth) * f
	if w.Rand.IntN(2) == 0 {
		n = float64(truth) / f
	}
	expected = min(bound, max(1, sluice.Tokens(n)))
	return expected, expected
}

// Observe learns nothing.
func (Wrong) Observe(sluice.TenantID, string, sluice.Tokens) {}
