package report

import (
	"math"
	"time"

	"sluice"
	"sluice/internal/tabletop"
)

// axis is the time of all charts of a page: columns of equal length from 0.
type axis struct {
	columns int
	width   time.Duration
	joined  int // buckets that one column covers
}

// newAxis covers every result's series in at most the given number of columns.
func newAxis(results []*tabletop.Result, most int) axis {
	var bucket, end time.Duration
	for _, r := range results {
		bucket = max(bucket, r.Series.Bucket)
		end = max(end, r.Series.Bucket*time.Duration(r.Series.Count))
	}
	if bucket <= 0 || end <= 0 {
		return axis{columns: 1, width: max(time.Second, results[0].Length), joined: 1}
	}
	buckets := int((end + bucket - 1) / bucket)
	joined := (buckets + most - 1) / most
	return axis{(buckets + joined - 1) / joined, bucket * time.Duration(joined), joined}
}

// span is the time that the axis covers.
func (a axis) span() time.Duration { return a.width * time.Duration(a.columns) }

// at is a moment as a position: column i is centred on i.
func (a axis) at(d time.Duration) float64 {
	return min(float64(a.columns)-0.5, max(-0.5, float64(d)/float64(a.width)-0.5))
}

// missing is the value of a column without a sample.
var missing = math.NaN()

// fold joins n buckets of a series into the columns of the axis: take adds
// bucket i to what a column has so far, which is missing at first.
func (a axis) fold(s tabletop.Series, n int, take func(i int, so float64) float64) []float64 {
	out := make([]float64, a.columns)
	for c := range out {
		out[c] = missing
	}
	for i := range min(n, s.Count) {
		if c := int(s.Bucket * time.Duration(i) / a.width); c < len(out) {
			out[c] = take(i, out[c])
		}
	}
	return out
}

// number is what series are made of.
type number interface{ ~int64 }

// rates are amounts by second.
func rates[N number](a axis, s tabletop.Series, v []N) []float64 {
	out := a.fold(s, len(v), func(i int, so float64) float64 {
		if v[i] < 0 {
			return so
		}
		return zero(so) + float64(v[i])
	})
	for c := range out {
		out[c] /= a.width.Seconds()
	}
	return out
}

// highest keeps the largest of what is joined: the worst percentile, the peak of
// a gauge. Each value is multiplied by unit.
func highest[N number](a axis, s tabletop.Series, v []N, unit float64) []float64 {
	return a.fold(s, len(v), func(i int, so float64) float64 {
		if v[i] < 0 {
			return so
		}
		return math.Max(zero(so), float64(v[i])*unit)
	})
}

// lowest keeps the smallest of what is joined.
func lowest[N number](a axis, s tabletop.Series, v []N) []float64 {
	return a.fold(s, len(v), func(i int, so float64) float64 {
		if v[i] < 0 {
			return so
		}
		if math.IsNaN(so) {
			return float64(v[i])
		}
		return math.Min(so, float64(v[i]))
	})
}

// means averages shares, as percentages.
func means[N number](a axis, s tabletop.Series, v []N) []float64 {
	sums, counts := make([]float64, a.columns), make([]float64, a.columns)
	out := a.fold(s, len(v), func(i int, so float64) float64 {
		if v[i] < 0 {
			return so
		}
		c := int(s.Bucket * time.Duration(i) / a.width)
		sums[c], counts[c] = sums[c]+float64(v[i])/10, counts[c]+1
		return sums[c] / counts[c]
	})
	return out
}

// perGood is the cost of joined buckets by their useful completions, in dollars
// for a thousand.
func perGood(a axis, s tabletop.Series, cost []sluice.Nano, good []int64) []float64 {
	sums, counts := make([]float64, a.columns), make([]float64, a.columns)
	return a.fold(s, min(len(cost), len(good)), func(i int, so float64) float64 {
		if good[i] <= 0 || cost[i] < 0 {
			return so
		}
		c := int(s.Bucket * time.Duration(i) / a.width)
		n := float64(good[i])
		sums[c], counts[c] = sums[c]+n*float64(cost[i])*1000/float64(sluice.Dollar), counts[c]+n
		return sums[c] / counts[c]
	})
}

func zero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

func seconds(x float64) quantity { return duration(time.Duration(x * float64(time.Second))) }

