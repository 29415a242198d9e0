package quota_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/quota"
)

// event is one line of the log that the oracle reads: it knows nothing of
// counters.
type event struct {
	at     time.Time
	step   int   // of its admission
	hold   int64 // what it was admitted with
	ended  int   // the step of its end; 0 while it runs
	actual int64 // what it used, by then
}

// TestBucketConservation: over any interval that ends with an admission, the actual
// use of what was admitted in it is at most burst + rate × t, counting the hold of
// those that still run: what they use beyond it is the debt bound. So what was used
// beyond a hold by then has been waited out.
func TestBucketConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 200).Draw(t, "amount")
		window := rapid.SampledFrom([]sluice.Window{sluice.PerSecond, sluice.PerMinute}).Draw(t, "window")
		period := time.Second
		if window == sluice.PerMinute {
			period = time.Minute
		}
		book, now, latest := quota.NewBook(), start, start // a clock that goes back counts as the latest moment
		k := claim("k", limit(sluice.OutputTokens, window, amount))
		live := make(map[int]*quota.Reservation)
		var ids []int
		var log []event
		remaining(book, start, k) // the book's time starts here
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(period)/4, int64(period)/2).Draw(t, "by")))
			if now.After(latest) {
				latest = now
			}
			remaining(book, now, k)
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				want := rapid.Int64Range(0, amount*2).Draw(t, "want")
				r, f := take(book, now, sluice.OutputTokens, want, k)
				if f != nil {
					continue
				}
				id := len(log)
				log = append(log, event{at: latest, step: step + 1, hold: min(want, amount)})
				live[id], ids = r, append(ids, id)
			default:
				if len(ids) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(ids)-1).Draw(t, "which")
				id := ids[i]
				ids = append(ids[:i], ids[i+1:]...)
				used := int64(0) // most often: what long holds return is what is easy to get wrong
				if rapid.Bool().Draw(t, "uses") {
					used = rapid.Int64Range(0, amount*3/2).Draw(t, "used")
				}
				book.Settle(now, live[id], quota.Amounts{sluice.OutputTokens: used})
				log[id].actual, log[id].ended = used, step+1
			}
		}
		for from := range log {
			for to := from; to < len(log); to++ {
				if log[to].hold == 0 {
					continue // what takes nothing is not kept out by a debt
				}
				var taken int64
				for _, e := range log[from : to+1] {
					if e.ended > 0 && e.ended < log[to].step {
						taken += e.actual
					} else {
						taken += e.hold
					}
				}
				elapsed := log[to].at.Sub(log[from].at)
				refilled := int64(elapsed)*amount/int64(period) + 1
				if taken > amount+refilled {
					t.Fatalf("requests %d to %d took %d in %v, the bound is %d + %d", from, to, taken, elapsed, amount, refilled)
				}
			}
		}
	})
}

// model is what the counters must say, from the log of holds alone.
type model struct {
	held   map[*quota.Reservation]hold
	posted map[int64]int64 // by start of the hour
}

type hold struct {
	hour   int64
	spend  int64
	gauges int64
}

// TestBookAgainstModel: for hard spend posted + held ≤ limit, always; gauges and
// held amounts are sums of live holds; every window has what was charged to it.
func TestBookAgainstModel(t *testing.T) {
	const budget, slots = 1000, 5
	rapid.Check(t, func(t *rapid.T) {
		book, now := quota.NewBook(), start
		owners := []quota.Owner{{Scope: sluice.ScopeKey, ID: "k"}, {Scope: sluice.ScopeFleet}}
		limits := []sluice.Limit{limit(sluice.Spend, sluice.PerHour, budget), limit(sluice.Concurrency, sluice.NoWindow, slots)}
		claims := []quota.Claim{{Owner: owners[0], Limits: limits}, {Owner: owners[1], Limits: limits}}
		m := model{held: make(map[*quota.Reservation]hold), posted: make(map[int64]int64)}
		var live []*quota.Reservation
		var latest time.Time
		check := func() {
			if now.After(latest) {
				latest = now
			}
			hour := latest.Truncate(time.Hour).Unix()
			for _, o := range owners {
				a := book.Account(o)
				if a == nil {
					continue
				}
				var want [2]quota.CounterView
				want[0] = quota.CounterView{Limit: limits[0], Used: m.posted[hour], Previous: m.posted[hour-3600]}
				want[1] = quota.CounterView{Limit: limits[1]}
				for _, h := range m.held {
					if h.hour == hour {
						want[0].Held += h.spend
					}
					want[1].Held += h.gauges
				}
				for i := range want {
					want[i].Remaining = want[i].Limit.Amount - want[i].Used - want[i].Held
				}
				got := book.View(now, a, nil)
				if fmt.Sprint(got) != fmt.Sprint(want[:]) {
					// The window before this one is unknown to a counter that was not
					// there, so only later figures are held against it.
					got[0].Previous, want[0].Previous = 0, 0
					if fmt.Sprint(got) != fmt.Sprint(want[:]) {
						t.Fatalf("got %v, want %v", got, want)
					}
				}
				if got[0].Remaining < 0 || got[1].Remaining < 0 {
					t.Fatalf("beyond the limit: %v", got)
				}
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 25).Draw(t, "minutes")) * time.Minute)
			check()
			if len(live) == 0 || rapid.Bool().Draw(t, "reserve") {
				want := rapid.Int64Range(0, 400).Draw(t, "want")
				r, f := take(book, now, sluice.Spend, want, claims...)
				if f == nil {
					live = append(live, r)
					m.held[r] = hold{hour: latest.Truncate(time.Hour).Unix(), spend: want}
				}
				check()
				continue
			}
			i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
			r := live[i]
			h := m.held[r]
			gone := true
			switch rapid.SampledFrom([]string{"gauges", "return", "post", "settle", "release", "expire"}).Draw(t, "op") {
			case "gauges":
				gone = false
				if h.gauges == 0 && book.TakeGauges(r, quota.Amounts{sluice.Concurrency: 1}) == nil {
					h.gauges = 1
				}
			case "return":
				gone = false
				book.ReturnGauges(r)
				h.gauges = 0
			case "post":
				gone = false
				used := rapid.Int64Range(0, h.spend).Draw(t, "used")
				book.Post(now, r, quota.Amounts{sluice.Spend: used})
				m.posted[h.hour] += used
				h.spend -= used
			case "settle":
				used := rapid.Int64Range(0, h.spend).Draw(t, "used")
				book.Settle(now, r, quota.Amounts{sluice.Spend: used + r.Posted()[sluice.Spend]})
				m.posted[h.hour] += used
			case "release":
				book.Release(now, r)
			case "expire":
				late := rapid.Int64Range(0, h.spend).Draw(t, "late")
				book.Expire(now, r)
				book.SettleLate(now, r, quota.Amounts{sluice.Spend: late + r.Posted()[sluice.Spend]})
				m.posted[h.hour] += late
			}
			if gone {
				delete(m.held, r)
				live = append(live[:i], live[i+1:]...)
			} else {
				m.held[r] = h
			}
			check()
		}
	})
}
