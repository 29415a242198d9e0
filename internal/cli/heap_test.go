package cli

import "testing"

func TestHeapGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 4700, 1 << 20: 4700, 4 << 20: 1100, 12 << 20: 300, 24 << 20: 100, 25 << 20: 100, 4 << 30: 100} {
		if got := growth(live); got != want {
			t.Errorf("%d bytes live: got %d %%, want %d %%", live, got, want)
		}
	}
}