// unit is what a value axis counts, how it is ticked and written.
type unit struct {
	name  string // of the script too: it writes the values that a reader points at
	whole bool   // no ticks between whole numbers
	log   bool   // may be logarithmic
	write func(x float64) quantity
}

// The units of charts.
var (
	inSeconds = unit{"s", false, true, seconds}
	inWait    = unit{"s", false, false, seconds} // 0 as a rule, which a logarithmic axis has no place for
	inPercent = unit{"%", false, false, func(x float64) quantity { return quantity{digits(x), "%"} }}
	inTokens  = unit{"tokens", true, false, amount}
	inRate    = unit{"/s", false, false, amount}
	inDollars = unit{"$", false, true, func(x float64) quantity { return dollars(sluice.Nano(x * float64(sluice.Dollar))) }}
	inWhole   = unit{"", true, false, amount}
)

// scale is the value axis of a chart, from lo at the bottom to hi at the top.
type scale struct {
	unit
	lo, hi float64
	log    bool
	ticks  []float64
}

// steep is how many times the smallest value the largest must be for a
// logarithmic axis to show more than a linear one.
const steep = 25

// newScale fits values; the axis begins at 0 unless it is logarithmic.
func newScale(u unit, lines ...[]float64) scale {
	least, most := math.Inf(1), 0.0
	for _, l := range lines {
		for _, x := range l {
			if x > 0 && !math.IsInf(x, 0) {
				least, most = math.Min(least, x), math.Max(most, x)
			}
		}
	}
	if most == 0 {
		return scale{unit: u, hi: 1, ticks: []float64{0}}
	}
	if u.log && most/least >= steep {
		return logScale(u, least, most)
	}
	step := nice(most / 4)
	if u.name == "s" && most > 120 {
		step = niceTime(most / 4)
	}
	if u.whole {
		step = math.Ceil(step)
	}
	s := scale{unit: u, hi: step * math.Ceil(most/step*0.999999)}
	for i := 0; float64(i)*step <= s.hi*1.000001; i++ {
		s.ticks = append(s.ticks, float64(i)*step)
	}
	return s
}

func logScale(u unit, least, most float64) scale {
	s := scale{unit: u, log: true, lo: math.Pow(10, math.Floor(math.Log10(least))), hi: math.Pow(10, math.Ceil(math.Log10(most)))}
	for _, m := range []float64{5, 2} { // no emptier than it must be
		if s.lo*m <= least {
			s.lo *= m
			break
		}
	}
	for _, m := range []float64{5, 2} {
		if s.hi/m >= most {
			s.hi /= m
			break
		}
	}
	decades := math.Log10(s.hi / s.lo)
	step := max(1, int(math.Ceil(decades/5)))
	for e := int(math.Floor(math.Log10(s.lo))); ; e++ {
		at := math.Pow(10, float64(e))
		if at > s.hi*1.000001 {
			break
		}
		if at >= s.lo*0.999999 && e%step == 0 {
			s.ticks = append(s.ticks, at)
		}
	}
	if len(s.ticks) < 3 {
		s.ticks = nil
		for e := math.Floor(math.Log10(s.lo)); e <= math.Log10(s.hi); e++ {
			for _, m := range []float64{1, 2, 5} {
				if at := m * math.Pow(10, e); at >= s.lo*0.999999 && at <= s.hi*1.000001 {
					s.ticks = append(s.ticks, at)
				}
			}
		}
	}
	return s
}

// nice is the smallest 1, 2, 2.5 or 5 times a power of ten that is not below x.
func nice(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*p >= x*0.999999 {
			return m * p
		}
	}
	return 10 * p
}

// niceTime is likewise a time, in seconds, that people count in.
func niceTime(x float64) float64 {
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400} {
		if s >= x*0.999999 {
			return s
		}
	}
	return 86400 * nice(x/86400)
}

// tall is the height of a plot in its own units.
const tall = 1000

// y is where x stands, from 0 at the top to tall at the bottom.
func (s scale) y(x float64) int {
	part := (x - s.lo) / (s.hi - s.lo)
	if s.log {
		part = math.Log(math.Max(x, s.lo)/s.lo) / math.Log(s.hi/s.lo)
	}
	return tall - int(math.Round(tall*math.Min(1, math.Max(0, part))))
}
