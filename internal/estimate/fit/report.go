package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// tally sums relative errors.
type tally struct{ n, abs, signed, worst float64 }

func (t *tally) add(rel float64) {
	t.n++
	t.abs += math.Abs(rel)
	t.signed += rel
	t.worst = max(t.worst, math.Abs(rel))
}

// report prints the errors of held-out text by kind, in percent.
func report(test []text, w []float64) {
	piece, whole := map[string]*tally{}, map[string]*tally{}
	all, allWhole := new(tally), new(tally)
	for i := range test {
		t := &test[i]
		rel := t.estimate(w)/t.truth - 1
		into, sum := piece, all
		if t.whole {
			into, sum = whole, allWhole
		}
		if into[t.kind] == nil {
			into[t.kind] = new(tally)
		}
		into[t.kind].add(rel)
		sum.add(rel)
	}
	fmt.Printf("%-14s %6s %6s %6s %6s   %5s %6s %6s %6s\n", "kind", "2 KB", "MAPE", "bias", "worst", "files", "MAPE", "bias", "worst")
	line := func(kind string, p, f *tally) {
		if p == nil || f == nil {
			return
		}
		fmt.Printf("%-14s %6.0f %6.1f %+6.1f %6.1f   %5.0f %6.1f %+6.1f %6.1f\n", kind,
			p.n, 100*p.abs/p.n, 100*p.signed/p.n, 100*p.worst, f.n, 100*f.abs/f.n, 100*f.signed/f.n, 100*f.worst)
	}
	for _, kind := range slices.Sorted(maps.Keys(piece)) {
		line(kind, piece[kind], whole[kind])
	}
	line("all", all, allWhole)
}
