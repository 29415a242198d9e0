package capacity

import (
	"testing"
	"time"

	"sluice"
)

var monday = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// history makes hours of requests of 1,000 in and 200 out, by a function of the
// hour since monday.
func history(hours int, requests func(h int) int64) []Bucket {
	var out []Bucket
	for h := range hours {
		n := requests(h)
		out = append(out, Bucket{Start: monday.Add(time.Duration(h) * time.Hour), Attempts: n, Input: n * 1000, Cached: n * 250, Output: n * 200})
	}
	return out
}

func (o Outlook) mustSolve(t *testing.T) Forecast {
	t.Helper()
	f, err := o.Solve()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func growth(t *testing.T, s string) *Growth {
	t.Helper()
	g := &Growth{}
	if err := g.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestForecastOfGivenGrowth: 3,600 requests in a quiet hour and 10,800 in the
// busiest, which is one of six.
func TestForecastOfGivenGrowth(t *testing.T) {
	f := Outlook{
		History: history(240, func(h int) int64 {
			if h%6 == 0 {
				return 10_800
			}
			return 3_600
		}),
		Until: monday.Add(240 * time.Hour), Growth: growth(t, "10%/month"), Horizon: 2 * spans["month"], Replica: llama8b(),
	}.mustSolve(t)
	mean := Ratio(4, 3) // (3·1/6 + 1·5/6) requests a second
	for _, c := range []struct {
		name      string
		got, want Amount
	}{
		{"requests now", f.Mean.Requests, mean.coarse(fineness)},
		{"input peak ÷ mean", f.Peaks.Input, Ratio(9, 4)},
		{"growth", f.Growth.Plus(Ratio(1, 2_000_000)).coarse(1_000_000), Ratio(21, 100)},
		{"peak now", Int(f.Points[0].Plan.Demand.Input.Ceil()), Int(3_000)},
		{"peak in two months", Int(f.Points[len(f.Points)-1].Plan.Demand.Input.Ceil()), Int(3_630)},
		{"computed now", Int(f.Mean.Prefill.Ceil()), Int(1_000)}, // a quarter is cached
	} {
		if !c.got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
	if f.Fitted != 0 || f.Hours != 240 || !f.Out.IsZero() {
		t.Errorf("got %d parts fitted, %d hours, out at %s", f.Fitted, f.Hours, f.Out)
	}
}

// TestForecastFitsEachDimension has requests that do not change while their
// inputs grow by 100 tokens a day: what requests per minute do not see.
func TestForecastFitsEachDimension(t *testing.T) {
	h := history(10*24, func(int) int64 { return 3600 })
	for i := range h {
		h[i].Input = 3600 * (1000 + 100*int64(i/24))
		h[i].Cached = 0
	}
	o := Outlook{History: h, Until: monday.Add(240 * time.Hour), Horizon: 30 * day, Replica: llama8b(), GPUs: 1}
	f := o.mustSolve(t)
	// Day 9 has 1,900; its middle is half a day ago, and 30 days on it is 1,950 + 3,000.
	last := f.Points[len(f.Points)-1]
	if got := last.Mean.Input; !got.Equal(Int(4950)) {
		t.Errorf("input in 30 days: got %s tokens/s, want 4950", got)
	}
	if !f.Mean.Requests.Equal(Int(1)) || !last.Mean.Requests.Equal(Int(1)) || f.Fitted != 10 || f.Span != day {
		t.Errorf("got %s and then %s requests/s, fitted to %d parts of %d s", f.Mean.Requests, last.Mean.Requests, f.Fitted, f.Span)
	}
}

// TestForecastSaysWhenTheFleetRunsOut looks at each day itself for comparison.
func TestForecastSaysWhenTheFleetRunsOut(t *testing.T) {
	o := Outlook{
		History: history(28*24, func(int) int64 { return 36_000 }), Until: monday.Add(28 * 24 * time.Hour),
		Growth: growth(t, "20%/month"), Horizon: 12 * spans["month"], Replica: llama8b(), GPUs: 2, Lose: Share{Ratio(1, 2)},
	}
	f := o.mustSolve(t)
	at := func(days int64) Plan {
		p, err := o.point(o.workloads(seriesOf(o.History, o.Until)), days*day)
		if err != nil {
			t.Fatal(err)
		}
		return p.Plan
	}
	var out, lost int64 = -1, -1
	for d := int64(0); d < 365 && out < 0; d++ {
		if p := at(d); p.Over {
			out = d
		} else if p.Lost.Over && lost < 0 {
			lost = d
		}
	}
	if out < 1 || lost < 1 {
		t.Fatalf("the example never runs out: %d, %d", out, lost)
	}
	// The search steps over days from each point on, so that it is late by a day at most.
	for _, c := range []struct {
		name string
		got  time.Time
		want int64
	}{{"out", f.Out, out}, {"out with a loss", f.LostOut, lost}} {
		if days := int64(c.got.Sub(o.Until) / (24 * time.Hour)); days < c.want || days > c.want+1 {
			t.Errorf("%s: got day %d, want %d", c.name, days, c.want)
		}
	}
}

func TestForecastOfLittle(t *testing.T) {
	o := Outlook{Until: monday.Add(30 * time.Hour), Horizon: day, Replica: llama8b()}
	if _, err := o.Solve(); sluice.AsError(err).Param != "since" {
		t.Errorf("got %v for no history, want one of since", err)
	}
	o.History = history(30, func(int) int64 { return 360 })
	if f := o.mustSolve(t); f.Fitted != 0 || f.Growth.Sign() != 0 {
		t.Errorf("got a growth of %s fitted to %d parts of 30 hours, want none", f.Growth, f.Fitted)
	}
	// What ends is not planned below nothing.
	o.History = history(28*24, func(h int) int64 { return int64(28*24 - h) })
	o.Until = monday.Add(28 * 24 * time.Hour)
	o.Horizon = 60 * day
	if f := o.mustSolve(t); f.Points[len(f.Points)-1].Mean.Input.Sign() != 0 {
		t.Errorf("got %s tokens/s after the end", f.Points[len(f.Points)-1].Mean.Input)
	}
}

// TestSampledSpread plans what was seen as if it were written out.
func TestSampledSpread(t *testing.T) {
	var seen []sluice.Tokens
	for i := range 50 {
		n := sluice.Tokens(1000)
		if i == 0 {
			n = 100_000
		}
		seen = append(seen, n)
	}
	w := Workload{Rate: Rate{Int(5)}, Input: SampleOf(seen).Stretched(Int(2980)), Output: Alike(200)}
	got, err := w.Demand()
	if err != nil {
		t.Fatal(err)
	}
	w.Input = lengths(t, "1k,2%:100k")
	want, err := w.Demand()
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.sums {
		if !got.sums[i].Equal(want.sums[i]) {
			t.Errorf("sum %d: got %s, want %s", i, got.sums[i], want.sums[i])
		}
	}
}

// BenchmarkForecast looks a year ahead of a year of hours, with a spread of
// lengths: the longest question of one group.
func BenchmarkForecast(b *testing.B) {
	var seen []sluice.Tokens
	for i := range 500 {
		seen = append(seen, sluice.Tokens(100+i*i%9001))
	}
	o := Outlook{
		History: history(9500, func(h int) int64 { return int64(3000 + h/3 + h*7919%997) }), Until: monday.Add(9500 * time.Hour),
		Horizon: 31_557_600, Replica: llama8b(), GPUs: 4, Lose: Share{Ratio(1, 4)}, Inputs: SampleOf(seen), Outputs: SampleOf(seen),
	}
	for b.Loop() {
		if _, err := o.Solve(); err != nil {
			b.Fatal(err)
		}
	}
}
