package capacity

import (
	"encoding"
	"testing"

	"pgregory.net/rapid"

	"sluice"
)

func TestParse(t *testing.T) {
	read := func(to encoding.TextUnmarshaler, text string) error { return to.UnmarshalText([]byte(text)) }
	for _, tc := range []struct {
		text string
		to   interface {
			encoding.TextUnmarshaler
			String() string
		}
		want string // empty: refused
	}{
		{"30", &Rate{}, "30"},
		{"20/min", &Rate{}, "0.333"},
		{"1.8k/h", &Rate{}, "0.5"},
		{"0", &Rate{}, "0"},
		{"-1", &Rate{}, ""},
		{"1e9", &Rate{}, ""},
		{"1/0", &Rate{}, ""},
		{"5/month", &Rate{}, ""},
		{"", &Rate{}, ""},
		{".5", &Rate{}, ""},
		{"1..2", &Rate{}, ""},
		{"9999999999999999999", &Rate{}, ""},
		{"25%", &Share{}, "0.25"},
		{"0.25", &Share{}, "0.25"},
		{"101%", &Share{}, ""},
		{"25 percent", &Share{}, ""},
		{"250%", &Part{}, "2.5"},
		{"101", &Part{}, ""},
		{"1.5k", &Amount{}, "1500"},
		{"1.5k,2%:100k", &Lengths{}, "1500,2%:100000"},
		{"p50=800,p90=3k,p99=12k,max=32k", &Lengths{}, "p50=800,p90=3000,p99=12000,max=32000"},
		{"2k,p50=800", &Lengths{}, "2000,p50=800"},
		{"p95=3", &Lengths{}, ""},
		{"p50=1.5", &Lengths{}, ""},
		{"5,2:3", &Lengths{}, ""},
		{"p50=900M", &Lengths{}, ""},
	} {
		err := read(tc.to, tc.text)
		if (err == nil) != (tc.want != "") || err == nil && tc.to.String() != tc.want {
			t.Errorf("%q: got %s, %v; want %q", tc.text, tc.to, err, tc.want)
		}
		if err != nil && sluice.AsError(err).Hint == "" {
			t.Errorf("%q: no hint with %v", tc.text, err)
		}
	}
	for text, ok := range map[string]bool{"5%/month": true, "-2%/week": true, "0": true, "+1%/day": true, "5%": false, "5%/h": false, "-100%/year": false, "1100%/year": false, "x/month": false} {
		if err := read(&Growth{}, text); (err == nil) != ok {
			t.Errorf("growth %q: got %v", text, err)
		}
	}
	for text, want := range map[string]int64{"28d": 28 * day, "6mo": 6 * 2_629_800, "1y": 31_557_600, "36h": 36 * hour, "d": 0, "0d": 0, "28": 0, "1.5d": 0, "-3d": 0, "123456d": 0} {
		if got, err := ParseSpan(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("span %q: got %d, %v; want %d", text, got, err, want)
		}
	}
}

// TestLengthsReadBack writes lengths as a line that reads as the same.
func TestLengthsReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := Lengths{
			Mean: Int(rapid.Int64Range(0, 100_000).Draw(rt, "mean")),
			P50:  Tokens(rapid.Int64Range(0, 5_000).Draw(rt, "p50")),
			P99:  Tokens(rapid.Int64Range(0, 50_000).Draw(rt, "p99")),
		}
		if rapid.Bool().Draw(rt, "has long ones") {
			l.Long = []Long{{Share{Ratio(rapid.Int64Range(0, 100).Draw(rt, "share"), 100)}, Tokens(rapid.Int64Range(0, 1_000_000).Draw(rt, "long"))}}
		}
		var back Lengths
		if err := back.UnmarshalText([]byte(l.String())); err != nil {
			rt.Fatal(err)
		}
		if got, want := back.String(), l.String(); got != want {
			rt.Fatalf("got %s, want %s", got, want)
		}
		a, errA := l.moments()
		b, errB := back.moments()
		if (errA == nil) != (errB == nil) {
			rt.Fatalf("got %v and %v", errA, errB)
		}
		for k := range a.power {
			if errA == nil && !a.power[k].Equal(b.power[k]) {
				rt.Fatalf("moment %d: got %s, want %s", k, b.power[k], a.power[k])
			}
		}
	})
}

// TestQuantilesAreKept has as many requests at or below each quantile as it says,
// and the mean that was given.
func TestQuantilesAreKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p50 := rapid.Int64Range(1, 1000).Draw(rt, "p50")
		p90 := rapid.Int64Range(p50, 10*p50).Draw(rt, "p90")
		p99 := rapid.Int64Range(p90, 10*p90).Draw(rt, "p99")
		l := Lengths{P50: Tokens(p50), P90: Tokens(p90), P99: Tokens(p99)}
		free, err := l.moments()
		if err != nil {
			rt.Fatal(err)
		}
		l.Mean = free.power[1].Times(Ratio(rapid.Int64Range(70, 130).Draw(rt, "of the mean"), 100))
		points, err := l.points()
		if err != nil {
			rt.Skip(err) // these quantiles do not allow it
		}
		var all, mean Amount
		upTo := map[int64]Amount{}
		for _, p := range points {
			all, mean = all.Plus(p.share), mean.Plus(p.share.Times(p.tokens))
			for _, q := range []int64{p50, p90, p99} {
				if p.tokens.Cmp(Int(q)) <= 0 {
					upTo[q] = upTo[q].Plus(p.share)
				}
			}
		}
		if !all.Equal(Int(1)) || !mean.Equal(l.Mean) {
			rt.Fatalf("got %s requests of %s on average, want 1 of %s", all, mean, l.Mean)
		}
		for q, part := range map[int64]Amount{p50: Ratio(1, 2), p90: Ratio(9, 10), p99: Ratio(99, 100)} {
			if upTo[q].Cmp(part) < 0 {
				rt.Fatalf("got %s of requests at or below %d, want %s at least", upTo[q], q, part)
			}
		}
	})
}

func TestRetriesAndCache(t *testing.T) {
	w := Workload{Rate: Rate{Int(10)}, Input: Alike(1000), Output: Alike(100), Hit: Share{Ratio(1, 4)}, Retries: Part{Int(1)}}
	d, err := w.Demand()
	if err != nil {
		t.Fatal(err)
	}
	if !d.Requests.Equal(Int(10)) || !d.Attempts.Equal(Int(20)) || !d.Input.Equal(Int(20_000)) || !d.Prefill.Equal(Int(15_000)) || !d.Output.Equal(Int(2_000)) {
		t.Errorf("got %s requests, %s attempts, %s in, %s computed, %s out", d.Requests, d.Attempts, d.Input, d.Prefill, d.Output)
	}
}
