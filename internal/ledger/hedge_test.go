package ledger

import (
	"testing"
	"time"

	"sluice"
)

// Where the process dies while two attempts at a request race, both are settled, one of
// them as the end of the request; where one had lost by then, the other alone.
func TestLostWhileTwoRace(t *testing.T) {
	dir, sink := t.TempDir(), &memory{}
	j := open(t, dir, JournalOptions{})
	loser := entry("lost", 1, false)
	loser.Outcome, loser.Reason = sluice.Cancelled, sluice.LostRace
	must(t,
		j.Begin(reserve("both"), dispatch("both", 1)), j.Dispatch(dispatch("both", 2)), j.Checkpoint(checkpoint("both", 2, 900, 90_000)),
		j.Begin(reserve("lost"), dispatch("lost", 1)), j.Dispatch(dispatch("lost", 2)), j.Settle(loser))
	crash(t, j)

	j = open(t, dir, JournalOptions{Sink: sink})
	if n, err := j.SettleLost(t0.Add(time.Minute)); n != 3 || err != nil {
		t.Fatalf("settled %d, %v", n, err)
	}
	must(t, j.Flush(t.Context()))
	finals := map[sluice.RequestID]int{}
	for key, e := range sink.entries {
		if e.Final {
			finals[e.Request]++
		}
		want := [...]any{sluice.Expired, sluice.Lost}
		if key == "lost/1" {
			want = [...]any{sluice.Cancelled, sluice.LostRace}
		}
		if got := [...]any{e.Outcome, e.Reason}; got != want || e.Cost == 0 || e.CostHigh < e.Cost {
			t.Errorf("%s: %v at %v, %v; want %v", key, got, e.Cost, e.CostHigh, want)
		}
	}
	if len(sink.entries) != 4 || finals["both"] != 1 || finals["lost"] != 1 || sink.entries["both/2"].Cost != 90_000 {
		t.Errorf("%d entries, final %v, the hedge's checkpoint counts as %v", len(sink.entries), finals, sink.entries["both/2"].Cost)
	}
	must(t, j.Close(t.Context()))
}
