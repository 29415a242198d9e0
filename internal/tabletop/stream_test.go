package tabletop

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// arrivals is when a stream's requests come until a moment. change, if not nil, is
// asked for the rate from each arrival on.
func arrivals(a Arrivals, until time.Duration, change func(s *stream, at time.Duration)) (out []time.Duration) {
	s := newStream(&a, rand.New(rand.NewPCG(1, 2)))
	for {
		at, ok := s.next(until)
		if !ok {
			return out
		}
		s.arrived(at)
		out = append(out, at)
		if change != nil {
			change(s, at)
		}
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s: got %.4f, want %.4f within %.0f %%", what, got, want, 100*within)
	}
}

// between is how many arrivals fall into a span.
func between(at []time.Duration, from, to time.Duration) float64 {
	n := 0
	for _, a := range at {
		if a >= from && a < to {
			n++
		}
	}
	return float64(n)
}

func TestArrivalLaws(t *testing.T) {
	large(t)
	const hour = time.Hour
	for _, c := range []struct {
		name string
		a    Arrivals
		cv   float64
	}{
		{"poisson", Arrivals{Rate: 10}, 1},
		{"even", Arrivals{Process: Even, Rate: 10}, 0},
		{"gamma", Arrivals{Process: Gamma, Rate: 10, CV: 3}, 3},
		{"gamma, steadier", Arrivals{Process: Gamma, Rate: 10, CV: 0.5}, 0.5},
		{"weibull", Arrivals{Process: Weibull, Rate: 10, CV: 2}, 2},
	} {
		at := arrivals(c.a, 2*hour, nil)
		near(t, c.name+": rate", float64(len(at))/7200, 10, 0.05)
		var sum, sq float64
		for i := 1; i < len(at); i++ {
			d := (at[i] - at[i-1]).Seconds()
			sum, sq = sum+d, sq+d*d
		}
		n := float64(len(at) - 1)
		cv := math.Sqrt(sq/n-sum*sum/n/n) / (sum / n)
		if math.Abs(cv-c.cv) > 0.1*max(c.cv, 0.1) {
			t.Errorf("%s: coefficient of variation %.3f, want %.3f", c.name, cv, c.cv)
		}
	}
}

func TestRateOverTime(t *testing.T) {
	large(t)
	at := arrivals(Arrivals{Rate: 20, Day: Day{Period: time.Hour, Swing: 0.8, Peak: 15 * time.Minute}}, time.Hour, nil)
	near(t, "a whole day", float64(len(at)), 72_000, 0.02)
	near(t, "around its peak", between(at, 14*time.Minute, 16*time.Minute), 20*120*1.8, 0.04)
	near(t, "around its trough", between(at, 44*time.Minute, 46*time.Minute), 20*120*0.2, 0.15)

	at = arrivals(Arrivals{Rate: 50, Pulse: Pulse{On: 10 * time.Second, Off: 50 * time.Second}}, time.Hour, nil)
	near(t, "pulses", float64(len(at)), 30_000, 0.03)
	for _, a := range at {
		if a%time.Minute >= 10*time.Second {
			t.Fatalf("an arrival at %v, between two pulses", a)
		}
	}

	at = arrivals(Arrivals{Rate: 20, Start: time.Minute, Stop: 2 * time.Minute}, time.Hour, nil)
	near(t, "a start and a stop", float64(len(at)), 1200, 0.1)
	if at[0] < time.Minute || at[len(at)-1] > 2*time.Minute {
		t.Errorf("from %v to %v", at[0], at[len(at)-1])
	}
}

