package capacity

import "time"

// Bucket is what was used in one hour.
type Bucket struct {
	Start    time.Time
	Attempts int64 // at a backend
	Input    int64 // tokens, cached ones too
	Cached   int64 // of them, read from a cache
	Output   int64 // tokens
}

// series are the dimensions of a history, in hours.
type series struct {
	hours int64
	// Of each hour, oldest first.
	requests, input, cached, output []int64
}

const (
	hour = 3600
	day  = 24 * hour
	week = 7 * day
)

// seriesOf lays buckets on a line of hours that ends at until, which is a full
// hour, and begins with the first one that was used.
func seriesOf(buckets []Bucket, until time.Time) series {
	first := until
	for _, b := range buckets {
		if b.Start.Before(first) && b.Attempts > 0 {
			first = b.Start
		}
	}
	s := series{hours: int64(until.Sub(first) / time.Hour)}
	lines := []*[]int64{&s.requests, &s.input, &s.cached, &s.output}
	for _, line := range lines {
		*line = make([]int64, s.hours)
	}
	for _, b := range buckets {
		i := int64(b.Start.Sub(first) / time.Hour)
		if b.Start.Before(first) || i >= s.hours {
			continue
		}
		for k, n := range []int64{b.Attempts, b.Input, b.Cached, b.Output} {
			(*lines[k])[i] += n
		}
	}
	return s
}

// sum is Σ of a line's last n entries but skip.
func sum(line []int64, n, skip int64) int64 {
	end := int64(len(line)) - skip
	total := int64(0)
	for _, v := range line[max(end-n, 0):max(end, 0)] {
		total += v
	}
	return total
}

// recent is how many hours tell of now: the last week, or all there are.
func (s series) recent() int64 { return min(s.hours, week/hour) }

// mean is a line's rate per second lately.
func (s series) mean(line []int64) Amount {
	return Int(sum(line, s.recent(), 0)).Over(Int(s.recent() * hour))
}

// peak is the highest hour of late ÷ their mean, 1 where there is nothing.
func (s series) peak(line []int64) Amount {
	n := s.recent()
	most := int64(0)
	for _, v := range line[int64(len(line))-n:] {
		most = max(most, v)
	}
	if total := sum(line, n, 0); total > 0 {
		return Ratio(most*n, total)
	}
	return Int(1)
}

// trend is a straight line: a rate per second at until, and what it grows by each
// second.
type trend struct{ level, slope Amount }

// at is the rate so many seconds after until, never below 0.
func (t trend) at(seconds int64) Amount {
	return Max(Amount{}, t.level.Plus(t.slope.Times(Int(seconds))))
}

// span is how long the parts are that a trend is fitted to: whole weeks once
// there are three, since no day of the week is like another, else whole days once
// there are seven; 0 where there are fewer.
func (s series) span() (seconds, parts int64) {
	if n := s.hours * hour / week; n >= 3 {
		return week, min(n, 52)
	}
	if n := s.hours * hour / day; n >= 7 {
		return day, n
	}
	return 0, 0
}

// fit is the line of least squares through the sums of the latest parts.
func (s series) fit(line []int64) trend {
	span, n := s.span()
	if n == 0 {
		return trend{level: s.mean(line)}
	}
	// Part i, from the newest, has its middle at −(i + 1/2) spans.
	var sx, sy, sxx, sxy Amount
	for i := range n {
		x := Ratio(-(2*i+1)*span, 2)
		y := Int(sum(line, span/hour, i*span/hour)).Over(Int(span))
		sx, sy = sx.Plus(x), sy.Plus(y)
		sxx, sxy = sxx.Plus(x.Times(x)), sxy.Plus(x.Times(y))
	}
	count := Int(n)
	slope := count.Times(sxy).Minus(sx.Times(sy)).Over(count.Times(sxx).Minus(sx.Times(sx)))
	return trend{level: sy.Minus(slope.Times(sx)).Over(count), slope: slope}
}

// factor is what a given growth makes of a rate after so many seconds: compounded
// over whole periods and a straight line within one, which is never less.
func (g Growth) factor(seconds int64) Amount {
	if g.Period == 0 {
		return Int(1)
	}
	once := Int(1).Plus(g.Rate)
	f := Int(1)
	for range seconds / g.Period {
		f = f.Times(once).coarse(fineness)
	}
	return f.Times(Int(1).Plus(g.Rate.Times(Ratio(seconds%g.Period, g.Period)))).coarse(fineness)
}

// fineness is the steps of a factor: no forecast is exact to a billionth.
const fineness = 1_000_000_000
