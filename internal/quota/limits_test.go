package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/quota"
)

// TestLimitsAreAsOfThen: limits tell what the counters have at that moment, however long
// ago somebody brought those up to date, and go on to.
func TestLimitsAreAsOfThen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 1000)
		k := claim("k", limit(sluice.Spend, sluice.PerHour, amount.Draw(t, "spend")), limit(sluice.InputTokens, sluice.PerMinute, amount.Draw(t, "input")),
			limit(sluice.Concurrency, sluice.NoWindow, 2), limit(sluice.OutputTokens, sluice.PerSecond, amount.Draw(t, "output")))
		book, now := quota.NewBook(), start
		var buffer quota.LimitsBuffer
		told, at := quota.Limits{}, now
		var want []quota.CounterView
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Minute)).Draw(t, "by")))
			r := &quota.Reservation{}
			book.Open(now, r, []quota.Claim{k})
			need := quota.Amounts{sluice.InputTokens: amount.Draw(t, "needs"), sluice.OutputTokens: amount.Draw(t, "needs"), sluice.Spend: 1, sluice.Concurrency: 1}
			if book.Reserve(now, r, need, quota.Amounts{}) != nil || book.TakeGauges(r, need) != nil {
				book.Release(now, r)
				continue
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "later")))
			buffer.Reset()
			told, at = book.Limits(now, r, &buffer), now
			want = book.View(now, book.Account(k.Owner), nil)
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "runs")))
			book.Settle(now, r, quota.Amounts{sluice.InputTokens: amount.Draw(t, "used"), sluice.OutputTokens: amount.Draw(t, "used"), sluice.Spend: amount.Draw(t, "used")})
		}
		for i, got := range told.States(nil) {
			reset := time.Duration(0)
			if got.Limit.Window == sluice.PerHour {
				reset = at.Truncate(time.Hour).Add(time.Hour).Sub(at)
			}
			if got.Limit != want[i].Limit || got.Remaining != max(0, want[i].Remaining) || got.Limit.Window.Fixed() && got.Reset != reset {
				t.Fatalf("told %+v, had %+v", got, want[i])
			}
		}
	})
}