// TestRateChangesAtOnce: a change takes effect in the middle of a wait, and the
// draws stay as they are.
func TestRateChangesAtOnce(t *testing.T) {
	a := Arrivals{Rate: 1}
	s := newStream(&a, rand.New(rand.NewPCG(1, 2)))
	first, _ := s.next(time.Hour)
	s.setRate(first/2, 10)
	if got, _ := s.next(time.Hour); got < first/2 || absolute(got-(first/2+first/20)) > time.Microsecond {
		t.Errorf("the first was due at %v, and is at %v with ten times the rate from half of it", first, got)
	}
	s.setRate(first/2+first/40, 0)
	if _, ok := s.next(time.Hour); ok {
		t.Error("something comes at a rate of 0")
	}
	s.setRate(time.Minute, 1)
	if got, _ := s.next(time.Hour); absolute(got-(time.Minute+first/4)) > time.Microsecond {
		t.Errorf("with its rate back it comes at %v, want %v", got, time.Minute+first/4)
	}
}

func absolute(d time.Duration) time.Duration { return max(d, -d) }

func TestTraceArrivals(t *testing.T) {
	rows := []Row{{At: time.Second}, {At: 2 * time.Second}, {At: 5 * time.Second}}
	for _, c := range []struct {
		name string
		a    Arrivals
		want []float64 // seconds
	}{
		{"as recorded", Arrivals{Process: Trace, Rows: rows}, []float64{1, 2, 5}},
		{"twice as fast", Arrivals{Process: Trace, Rows: rows, Rate: 2}, []float64{0.5, 1, 2.5}},
		{"again", Arrivals{Process: Trace, Rows: rows, Loop: true}, []float64{1, 2, 5, 7, 8, 11, 13, 14}},
		{"again, all at once", Arrivals{Process: Trace, Rows: []Row{{At: time.Second}, {At: time.Second}}, Loop: true, Stop: 3500 * time.Millisecond}, []float64{1, 1, 2, 2, 3, 3}},
		{"again, a single one", Arrivals{Process: Trace, Rows: []Row{{At: time.Second}}, Loop: true, Stop: 3500 * time.Millisecond}, []float64{1, 2, 3}},
		{"later", Arrivals{Process: Trace, Rows: rows, Start: 10 * time.Second}, []float64{11, 12, 15}},
	} {
		var got []float64
		for _, at := range arrivals(c.a, 15*time.Second, nil) {
			got = append(got, math.Round(at.Seconds()*1000)/1000)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestLengthLaws(t *testing.T) {
	large(t)
	quantile := func(l Lengths, permille int) float64 {
		r := rand.New(rand.NewPCG(3, 4))
		all := make([]int, 40_000)
		for i := range all {
			all[i] = int(l.draw(r))
		}
		slices.Sort(all)
		return float64(all[len(all)*permille/1000])
	}
	mean := func(l Lengths) float64 {
		r := rand.New(rand.NewPCG(5, 6))
		sum := 0.0
		for range 200_000 {
			sum += float64(l.draw(r))
		}
		return sum / 200_000
	}
	log := Lengths{Shape: LogNormal, P50: 200, P99: 1500}
	near(t, "lognormal p50", quantile(log, 500), 200, 0.03)
	near(t, "lognormal p99", quantile(log, 990), 1500, 0.06)
	points := Lengths{Shape: Quantiles, Min: 10, Points: []Quantile{{500, 100}, {900, 1000}, {1000, 5000}}}
	near(t, "quantiles p25", quantile(points, 250), 55, 0.03)
	near(t, "quantiles p50", quantile(points, 500), 100, 0.03)
	near(t, "quantiles p90", quantile(points, 900), 1000, 0.05)
	mixed := Lengths{Shape: Mixed, Parts: []Part{{950, Lengths{Mean: 100}}, {50, Lengths{Mean: 20_000}}}}
	near(t, "a mixture", quantile(mixed, 940), 100, 0)
	near(t, "a mixture", quantile(mixed, 960), 20_000, 0)
	for _, l := range []Lengths{{Mean: 7}, {Shape: Uniform, Min: 5, Max: 25}, log, points, mixed} {
		near(t, "average", l.Average(), mean(l), 0.03)
	}
	if got := quantile(Lengths{Shape: LogNormal, P50: 200, P99: 1500, Min: 150, Max: 300}, 999); got != 300 {
		t.Errorf("beyond its bound: %v", got)
	}
	if got := quantile(Lengths{}, 500); got != 1 {
		t.Errorf("a length of %v", got)
	}
}
