package ledger

import (
	"testing"
	"testing/synctest"
	"time"
)

// Checkpoints ride along with the groups of other records and have one of their
// own once a second.
func TestCheckpointsSyncLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := 0
		j := open(t, t.TempDir(), JournalOptions{Hooks: Hooks{Synced: func(time.Duration, error) { groups++ }}})
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		must(t, j.Begin(reserve("a"), dispatch("a", 1)))
		if wait(20 * time.Millisecond); groups != 1 {
			t.Fatalf("got %d groups of a beginning, want 1", groups)
		}
		for i := range 100 {
			must(t, j.Checkpoint(checkpoint("a", 1, 10, 100)))
			if wait(25 * time.Millisecond); groups > 1+i/38 {
				t.Fatalf("got %d groups after %d checkpoints", groups, i+1)
			}
		}
		if wait(2 * time.Second); groups != 4 || j.synced != j.end() {
			t.Errorf("got %d groups, synced %v of %v", groups, j.synced, j.end())
		}
		must(t, j.Checkpoint(checkpoint("a", 1, 10, 100)), j.Begin(reserve("b"), dispatch("b", 1)))
		if wait(20 * time.Millisecond); groups != 5 || j.synced != j.end() {
			t.Errorf("with others: got %d groups, want 5", groups)
		}
		must(t, j.Checkpoint(checkpoint("a", 1, 10, 100)), j.Sync(t.Context()))
		if groups != 6 {
			t.Errorf("for who waits: got %d groups, want 6", groups)
		}
		if wait(2 * time.Second); groups != 6 {
			t.Errorf("for nothing: got %d groups, want 6", groups)
		}
	})
}
