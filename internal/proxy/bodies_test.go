package proxy

import "testing"

func TestBodySizes(t *testing.T) {
	var b bodies
	before := 0
	for n := minKept + 1; n <= maxKept; n++ {
		i, size := sizeOf(n)
		if size < n || 4*size > 5*n || i < 0 || i >= len(b.sizes) || size < before {
			t.Fatalf("%d bytes go into %d, at %d", n, size, i)
		}
		if k, again := sizeOf(size); k != i || again != size {
			t.Fatalf("a space of %d bytes is at %d, and comes back at %d", size, i, k)
		}
		before = size
	}
	if i, size := sizeOf(maxKept); i != len(b.sizes)-1 || size != maxKept {
		t.Errorf("the largest is of %d bytes, at %d", size, i)
	}
	for _, n := range []int64{-1, 0, minKept, maxKept + 1} {
		if b.take(n) != nil {
			t.Errorf("%d bytes are kept", n)
		}
	}
}

func TestBodiesAreUsedAgain(t *testing.T) {
	var b bodies
	b.give(nil)
	got := testing.AllocsPerRun(100, func() {
		s := b.take(80 << 10)
		if len(s.b) < 80<<10 {
			t.Fatal(len(s.b))
		}
		b.give(s)
	})
	if got > 0 {
		t.Errorf("%v allocations for each body", got)
	}
}
