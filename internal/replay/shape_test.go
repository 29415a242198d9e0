package replay_test

import (
	"math"
	"testing"

	"sluice/internal/replay"
)

// hits is the share of blocks that caches without bound would hold, of which requests
// take turns.
func hits(rows []replay.Row, caches int) float64 {
	held := make([]map[int64]bool, caches)
	for i := range held {
		held[i] = map[int64]bool{}
	}
	found, all := 0, 0
	for i := range rows {
		cache, prefix := held[i%caches], true
		for _, b := range rows[i].Blocks {
			prefix = prefix && cache[b]
			if prefix {
				found++
			}
			cache[b] = true
			all++
		}
	}
	return float64(found) / float64(all)
}

// The rows that are made up repeat each other as those of the recordings do: what one
// cache without bound would hold of them, and eight in turn, is within two points.
func TestShapesRepeatAsRecordingsDo(t *testing.T) {
	for _, c := range []struct {
		shape      string
		one, eight float64
	}{
		{"mooncake-conversation", 0.366, 0.136},
		{"mooncake-synthetic", 0.640, 0.226},
	} {
		for seed := uint64(1); seed <= 3; seed++ {
			rows, err := replay.Synthesise(c.shape, replay.ReadOptions{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for i := range rows {
				sum += rows[i].Input
			}
			one, eight := hits(rows, 1), hits(rows, 8)
			t.Logf("%s, seed %d: %d rows of %d tokens, %.3f of the blocks in one cache, %.3f in eight", c.shape, seed, len(rows), sum/int64(len(rows)), one, eight)
			if math.Abs(one-c.one) > 0.02 || math.Abs(eight-c.eight) > 0.02 {
				t.Errorf("%s, seed %d: %.3f and %.3f, want %.3f and %.3f", c.shape, seed, one, eight, c.one, c.eight)
			}
		}
	}
}
