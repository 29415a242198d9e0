package quota_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"sluice"
	"sluice/internal/quota"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func limit(d sluice.Dimension, w sluice.Window, n int64) sluice.Limit {
	return sluice.Limit{Dimension: d, Window: w, Amount: n}
}

func claim(id string, limits ...sluice.Limit) quota.Claim {
	return quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeKey, ID: id}, Limits: limits}
}

// take reserves n of a dimension and reports whether it fitted.
func take(b *quota.Book, now time.Time, d sluice.Dimension, n int64, claims ...quota.Claim) (*quota.Reservation, *quota.Refusal) {
	r := &quota.Reservation{}
	b.Open(now, r, claims)
	var need quota.Amounts
	need[d] = n
	if f := b.Reserve(now, r, need, quota.Amounts{}); f != nil {
		b.Release(now, r)
		return nil, f
	}
	return r, nil
}

func TestTimeNeverGoesBack(t *testing.T) {
	b := quota.NewBook()
	k := claim("k", limit(sluice.InputTokens, sluice.PerMinute, 60))
	r, _ := take(b, start, sluice.InputTokens, 60, k)
	b.Settle(start, r, quota.Amounts{sluice.InputTokens: 60})
	for _, step := range []time.Duration{-time.Hour, -time.Minute, 0, -24 * time.Hour, 0} {
		if r, f := take(b, start.Add(step), sluice.InputTokens, 1, k); f == nil {
			t.Fatalf("after a step of %v: admitted %v, want the bucket empty", step, r)
		} else if f.Wait != time.Second {
			t.Errorf("after a step of %v: wait %v, want 1s", step, f.Wait)
		}
	}
	if _, f := take(b, start.Add(time.Second), sluice.InputTokens, 1, k); f != nil {
		t.Errorf("one second on: refused %+v, want one token", f)
	}
}

// TestRefillIsExact: refilling in many small steps gives what one large step
// gives, over weeks, and no fraction is lost.
func TestRefillIsExact(t *testing.T) {
	b := quota.NewBook()
	k := claim("k", limit(sluice.InputTokens, sluice.PerMinute, 7)) // one every 8.571428… s
	now, taken := start, int64(0)
	for now.Before(start.Add(21 * 24 * time.Hour)) {
		now = now.Add(9999*time.Millisecond + 7)
		if r, f := take(b, now, sluice.InputTokens, 1, k); f == nil {
			b.Settle(now, r, quota.Amounts{sluice.InputTokens: 1})
			taken++
		}
	}
	// Every attempt is later than one refill, so none is refused and none is lost.
	if want := int64(now.Sub(start) / (9999*time.Millisecond + 7)); taken != want {
		t.Errorf("taken %d, want %d", taken, want)
	}
	// Now take as fast as possible for a day: 7 per minute and what is left of the burst.
	day := now
	for now = day; now.Before(day.Add(24 * time.Hour)); now = now.Add(time.Second) {
		if r, f := take(b, now, sluice.InputTokens, 1, k); f == nil {
			b.Settle(now, r, quota.Amounts{sluice.InputTokens: 1})
			taken++
		}
	}
	fast := taken - int64(day.Sub(start)/(9999*time.Millisecond+7))
	if perDay := int64(7 * 60 * 24); fast < perDay || fast > perDay+7 {
		t.Errorf("taken %d in a day, want %d and at most a burst of 7 more", fast, perDay)
	}
}

// TestLongHoldBuysNoSecondBurst: a hold that outlives a refill has nothing to
// return, since the bucket would have overflowed without it.
func TestLongHoldBuysNoSecondBurst(t *testing.T) {
	for _, held := range []time.Duration{0, 15 * time.Second, 30 * time.Second, time.Minute, time.Hour} {
		b := quota.NewBook()
		k := claim("k", limit(sluice.OutputTokens, sluice.PerMinute, 600))
		long, _ := take(b, start, sluice.OutputTokens, 600, k)
		now := start.Add(held)
		refilled := min(int64(held/time.Second)*10, 600)
		if r, f := take(b, now, sluice.OutputTokens, refilled, k); f != nil {
			t.Fatalf("%v: %d have refilled: %+v", held, refilled, f)
		} else {
			defer b.Settle(now, r, quota.Amounts{sluice.OutputTokens: refilled})
		}
		b.Settle(now, long, quota.Amounts{})
		if got, want := remaining(b, now, k), 600-refilled; got != want {
			t.Errorf("held for %v: %d came back, want %d: one burst with the %d that have refilled", held, got, want, refilled)
		}
	}
}

// TestShortHoldsBesideALongOne: what a long hold forfeits is not taken from those
// that come and go beside it.
func TestShortHoldsBesideALongOne(t *testing.T) {
	b := quota.NewBook()
	k := claim("k", limit(sluice.OutputTokens, sluice.PerMinute, 6000))
	take(b, start, sluice.OutputTokens, 4000, k)
	now := start.Add(time.Hour) // full again: the long hold has nothing to return
	for range 10 {
		r, f := take(b, now, sluice.OutputTokens, 600, k)
		if f != nil {
			t.Fatal(f)
		}
		b.Settle(now, r, quota.Amounts{sluice.OutputTokens: 500})
	}
	if got := remaining(b, now, k); got != 1000 {
		t.Errorf("%d remain after 10 × 500 of 6000, want 1000", got)
	}
}

