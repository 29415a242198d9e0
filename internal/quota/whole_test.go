package quota_test

import (
	"testing"

	"sluice"
	"sluice/internal/quota"
)

// A further attempt has what the failed one has left of the run.
func TestRunHoldsOutputWhole(t *testing.T) {
	book, now := quota.NewBook(), start
	claims := []quota.Claim{{Owner: quota.Owner{Scope: sluice.ScopeRun, ID: "acme", Part: "job"}, Limits: []sluice.Limit{limit(sluice.OutputTokens, sluice.PerRun, 100)}}}
	var r quota.Reservation
	book.Open(now, &r, claims)
	r.Bound(quota.Amounts{sluice.OutputTokens: 100})
	if f := book.Reserve(now, &r, quota.Amounts{sluice.OutputTokens: 10}, quota.Amounts{}); f != nil {
		t.Fatal(f)
	}
	if room, _ := book.OutputRoom(now, &r, 0); room != 100 {
		t.Errorf("room for %d beside what it holds, want 100", room)
	}
	book.Post(now, &r, quota.Amounts{sluice.OutputTokens: 30})
	if room, _ := book.OutputRoom(now, &r, 0); room != 70 {
		t.Errorf("room for %d after an attempt, want 70", room)
	}
	r.Bound(quota.Amounts{sluice.OutputTokens: 71})
	if f := book.TopUp(now, &r, quota.Amounts{sluice.OutputTokens: 10}, quota.Amounts{}); f == nil {
		t.Error("held more than the run has left")
	}
	r.Bound(quota.Amounts{sluice.OutputTokens: 70})
	if f := book.TopUp(now, &r, quota.Amounts{sluice.OutputTokens: 10}, quota.Amounts{}); f != nil {
		t.Errorf("refused by %+v", f)
	}
	book.Settle(now, &r, quota.Amounts{sluice.OutputTokens: 100})
}
