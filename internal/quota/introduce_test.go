package quota_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/quota"
)

// TestIntroduceAgainstTwin: of two books that are used alike, one is offered figures for
// counters time and again. Counters that were there do not change by it; one that was not
// begins with the figure, and goes on with what is admitted from then on, not with what was
// in flight.
func TestIntroduceAgainstTwin(t *testing.T) {
	offered := []sluice.Limit{ // the first is there from the beginning
		limit(sluice.Spend, sluice.PerDay, 0), limit(sluice.Spend, sluice.PerHour, 0), limit(sluice.Spend, sluice.PerMonth, 0),
		limit(sluice.OutputTokens, sluice.PerDay, 0), limit(sluice.Requests, sluice.PerDay, 0),
	}
	k := claim("k", limit(sluice.Spend, sluice.PerDay, 1000), limit(sluice.Spend, sluice.PerMinute, 500))
	states := func(b *quota.Book, now time.Time, limits ...sluice.Limit) []quota.LimitState {
		r := &quota.Reservation{}
		b.Open(now, r, []quota.Claim{claim("k", limits...)})
		defer b.Release(now, r)
		return b.Limits(now, r, nil).States(nil)
	}
	type flight struct {
		a, b *quota.Reservation
		sees []sluice.Limit // the introduced counters that were there before it
	}
	rapid.Check(t, func(t *rapid.T) {
		book, twin, now := quota.NewBook(), quota.NewBook(), start
		remaining(book, now, k) // makes the account
		remaining(twin, now, k)
		figures := map[sluice.Limit]int64{} // of what was introduced: the figure, and what was used since
		var live []flight
		end := func(i int, used int64) {
			actual := quota.Amounts{sluice.Requests: 1, sluice.Spend: used, sluice.OutputTokens: used}
			book.Settle(now, live[i].a, actual)
			twin.Settle(now, live[i].b, actual)
			for _, l := range live[i].sees {
				figures[l] += actual[l.Dimension]
			}
			live = slices.Delete(live, i, i+1)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				n := rapid.Int64Range(0, 300).Draw(t, "n")
				a, f := take(book, now, sluice.Spend, n, k)
				b, g := take(twin, now, sluice.Spend, n, k)
				if (f == nil) != (g == nil) {
					t.Fatalf("%d: refused %+v, without Introduce %+v", n, f, g)
				}
				if f == nil {
					live = append(live, flight{a, b, slices.Collect(maps.Keys(figures))})
				}
			case 1:
				if len(live) > 0 {
					end(rapid.IntRange(0, len(live)-1).Draw(t, "which"), rapid.Int64Range(0, 400).Draw(t, "used"))
				}
			case 2:
				l := rapid.SampledFrom(offered).Draw(t, "limit")
				_, there := figures[l]
				there = there || l == offered[0]
				n := rapid.Int64Range(1, 5000).Draw(t, "figure")
				if made := book.Introduce(now, now, k.Owner, limit(l.Dimension, l.Window, n)); made == there {
					t.Fatalf("%+v: made %v, though it was there: %v", l, made, there)
				}
				if !there {
					figures[l] = n
				}
			default:
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "by")))
			}
			if got, want := states(book, now, k.Limits...), states(twin, now, k.Limits...); !slices.Equal(got, want) {
				t.Fatalf("got %+v, without Introduce %+v", got, want)
			}
		}
		for len(live) > 0 {
			end(0, 7)
		}
		const amount = 1_000_000
		limits := k.Limits
		for l := range figures {
			limits = append(slices.Clip(limits), limit(l.Dimension, l.Window, amount))
		}
		for _, s := range states(book, now, limits...) {
			if n, ok := figures[limit(s.Limit.Dimension, s.Limit.Window, 0)]; ok && s.Remaining != amount-n {
				t.Errorf("%+v has %d left, want all but %d", s.Limit, s.Remaining, n)
			}
		}
	})
}

// What ids without room for an account of their own share is no one's: it gets no figure.
func TestIntroduceOfFurtherLabels(t *testing.T) {
	b := quota.NewBook()
	b.Bound(1, 1)
	user := func(id string) quota.Owner { return quota.Owner{Scope: sluice.ScopeUser, ID: "acme", Part: id} }
	l := limit(sluice.Requests, sluice.PerDay, 3)
	if !b.Introduce(start, start, user("ann"), l) {
		t.Error("there is room for ann")
	}
	if b.Introduce(start, start, user("ben"), l) || b.Len() != 1 {
		t.Errorf("there is no room for ben: %d accounts", b.Len())
	}
	if _, f := take(b, start, sluice.Requests, 1, quota.Claim{Owner: user("ann"), Limits: []sluice.Limit{l}}); f == nil {
		t.Error("ann has used all three")
	}
	if _, f := take(b, start, sluice.Requests, 1, quota.Claim{Owner: user("ben"), Limits: []sluice.Limit{l}}); f != nil {
		t.Errorf("ben shares a counter that begins now: %+v", f)
	}
}