func remaining(b *quota.Book, now time.Time, k quota.Claim) int64 {
	r := &quota.Reservation{}
	b.Open(now, r, []quota.Claim{k})
	defer b.Release(now, r)
	return b.Limits(now, r, nil).States(nil)[0].Remaining
}

func TestHugeFiguresSaturate(t *testing.T) {
	b := quota.NewBook()
	k := claim("k", limit(sluice.InputTokens, sluice.PerMinute, math.MaxInt64), limit(sluice.Spend, sluice.PerDay, math.MaxInt64))
	for range 3 {
		r := &quota.Reservation{}
		b.Open(start, r, []quota.Claim{k})
		if f := b.Reserve(start, r, quota.Amounts{}, quota.Amounts{}); f != nil {
			t.Fatalf("refused %+v", f)
		}
		b.Settle(start, r, quota.Amounts{sluice.InputTokens: math.MaxInt64, sluice.Spend: math.MaxInt64})
	}
	if _, f := take(b, start, sluice.InputTokens, 1, k); f == nil {
		t.Error("admitted after an overflow of tokens")
	}
	if _, f := take(b, start, sluice.Spend, 1, k); f == nil {
		t.Error("admitted after an overflow of spend")
	}
	if _, f := take(b, start.Add(200*365*24*time.Hour), sluice.InputTokens, 1, k); f != nil && f.Wait < 0 {
		t.Errorf("wait %v, want none below zero", f.Wait)
	}
}

// TestIdleAccountsLeave: memory follows the accounts that are not at rest, not
// all that were ever seen.
func TestIdleAccountsLeave(t *testing.T) {
	b := quota.NewBook()
	now := start
	for i := range 100_000 {
		now = now.Add(10 * time.Millisecond)
		k := claim(fmt.Sprint("k", i), limit(sluice.Requests, sluice.PerSecond, 10))
		r, f := take(b, now, sluice.Requests, 1, k)
		if f != nil {
			t.Fatal(f)
		}
		b.Settle(now, r, quota.Amounts{sluice.Requests: 1})
	}
	// A bucket is at rest 100 ms after its one request: some ten accounts are not.
	if b.Len() > 100 {
		t.Errorf("%d accounts in memory, want those of the last moments", b.Len())
	}
}

func TestAccountsInUseStay(t *testing.T) {
	b := quota.NewBook()
	spent := claim("spent", limit(sluice.Spend, sluice.PerMonth, 100))
	r, _ := take(b, start, sluice.Spend, 100, spent)
	b.Settle(start, r, quota.Amounts{sluice.Spend: 100})
	open, _ := take(b, start, sluice.Spend, 0, claim("open", limit(sluice.Spend, sluice.PerMonth, 100)))
	for i := range 1000 {
		r, _ := take(b, start, sluice.Requests, 0, claim(fmt.Sprint(i), limit(sluice.Requests, sluice.PerSecond, 1)))
		b.Release(start, r)
	}
	if _, f := take(b, start, sluice.Spend, 1, spent); f == nil {
		t.Error("a spent budget was forgotten")
	}
	b.Settle(start, open, quota.Amounts{sluice.Spend: 1})
	if a := b.Account(quota.Owner{Scope: sluice.ScopeKey, ID: "open"}); a == nil {
		t.Error("an account with a live reservation was forgotten")
	}
}

// sevenScopes is the size that the target in doc.go is stated for.
func sevenScopes(key int) []quota.Claim {
	six := []sluice.Limit{
		limit(sluice.Requests, sluice.PerMinute, 1e9), limit(sluice.InputTokens, sluice.PerMinute, 1e12),
		limit(sluice.OutputTokens, sluice.PerMinute, 1e12), limit(sluice.Concurrency, sluice.NoWindow, 1e6),
		limit(sluice.KVTokens, sluice.NoWindow, 1e12), limit(sluice.Spend, sluice.PerMonth, 1e15),
	}
	claims := []quota.Claim{{Owner: quota.Owner{Scope: sluice.ScopeKey, ID: fmt.Sprint("key", key)}, Limits: six}}
	for s := sluice.ScopeProject; s <= sluice.ScopeFleet; s++ {
		claims = append(claims, quota.Claim{Owner: quota.Owner{Scope: s, ID: "a"}, Limits: six})
	}
	return append(claims, quota.Claim{Owner: quota.Owner{Scope: sluice.ScopeTenant, ID: "run"}, Limits: six})
}

func cycle(b *quota.Book, r *quota.Reservation, now time.Time, claims []quota.Claim) bool {
	need := quota.Amounts{1, 1000, 200, 1, 1200, 5_000_000}
	b.Open(now, r, claims)
	if b.Reserve(now, r, need, need) != nil || b.TakeGauges(r, need) != nil {
		return false
	}
	b.Settle(now, r, quota.Amounts{1, 900, 100, 0, 0, 3_000_000})
	return true
}

func TestReserveAndSettleAllocateNothing(t *testing.T) {
	b, r, now, claims := quota.NewBook(), &quota.Reservation{}, start, sevenScopes(0)
	cycle(b, r, now, claims)
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Millisecond)
		if !cycle(b, r, now, claims) {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}

func BenchmarkReserveSettle(b *testing.B) {
	const keys = 100_000
	book, r, now := quota.NewBook(), &quota.Reservation{}, start
	all := make([][]quota.Claim, keys)
	for i := range all {
		all[i] = sevenScopes(i)
		cycle(book, r, now, all[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		now = now.Add(time.Microsecond)
		i = (i + 7919) % keys
		cycle(book, r, now, all[i])
	}
}
