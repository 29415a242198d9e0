package wire

import (
	"math/rand/v2"
	"testing"
)

// Whatever stands where, plain finds what looking at each byte finds.
func TestPlain(t *testing.T) {
	slow := func(b []byte, i int) int {
		for ; i < len(b); i++ {
			if c := b[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
				return i
			}
		}
		return i
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		b := make([]byte, random.IntN(200))
		for i := range b {
			b[i] = byte(0x20 + random.IntN(0x60))
			if random.IntN(40) == 0 {
				b[i] = byte(random.IntN(256))
			}
		}
		in := inside{-1}
		for from := random.IntN(len(b) + 1); from <= len(b); {
			got, alone, want := in.plain(b, from), plain(b, from), slow(b, from)
			if got != want || alone != want {
				t.Fatalf("got %d and %d, want %d from %d of %q", got, alone, want, from, b)
			}
			from = got + 1 + random.IntN(2)*random.IntN(60) // an escape may hide what follows it
		}
	}
}
