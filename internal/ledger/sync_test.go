package ledger

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/test/bubble"
)

// Checkpoints ride along with the groups of other records and have one of their
// own once a second.
func TestCheckpointsSyncLate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var groups atomic.Int64
		j := open(t, t.TempDir(), JournalOptions{Hooks: Hooks{Synced: func(time.Duration, error) { groups.Add(1) }}})
		whole := func() bool {
			j.mu.Lock()
			defer j.mu.Unlock()
			return j.synced == j.end()
		}
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		must(t, j.Begin(reserve("a"), dispatch("a", 1)))
		if wait(20 * time.Millisecond); groups.Load() != 1 {
			t.Fatalf("got %d groups of a beginning, want 1", groups.Load())
		}
		for i := range 100 {
			must(t, j.Checkpoint(checkpoint("a", 1, 10, 100)))
			if wait(25 * time.Millisecond); groups.Load() > int64(1+i/38) {
				t.Fatalf("got %d groups after %d checkpoints", groups.Load(), i+1)
			}
		}
		if wait(2 * time.Second); groups.Load() != 4 || !whole() {
			t.Errorf("got %d groups, want 4 and all of it synced", groups.Load())
		}
		must(t, j.Checkpoint(checkpoint("a", 1, 10, 100)), j.Begin(reserve("b"), dispatch("b", 1)))
		if wait(20 * time.Millisecond); groups.Load() != 5 || !whole() {
			t.Errorf("with others: got %d groups, want 5", groups.Load())
		}
		must(t, j.Checkpoint(checkpoint("a", 1, 10, 100)), j.Sync(t.Context()))
		if groups.Load() != 6 {
			t.Errorf("for who waits: got %d groups, want 6", groups.Load())
		}
		if wait(2 * time.Second); groups.Load() != 6 {
			t.Errorf("for nothing: got %d groups, want 6", groups.Load())
		}
	})
}
