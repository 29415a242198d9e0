package quota_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/quota"
)

// TestFullIsExact: an account that is known to be full decides and counts as one of which
// nothing is known, as after somebody has looked at it.
func TestFullIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 400)
		claims := []quota.Claim{
			claim("k", limit(sluice.Requests, sluice.PerSecond, amount.Draw(t, "requests")), limit(sluice.Spend, sluice.PerHour, 20*amount.Draw(t, "spend"))),
			claim("t", limit(sluice.InputTokens, sluice.PerMinute, amount.Draw(t, "input")), limit(sluice.InputTokens, sluice.PerSecond, amount.Draw(t, "input"))),
		}
		plain, quick, now := quota.NewBook(), quota.NewBook(), start
		views := func(b *quota.Book) (v []quota.CounterView) {
			for i := range claims {
				if a := b.Account(claims[i].Owner); a != nil {
					v = b.View(now, a, v)
				}
			}
			return v
		}
		var open [][2]*quota.Reservation
		both := func(do func(b *quota.Book, r *quota.Reservation) any, r [2]*quota.Reservation) {
			views(plain)
			if want, got := do(plain, r[0]), do(quick, r[1]); fmt.Sprint(want) != fmt.Sprint(got) {
				t.Fatalf("known to be full: %v, else %v", got, want)
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "reload") == 0 {
				claims[0] = claim("k", limit(sluice.Requests, sluice.PerSecond, amount.Draw(t, "requests")))
			}
			now = now.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 16, 1e6, 1e9, 1e9, 60e9, 600e9}).Draw(t, "by") * rapid.Int64Range(1, 3).Draw(t, "times")))
			used := quota.Amounts{sluice.Requests: 1, sluice.InputTokens: rapid.Int64Range(0, 500).Draw(t, "used"), sluice.Spend: rapid.Int64Range(0, 100).Draw(t, "cost")}
			i := rapid.IntRange(0, 2*len(open)).Draw(t, "which")
			if i >= len(open) {
				r := [2]*quota.Reservation{{}, {}}
				r[0].Bound(quota.Amounts{sluice.InputTokens: 300})
				r[1].Bound(quota.Amounts{sluice.InputTokens: 300})
				both(func(b *quota.Book, r *quota.Reservation) any {
					b.Open(now, r, claims)
					f := b.Reserve(now, r, used, quota.Amounts{})
					if f != nil {
						b.Release(now, r)
						return *f
					}
					return b.Limits(now, r, nil).States(nil)
				}, r)
				if r[0].Open() {
					open = append(open, r)
				}
				continue
			}
			op := rapid.IntRange(0, 6).Draw(t, "op")
			both(func(b *quota.Book, r *quota.Reservation) any {
				switch op {
				case 0:
					b.Post(now, r, used)
				case 1:
					return b.Raise(now, r, sluice.InputTokens, used[sluice.InputTokens])
				case 2:
					b.Expire(now, r)
					b.SettleLate(now, r, used)
				case 3:
					b.Charge(now, now, claims, used)
				default:
					b.Settle(now, r, used)
				}
				return nil
			}, open[i])
			if !open[i][0].Open() {
				open = append(open[:i], open[i+1:]...)
			}
		}
		if got, want := views(quick), views(plain); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("known to be full: %v\nelse %v", got, want)
		}
	})
}
