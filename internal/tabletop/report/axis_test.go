package report

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice"
	"sluice/internal/tabletop"
)

var same = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)}

func TestJoinedBucketsKeepTheWorst(t *testing.T) {
	s := tabletop.Series{Bucket: time.Second, Count: 5}
	a := newAxis([]*tabletop.Result{{Series: s}}, 3)
	if a.columns != 3 || a.joined != 2 || a.width != 2*time.Second {
		t.Fatalf("got %d columns of %v, want 3 of 2s", a.columns, a.width)
	}
	ttft := []time.Duration{100, 300, -1, -1, 50}
	for _, tt := range []struct {
		name      string
		got, want []float64
	}{
		{"percentiles", highest(a, s, ttft, 1), []float64{300, missing, 50}},
		{"backends up", lowest(a, s, []int64{8, 6, 7, 8, -1}), []float64{6, 7, missing}},
		{"rates", rates(a, s, []int64{1, 3, 0, 0, 5}), []float64{2, 0, 2.5}},
		{"shares", means(a, s, []int64{100, 300, -1, 500, -1}), []float64{20, 50, missing}},
		// 3 completions at $1 and one at $5, by thousand; none is no cost of 0.
		{"cost", perGood(a, s, []sluice.Nano{1e9, 5e9, -1, -1, 2e9}, []int64{3, 1, 0, 0, 1}), []float64{2000, missing, 2000}},
	} {
		if diff := cmp.Diff(tt.want, tt.got, same); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestScales(t *testing.T) {
	for _, tt := range []struct {
		name   string
		unit   unit
		values []float64
		log    bool
		ticks  []string
	}{
		{"nothing", inRate, []float64{missing}, false, []string{"0"}},
		{"from zero", inRate, []float64{3, 87}, false, []string{"0", "25", "50", "75", "100"}},
		{"a time", inSeconds, []float64{0.02, 0.09}, false, []string{"0", "25 ms", "50 ms", "75 ms", "100 ms"}},
		{"far apart", inSeconds, []float64{0.08, 42}, true, []string{"100 ms", "1 s", "10 s"}},
		{"decades", inSeconds, []float64{1e-6, 1e9}, true, nil},
		{"waits begin at zero", inWait, []float64{0, 0.01, 28}, false, []string{"0", "10 s", "20 s", "30 s"}},
		{"whole", inWhole, []float64{0, 3}, false, []string{"0", "1", "2", "3"}},
		{"long", inWait, []float64{400}, false, []string{"0", "2 min", "4 min", "6 min", "8 min"}},
	} {
		s := newScale(tt.unit, tt.values)
		if s.log != tt.log {
			t.Errorf("%s: logarithmic is %t, want %t", tt.name, s.log, tt.log)
		}
		var got []string
		for _, x := range s.ticks {
			got = append(got, tick(s, x))
			if y := s.y(x); y < 0 || y > tall {
				t.Errorf("%s: the tick %g stands at %d, outside", tt.name, x, y)
			}
		}
		if len(got) > 9 {
			t.Errorf("%s: %d ticks are too many: %q", tt.name, len(got), got)
		}
		if diff := cmp.Diff(tt.ticks, got); tt.ticks != nil && diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestPathsBreakWhereThereIsNoSample(t *testing.T) {
	s := newScale(inRate, []float64{100})
	for _, tt := range []struct {
		values []float64
		want   string
	}{
		{nil, ""},
		{[]float64{missing, missing}, ""},
		{[]float64{0, 50, 50, 50, 100}, "M0 1000l1-500 2 0 1-500"},
		{[]float64{missing, 100, missing, 0, 50}, "M0.6 0h.8M3 1000l1-500"},
	} {
		if got := path(s, tt.values); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.values, got, tt.want)
		}
	}
	if got, want := area(s, []float64{missing, 50}), "M-.5 1000V1000H0l1-500h.5V1000z"; got != want {
		t.Errorf("area: got %q, want %q", got, want)
	}
}

func TestQuantities(t *testing.T) {
	for _, tt := range []struct {
		got  quantity
		want string
	}{
		{duration(-1), "–"},
		{duration(0), "0 ms"},
		{duration(423 * time.Microsecond), "0.423 ms"},
		{duration(999_499 * time.Microsecond), "999 ms"},
		{duration(999_500 * time.Microsecond), "1.00 s"},
		{duration(119 * time.Second), "119 s"},
		{duration(150 * time.Second), "2.50 min"},
		{duration(5 * time.Hour), "5.00 h"},
		{duration(math.MaxInt64), "106752 d"},
		{count(999_999), "999,999"},
		{count(1_000_000), "1.00M"},
		{amount(1_050_000), "1.05M"},
		{amount(66.66), "66.7"},
		{amount(999.9), "1.00k"},
		{amount(math.Inf(1)), "–"},
		{amount(1e300), "1.0e+300"},
		{percent(996), "99.6%"},
		{times(1020), "1.02×"},
		{dollars(0), "$0"},
		{dollars(1_234_567), "$0.00123"},
		{dollars(12), "$0.000000012"},
		{dollars(1_500_000_000), "$1.50"},
		{dollars(math.MaxInt64), "$9.22G"},
	} {
		if got := tt.got.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0", 90 * time.Second: "1m30s", 185 * time.Second: "3m05s", time.Hour: "1h", 2*time.Hour + 5*time.Second: "2h00m05s", 250 * time.Millisecond: "250ms"} {
		if got := moment(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
