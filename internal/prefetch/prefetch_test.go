package prefetch_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice/internal/prefetch"
)

type piece struct {
	next *piece
	rest [504]byte
}

// TestAnyAddress asks for what there is, for none of it, and for what is beyond its ends,
// and finds everything as it was.
func TestAnyAddress(t *testing.T) {
	var beside []*piece // in the memory before and behind it
	for range 64 {
		beside = append(beside, &piece{})
	}
	p := &piece{next: beside[0]}
	for i := range p.rest {
		p.rest[i] = byte(i)
	}
	want := *p
	prefetch.Of(p)
	prefetch.Of[piece](nil)
	prefetch.Of(&struct{}{})
	for i := range p.rest {
		prefetch.Of(&p.rest[i])
		prefetch.From(&p.rest[i], 0)
		prefetch.From(&p.rest[i], 1<<16)
		prefetch.From[byte](nil, uintptr(i))
		prefetch.Around(&p.rest[i], 1<<16, uintptr(i))
		prefetch.Around[byte](nil, 64, 128)
	}
	if *p != want {
		t.Fatal("what was asked for has changed")
	}
}

func TestAllocatesNothing(t *testing.T) {
	p := &piece{}
	if n := testing.AllocsPerRun(100, func() {
		local := piece{next: p} // not moved to the heap for being asked for
		prefetch.Of(&local)
		prefetch.From(p, 64)
		prefetch.Around(p, 64, 64)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkAhead works on some of sixteen pieces that no cache holds, each found by what was
// done to the one before, with and without having asked for all of them first, by turns in
// one run: the ratio is of the time with to that without.
func BenchmarkAhead(b *testing.B) {
	const pieces, rounds, odd = 1 << 18, 50, 0x9e3779b97f4a7c15
	all := make([]piece, pieces)
	chance := rand.New(rand.NewPCG(1, 2))
	var sum uint64
	var took [2]time.Duration
	for b.Loop() {
		for with := range took {
			var at [16]*piece
			for i := range at {
				at[i] = &all[chance.IntN(pieces)]
			}
			from := time.Now()
			if with == 1 {
				for _, p := range at {
					prefetch.From(p, 64)
				}
			}
			for range at {
				sum += uint64(at[sum>>60].rest[0])
				for range rounds {
					sum = sum*odd + 1
				}
			}
			took[with] += time.Since(from)
		}
	}
	all[0].rest[0] = byte(sum)
	b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
}
