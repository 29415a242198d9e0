package tabletop

import (
	"math"
	"math/rand/v2"
	"time"
)

// stream is when a source's requests come.
//
// The times between arrivals are drawn with a mean of one unit, and a unit lasts as
// long as the rate says: an arrival after x units comes when the integral of the
// rate has grown by x. So a change of the rate in the middle of a wait takes effect
// at once and uses no other draws than before.
type stream struct {
	a     *Arrivals
	rand  *rand.Rand
	rate  float64 // now: a part or multiple of the source's own
	shape float64 // of Gamma and Weibull
	scale float64 // of Weibull

	at   float64 // seconds; units are counted from here
	left float64 // units until the next arrival
	over bool    // nothing comes any more

	row   int // of a Trace: the next one
	loops int64
}

func newStream(a *Arrivals, r *rand.Rand) *stream {
	s := &stream{a: a, rand: r, rate: 1, at: a.Start.Seconds()}
	switch cv := a.CV; a.Process {
	case Gamma:
		s.shape = 1
		if cv > 0 {
			s.shape = 1 / (cv * cv)
		}
	case Weibull:
		s.shape = weibullShape(cv)
		s.scale = 1 / math.Gamma(1+1/s.shape)
	}
	switch {
	case a.Process == Trace:
		s.left, s.over = s.gap(0)
	case a.Process == Even:
		s.left = s.rand.Float64() // no two sources beat together
	default:
		s.left = s.unit()
	}
	return s
}

// unit draws the time to the next arrival, of mean 1.
func (s *stream) unit() float64 {
	switch s.a.Process {
	case Even:
		return 1
	case Gamma:
		return gamma(s.rand, s.shape) / s.shape
	case Weibull:
		return s.scale * math.Pow(s.rand.ExpFloat64(), 1/s.shape)
	}
	return s.rand.ExpFloat64()
}

// gap is the seconds of the recording before row i.
func (s *stream) gap(i int) (units float64, over bool) {
	rows := s.a.Rows
	switch {
	case len(rows) == 0:
		return 0, true
	case i > 0 && i < len(rows):
		return (rows[i].At - rows[i-1].At).Seconds(), false
	case i == 0 && s.loops == 0:
		return rows[0].At.Seconds(), false
	case !s.a.Loop:
		return 0, true
	}
	return pause(rows), false
}

// pause is the seconds of the recording between its end and its next beginning: as
// much as between two rows, and a second where all came at once, so that time passes.
func pause(rows []Row) float64 {
	if span := rows[len(rows)-1].At - rows[0].At; span > 0 {
		return span.Seconds() / float64(len(rows)-1)
	}
	return 1
}

// next is when the next request comes, if nothing changes; false if none does
// before a moment.
func (s *stream) next(before time.Duration) (time.Duration, bool) {
	if s.over {
		return 0, false
	}
	if s.a.Stop > 0 {
		before = min(before, s.a.Stop)
	}
	at, ok := s.after(s.left, before.Seconds())
	return time.Duration(at * float64(time.Second)), ok
}

// arrived moves on: the request that was next has come, at a moment. It returns the
// row of a Trace.
func (s *stream) arrived(at time.Duration) *Row {
	s.at = max(s.at, at.Seconds())
	if s.a.Process != Trace {
		s.left = s.unit()
		return nil
	}
	row := &s.a.Rows[s.row]
	s.row++
	if s.row == len(s.a.Rows) && s.a.Loop {
		s.row = 0
		s.loops++
	}
	s.left, s.over = s.gap(s.row)
	return row
}

// setRate changes the rate from a moment on.
func (s *stream) setRate(now time.Duration, rate float64) {
	if at := now.Seconds(); at > s.at {
		s.left = max(0, s.left-s.units(s.at, at))
		s.at = at
	}
	s.rate = rate
}

// base is arrivals per second, swing and pulse aside.
func (s *stream) base() float64 {
	rate := s.a.Rate
	if s.a.Process == Trace && rate == 0 {
		rate = 1
	}
	return rate * s.rate
}

// units is the integral of the rate.
func (s *stream) units(from, to float64) (sum float64) {
	on, cycle := s.a.Pulse.On.Seconds(), (s.a.Pulse.On + s.a.Pulse.Off).Seconds()
	if s.a.Pulse.On <= 0 || s.a.Pulse.Off <= 0 {
		return s.steady(from, to)
	}
	for from < to {
		start := math.Floor(from/cycle) * cycle
		if end := min(start+on, to); from < end {
			sum += s.steady(from, end)
		}
		from = start + cycle
	}
	return sum
}

// steady is the integral of the rate with its swing.
func (s *stream) steady(from, to float64) float64 {
	base, d := s.base(), s.a.Day
	sum := base * (to - from)
	if d.Period > 0 && d.Swing > 0 {
		w := 2 * math.Pi / d.Period.Seconds()
		p := d.Peak.Seconds()
		sum += base * d.Swing / w * (math.Sin(w*(to-p)) - math.Sin(w*(from-p)))
	}
	return sum
}

// after is when as many units have passed since s.at; false if not before a moment.
func (s *stream) after(units, before float64) (float64, bool) {
	if s.base() <= 0 || s.at >= before {
		return 0, false
	}
	on, cycle := s.a.Pulse.On.Seconds(), (s.a.Pulse.On + s.a.Pulse.Off).Seconds()
	pulsed := s.a.Pulse.On > 0 && s.a.Pulse.Off > 0
	for from := s.at; from < before; {
		end, again := before, before
		if pulsed {
			start := math.Floor(from/cycle) * cycle
			end, again = min(start+on, before), start+cycle
		}
		if from < end {
			sum := s.steady(from, end)
			if sum >= units {
				return s.within(from, end, units), true
			}
			units -= sum
		}
		from = max(again, math.Nextafter(from, math.Inf(1)))
	}
	return 0, false
}

// within is the moment between from and to at which the integral from there has
// come to units: exact for a constant rate, else by bisection.
func (s *stream) within(from, to, units float64) float64 {
	if s.a.Day.Period <= 0 || s.a.Day.Swing <= 0 {
		return min(from+units/s.base(), to)
	}
	lo, hi := from, to
	if least := s.base() * (1 - s.a.Day.Swing); least > 0 {
		hi = min(hi, from+units/least)
	}
	for range 60 {
		mid := lo + (hi-lo)/2
		if s.steady(from, mid) < units {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// gamma draws from the Gamma distribution of scale 1, by Marsaglia and Tsang's
// method (2000): with d = k − 1/3, c = 1/√(9d), x normal, u uniform and v = (1+cx)³,
// d·v is one where ln u < x²/2 + d − d·v + d·ln v.
func gamma(r *rand.Rand, k float64) float64 {
	if k < 1 {
		return gamma(r, k+1) * math.Pow(r.Float64(), 1/k)
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// weibullShape is the shape of a Weibull distribution whose coefficient of
// variation is cv: CV² = Γ(1+2/k)/Γ(1+1/k)² − 1 falls as k grows.
func weibullShape(cv float64) float64 {
	if cv <= 0 {
		return 1
	}
	lo, hi := 0.1, 20.0
	for range 60 {
		k := (lo + hi) / 2
		g := math.Gamma(1 + 1/k)
		if math.Sqrt(math.Gamma(1+2/k)/(g*g)-1) > cv {
			lo = k
		} else {
			hi = k
		}
	}
	return (lo + hi) / 2
}
