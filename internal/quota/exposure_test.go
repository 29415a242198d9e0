package quota_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/quota"
)

// TestDebtIsBounded: what is exposed is Σ over live holds of (bound − hold), from
// the log alone, and a debt is never more than what was exposed when the last hold
// was taken: nothing but what was running then can have made it.
func TestDebtIsBounded(t *testing.T) {
	const amount = 100
	rapid.Check(t, func(t *rapid.T) {
		book, now := quota.NewBook(), start
		k := claim("k", limit(sluice.OutputTokens, sluice.PerMinute, amount))
		type live struct {
			r          *quota.Reservation
			hold, most int64
		}
		var all []*live
		var then int64
		exposed := func() (n int64) {
			for _, l := range all {
				n += max(0, l.most-l.hold)
			}
			return n
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			switch op := rapid.IntRange(0, 4).Draw(t, "op"); {
			case op < 2 || len(all) == 0:
				l := &live{r: &quota.Reservation{}}
				need := rapid.Int64Range(0, 150).Draw(t, "need")
				l.hold, l.most = min(need, amount), rapid.Int64Range(0, 300).Draw(t, "most")
				book.Open(now, l.r, []quota.Claim{k})
				l.r.Bound(quota.Amounts{sluice.OutputTokens: l.most})
				if book.Reserve(now, l.r, quota.Amounts{sluice.OutputTokens: need}, quota.Amounts{}) != nil {
					book.Release(now, l.r)
					break
				}
				all = append(all, l)
				if l.hold > 0 {
					then = exposed()
				} else {
					then += l.most
				}
			default:
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				l := all[i]
				all = append(all[:i], all[i+1:]...)
				switch op {
				case 2:
					book.Settle(now, l.r, quota.Amounts{sluice.OutputTokens: rapid.Int64Range(0, max(l.most, l.hold)).Draw(t, "used")})
				case 3:
					book.Release(now, l.r)
				default:
					book.Expire(now, l.r)
					book.Forget(l.r)
				}
			}
			a := book.Account(k.Owner)
			if a == nil {
				continue
			}
			v := book.View(now, a, nil)[0]
			if v.Exposed != exposed() {
				t.Fatalf("exposed %d, the log says %d", v.Exposed, exposed())
			}
			if v.Remaining < -then {
				t.Fatalf("debt %d is beyond what was exposed when the last hold was taken, %d", -v.Remaining, then)
			}
		}
	})
}

// TestHostileLabels: very many users that nobody has heard of cost bounded memory,
// and none of them is without limits.
func TestHostileLabels(t *testing.T) {
	book, now := quota.NewBook(), start
	book.Bound(1000, 100)
	limits := []sluice.Limit{limit(sluice.Requests, sluice.PerDay, 5)}
	admitted := 0
	const n = 50_000
	r := &quota.Reservation{}
	for i := range n {
		now = now.Add(time.Millisecond)
		book.Open(now, r, []quota.Claim{{Owner: quota.Owner{Scope: sluice.ScopeUser, ID: "acme", Part: fmt.Sprint("u", i)}, Limits: limits}})
		if book.Reserve(now, r, quota.Amounts{sluice.Requests: 1}, quota.Amounts{}) != nil {
			book.Release(now, r)
			continue
		}
		admitted++
		book.Settle(now, r, quota.Amounts{sluice.Requests: 1})
	}
	if book.Len() > 101 {
		t.Errorf("%d accounts, want at most 100 and the one that all others share", book.Len())
	}
	if admitted != 105 {
		t.Errorf("%d requests admitted, want one of each of 100 users and 5 of all others", admitted)
	}
}

// TestMemory prints what accounts weigh.
func TestMemory(t *testing.T) {
	const keys = 100_000
	before := heap()
	book, r := quota.NewBook(), &quota.Reservation{}
	six := sevenScopes(0)[0].Limits
	for i := range keys {
		book.Open(start, r, []quota.Claim{{Owner: quota.Owner{Scope: sluice.ScopeKey, ID: fmt.Sprint("key", i)}, Limits: six}})
		book.Release(start, r)
		if i == 0 { // keeps evict from taking what is at rest
			continue
		}
		book.Charge(start, start, []quota.Claim{{Owner: quota.Owner{Scope: sluice.ScopeKey, ID: fmt.Sprint("key", i)}, Limits: six}}, quota.Amounts{sluice.Spend: 1})
	}
	size := heap() - before
	t.Logf("%d keys with 6 limits each: %d MB, %d bytes a key", book.Len(), size>>20, size/keys)
	if size > 200<<20 {
		t.Errorf("%d MB, want at most 200", size>>20)
	}
	runtime.KeepAlive(book)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
