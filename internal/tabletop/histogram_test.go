package tabletop

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHistogramIsExactEnough: what is read off is within 1/64 of the sample of that
// rank, however samples are merged.
func TestHistogramIsExactEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, int64(72*time.Hour)), 1, 200).Draw(t, "samples")
		var a, b histogram
		for i, v := range all {
			if i%2 == 0 {
				a.add(time.Duration(v))
			} else {
				b.add(time.Duration(v))
			}
		}
		a.merge(&b)
		slices.Sort(all)
		if a.count != int64(len(all)) || a.most != time.Duration(all[len(all)-1]) || a.least != time.Duration(all[0]) {
			t.Fatalf("%d from %v to %v", a.count, a.least, a.most)
		}
		for _, part := range []int64{1000, 50_000, 90_000, 99_000, 99_900, 100_000} {
			rank := max((int64(len(all))*part+99_999)/100_000, 1)
			want := float64(all[rank-1])
			if got := float64(a.quantile(part)); got < want-want/64 || got > want+want/64 {
				t.Fatalf("part %d: got %v, want %v", part, got, want)
			}
		}
	})
}

func TestEveryBucketHoldsItsMiddle(t *testing.T) {
	for o := range octaves {
		for s := range subs {
			if o, s := o, s; o < octaves-2 {
				if v := valueOf(o, s); v >= 0 {
					if o2, s2 := bucketOf(uint64(v)); o2 != o || s2 != s {
						t.Fatalf("the middle of bucket %d/%d is %d, of bucket %d/%d", o, s, v, o2, s2)
					}
				}
			}
		}
	}
}

func TestEmptyHistogram(t *testing.T) {
	var h histogram
	if h.quantile(50_000) != -1 || h.percentiles() != (Percentiles{}) {
		t.Error("an empty histogram tells something")
	}
}
