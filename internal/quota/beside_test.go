package quota_test

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/quota"
)

// TestBeside: a second attempt holds in the windows of the first, is no request, and
// ends by itself.
func TestBeside(t *testing.T) {
	book, now := quota.NewBook(), start.Truncate(time.Hour).Add(59*time.Minute)
	k := claim("k", limit(sluice.Requests, sluice.PerMinute, 10), limit(sluice.OutputTokens, sluice.PerMinute, 100), limit(sluice.Spend, sluice.PerHour, 100), limit(sluice.Concurrency, sluice.NoWindow, 2))
	need := quota.Amounts{sluice.Requests: 1, sluice.OutputTokens: 40, sluice.Spend: 40, sluice.Concurrency: 1}
	var first, second, third quota.Reservation
	book.Open(now, &first, []quota.Claim{k})
	if f := book.Reserve(now, &first, need, quota.Amounts{}); f != nil || book.TakeGauges(&first, need) != nil {
		t.Fatal(f)
	}
	now = now.Add(2 * time.Minute) // into the next hour
	hold := func(r *quota.Reservation) *quota.Refusal {
		book.Beside(r, &first)
		return book.TopUp(now, r, need, quota.Amounts{})
	}
	if f := hold(&second); f != nil {
		t.Fatal(f)
	}
	if room, _ := book.Room(now, &second); room != 60 {
		t.Errorf("room for %v in the hour of the first, want 100 − 40 of the first", room)
	}
	if book.TakeGauges(&second, need) != nil {
		t.Error("no room for two at a time")
	}
	if f := hold(&third); f == nil || f.Limit.Dimension != sluice.Spend {
		t.Errorf("got %+v, want the budget of an hour that both have spent 80 of", f)
	}
	book.Release(now, &third)
	view := func() (out quota.Amounts) {
		for _, c := range book.View(now, book.Account(k.Owner), nil) {
			out[c.Limit.Dimension] = c.Held + c.Used
		}
		return out
	}
	if got := view(); got[sluice.Requests] != 1 || got[sluice.Concurrency] != 2 || got[sluice.Spend] != 0 || got[sluice.OutputTokens] != 80 {
		t.Errorf("held %v of this hour, want one request, two at a time, 80 tokens, and no spend", got)
	}
	book.Settle(now, &second, quota.Amounts{sluice.OutputTokens: 10, sluice.Spend: 10})
	if f := hold(&third); f != nil {
		t.Errorf("after the end of the second: %+v", f)
	}
	book.Release(now, &third)
	book.Settle(now, &first, quota.Amounts{sluice.Requests: 1})
	if a := book.Account(k.Owner); a.Open() != 0 {
		t.Errorf("%d reservations are open", a.Open())
	}
}
