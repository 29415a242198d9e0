package capacity

import (
	"time"

	"sluice"
)

// Outlook is what to forecast.
type Outlook struct {
	History []Bucket  // by hour
	Until   time.Time // the end of it, a full hour
	Growth  *Growth   // nil: the trend of the history
	Horizon int64     // seconds to look ahead

	Inputs, Outputs Sample // the spread of lengths; none takes all as alike

	Replica Replica
	GPUs    int64 // of the fleet; 0: say only how many are needed
	Lose    Share
	Target  Share
}

// Forecast is a demand as it was, is and will be.
type Forecast struct {
	Hours  int64 // of history, from the first request on
	Fitted int64 // parts that the trend is fitted to; 0: none, or growth was given
	Span   int64 // seconds of a part
	Growth Amount
	Mean   Demand // of late, per second
	Peaks  Peaks  // highest hour ÷ mean, of late
	Points []Point
	// Out is when the fleet does not hold the peak any more, and LostOut when it
	// would not without the share that may be lost; zero: not within the horizon.
	Out, LostOut time.Time
}

// Peaks are the highest hour ÷ the mean, of each dimension by itself.
type Peaks struct{ Requests, Input, Output Amount }

// Point is a moment of a forecast.
type Point struct {
	At   time.Time
	Mean Demand // expected then, per second
	Plan Plan   // of the peak hour
}

// The bounds of a forecast.
const (
	MaxHorizon = 5 * 31_557_600 // seconds: five years
	maxPoints  = 61
)

// Solve forecasts. Each dimension has a trend of its own, so that inputs which
// grow at unchanged requests are seen; planned is its own peak hour, as if all
// peaks came together.
func (o Outlook) Solve() (Forecast, error) {
	if o.Horizon < 0 || o.Horizon > MaxHorizon {
		return Forecast{}, sluice.Invalid("horizon", "is not between 0 and 5 years")
	}
	s := seriesOf(o.History, o.Until)
	if s.hours == 0 || sum(s.requests, s.hours, 0) == 0 {
		e := sluice.Invalid("since", "has no request at a backend in a full hour after it")
		e.Hint = "look further back, or at other models and tenants; the hour that is running does not count"
		return Forecast{}, e
	}
	w := o.workloads(s)
	f := Forecast{Hours: s.hours, Peaks: w.peaks, Growth: w.growth(o.Horizon)}
	if o.Growth == nil {
		f.Span, f.Fitted = s.span()
	}
	var err error
	if f.Mean, err = w.at(0, false).Demand(); err != nil {
		return Forecast{}, err
	}
	before := int64(0)
	for at := range o.steps() {
		p, err := o.point(w, at)
		if err != nil {
			return Forecast{}, err
		}
		f.Points = append(f.Points, p)
		if f.Out.IsZero() && o.GPUs > 0 && p.Plan.Over {
			if f.Out, err = o.firstDay(w, before, at, func(p Plan) bool { return p.Over }); err != nil {
				return Forecast{}, err
			}
		}
		if f.LostOut.IsZero() && o.GPUs > 0 && p.Plan.Lost != nil && p.Plan.Lost.Over {
			if f.LostOut, err = o.firstDay(w, before, at, func(p Plan) bool { return p.Lost.Over }); err != nil {
				return Forecast{}, err
			}
		}
		before = at
	}
	return f, nil
}

// steps are the moments of a forecast in seconds from now: the horizon in days,
// weeks or months, and its end.
func (o Outlook) steps() func(func(int64) bool) {
	step := int64(day)
	for _, longer := range []int64{week, spans["month"], 3 * spans["month"]} {
		if o.Horizon/step > 15 {
			step = longer
		}
	}
	return func(yield func(int64) bool) {
		for at := int64(0); at < o.Horizon; at += step {
			if !yield(at) {
				return
			}
		}
		yield(o.Horizon)
	}
}

// point plans the peak at one moment.
func (o Outlook) point(w outgrowth, at int64) (Point, error) {
	p := Point{At: o.Until.Add(time.Duration(at) * time.Second)}
	var err error
	if p.Mean, err = w.at(at, false).Demand(); err != nil {
		return p, err
	}
	p.Plan, err = Solve(Question{Workloads: []Workload{w.at(at, true)}, Replica: o.Replica, GPUs: o.GPUs, Lose: o.Lose, Target: o.Target})
	return p, err
}

// firstDay finds the first day after from, to the second one, for which the plan
// is over.
func (o Outlook) firstDay(w outgrowth, from, to int64, over func(Plan) bool) (time.Time, error) {
	for at := from; at < to; at += day {
		p, err := o.point(w, at)
		if err != nil {
			return time.Time{}, err
		}
		if over(p.Plan) {
			return p.At, nil
		}
	}
	return o.Until.Add(time.Duration(to) * time.Second), nil
}

// outgrowth is how a workload goes on.
type outgrowth struct {
	requests, input, output trend
	hit                     Share
	given                   *Growth
	peaks                   Peaks
	inputs, outputs         Sample
}

func (o Outlook) workloads(s series) outgrowth {
	w := outgrowth{
		given: o.Growth, inputs: o.Inputs, outputs: o.Outputs,
		peaks: Peaks{s.peak(s.requests), s.peak(s.input), s.peak(s.output)},
	}
	n := s.recent()
	w.hit.Amount = Int(sum(s.cached, n, 0)).Over(Int(sum(s.input, n, 0)))
	for _, d := range []struct {
		to   *trend
		line []int64
	}{{&w.requests, s.requests}, {&w.input, s.input}, {&w.output, s.output}} {
		if o.Growth != nil {
			*d.to = trend{level: s.mean(d.line)}
		} else {
			*d.to = s.fit(d.line)
		}
	}
	return w
}

// at is the workload after so many seconds, in its peak hour or on average.
func (w outgrowth) at(seconds int64, peak bool) Workload {
	factor := Int(1)
	if w.given != nil {
		factor = w.given.factor(seconds)
	}
	of := func(t trend, ratio Amount) Amount {
		a := t.at(seconds).Times(factor)
		if peak {
			a = a.Times(ratio)
		}
		return a.coarse(fineness)
	}
	requests := of(w.requests, w.peaks.Requests)
	if requests.Sign() == 0 {
		return Workload{Input: Alike(1)} // the trend has ended it
	}
	return Workload{
		Rate: Rate{requests}, Hit: w.hit,
		Input:  w.inputs.Stretched(of(w.input, w.peaks.Input).Over(requests)),
		Output: w.outputs.Stretched(of(w.output, w.peaks.Output).Over(requests)),
	}
}

// growth is what input and output tokens together grow by until the horizon.
func (w outgrowth) growth(horizon int64) Amount {
	now, then := w.at(0, false), w.at(horizon, false)
	tokens := func(w Workload) Amount { return w.Rate.Times(w.Input.Mean.Plus(w.Output.Mean)) }
	return tokens(then).Over(tokens(now)).Minus(Int(1))
}
