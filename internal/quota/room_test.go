package quota_test

import (
	"math/rand/v2"
	"testing"

	"sluice"
	"sluice/internal/quota"
)

// TestRoom: what a request needs beyond its room is refused, and described; what it needs
// within it is not, whatever has become of the budgets meanwhile.
func TestRoom(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	amount := func(n int64) sluice.Limit {
		return limit(sluice.Spend, []sluice.Window{sluice.PerMinute, sluice.PerHour}[chance.IntN(2)], 1+chance.Int64N(n))
	}
	for range 4000 {
		book, now := quota.NewBook(), start
		claims := []quota.Claim{claim("k", amount(100)), claim("l", amount(100))}
		var r quota.Reservation
		book.Open(now, &r, claims)
		if held := chance.Int64N(60); held > 0 {
			if f := book.Reserve(now, &r, quota.Amounts{sluice.Spend: held}, quota.Amounts{}); f != nil {
				book.Release(now, &r)
				continue
			}
		}
		book.Charge(now, now, claims[:1], quota.Amounts{sluice.Spend: chance.Int64N(150)}) // a debt, perhaps
		if chance.IntN(3) == 0 {                                                           // another policy is in force
			claims[1].Limits = append(claims[1].Limits[:1:1], amount(50))
			var other quota.Reservation
			book.Open(now, &other, claims)
			book.Release(now, &other)
		}
		room, limited := book.Room(now, &r)
		if !limited || room < 0 {
			t.Fatalf("room for %v, limited %v", room, limited)
		}
		for need := range int64(160) {
			if f := book.SpendRefusal(now, &r, need); (f == nil) != (need <= int64(room)) {
				t.Fatalf("room for %d: a need of %d gets %+v", room, need, f)
			}
		}
		book.Settle(now, &r, quota.Amounts{})
	}
}
