package route

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

// twin is places of which each pool of the same events has its own.
func twin() []*Place {
	keys, places := &Credentials{}, make([]*Place, 4)
	for i := range places {
		b := &Backend{
			ID: sluice.BackendID(fmt.Sprint("b", i)), Weight: int64(i + 1), Domain: "d", Keys: []Key{{ID: "shared"}, {ID: fmt.Sprint("own", i)}}[:1+i%2],
			Capacity: Capacity{Concurrency: 4, KVTokens: 1000 * sluice.Tokens(i), PrefillTokens: 500},
		}
		places[i] = &Place{Backend: b, Credentials: keys}
		places[i].Health.Configure(BreakerPolicy{Failures: 2}, false)
	}
	NewDomain("d", places[:3])
	return places
}

// answers is all that a decision asks of a place, with something done before each question.
func (p *Place) answers(now time.Time, n *Need, first func()) (out []any) {
	for _, ask := range []func() any{
		func() any { return p.Fit(now) },
		func() any { return p.FitWith(now, "shared") },
		func() any { return p.Open(now) },
		func() any { return p.Usable(now, n) },
		func() any { return *p.Most(now) },
		func() any { return p.Slots() },
		func() any { return p.Rated() },
		func() any { return p.KVUsed(now) },
		func() any { return p.Serves(now) },
		func() any { return p.State(now) },
		func() any { return Ease(now, []*Place{p}, []Left{p.Usable(now, n)}) },
		func() any { return p.turn },
	} {
		first()
		out = append(out, ask())
	}
	return out
}

// TestSteadyAnswersTheSame: whatever happens to places, one that is steady answers as one
// that looks at all that may have a say.
func TestSteadyAnswersTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := start
		pools := [2][]*Place{twin(), twin()}
		live := [2][]Taken{}
		var at []int
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			i := rapid.IntRange(0, 3).Draw(t, "place")
			n := Need{KV: sluice.Tokens(rapid.IntRange(0, 1500).Draw(t, "kv")), Prefill: sluice.Tokens(rapid.IntRange(0, 600).Draw(t, "prefill"))}
			check := func(i int) {
				got, want := pools[0][i].answers(now, &n, func() {}), pools[1][i].answers(now, &n, pools[1][i].stir)
				if !slices.Equal(got, want) {
					t.Fatalf("place %d answers %v, and %v when it looks at everything", i, got, want)
				}
			}
			change := func(f func(p *Place, v int) bool) {
				changed := false
				for v, places := range pools {
					changed = f(places[i], v)
				}
				if check(i); !changed {
					return
				}
				for _, places := range pools {
					places[0].domain.Judge(BreakerPolicy{})
					Settle(now, places, true)
				}
			}
			switch rapid.SampledFrom([]string{"take", "take", "take", "end", "end", "end", "pass", "pass", "probe", "pause", "drain", "swap", "rare"}).Draw(t, "op") {
			case "take":
				if pools[0][i].Usable(now, &n) != Chosen {
					continue
				}
				at = append(at, i)
				change(func(p *Place, v int) bool {
					live[v] = append(live[v], take(p, now, n))
					return false
				})
			case "end":
				if len(at) == 0 {
					continue
				}
				which := rapid.IntRange(0, len(at)-1).Draw(t, "which")
				i = at[which]
				at = slices.Delete(at, which, which+1)
				why := rapid.SampledFrom([]sluice.Reason{sluice.ReasonNone, sluice.ReasonNone, sluice.UpstreamError, sluice.UpstreamLimited, sluice.ClientGone}).Draw(t, "why")
				after := time.Duration(rapid.IntRange(0, 3).Draw(t, "after")) * time.Second
				change(func(p *Place, v int) bool {
					taken := live[v][which]
					live[v] = slices.Delete(live[v], which, which+1)
					changed := p.Ended(now, &taken, Ending{Why: why, RetryAfter: after, Credential: after == 0})
					p.Give(&taken)
					return changed
				})
			case "pass":
				now = now.Add(time.Duration(rapid.IntRange(0, 9000).Draw(t, "ms")) * time.Millisecond)
			case "probe":
				ok := rapid.Bool().Draw(t, "ok")
				change(func(p *Place, _ int) bool { return p.Probed(now, ok) })
			case "pause":
				change(func(p *Place, _ int) bool { p.Pause(now, time.Second); return true })
			case "drain":
				drain := rapid.Bool().Draw(t, "drain")
				change(func(p *Place, _ int) bool { return p.Drain(drain) })
			case "swap":
				b := *pools[0][i].Backend
				b.Weight, b.Capacity.Concurrency = int64(rapid.IntRange(0, 2).Draw(t, "weight")), int64(rapid.IntRange(1, 6).Draw(t, "slots"))
				b.Capacity.Adaptive = rapid.IntRange(0, 3).Draw(t, "adaptive") == 0
				change(func(p *Place, _ int) bool { p.Backend = &b; return true })
			case "rare": // what leaves a place unsteady for long
				switch rapid.IntRange(0, 15).Draw(t, "rare") {
				case 0:
					change(func(p *Place, _ int) bool {
						p.Hint(now, "shared", Hint{Rate: RateRequests, Limit: 10, Remaining: 3, At: now})
						return false
					})
				case 1:
					l := Load{At: now, Every: time.Second, KVPermille: 800, KVCapacity: 900}
					change(func(p *Place, _ int) bool { p.Loaded(now, l); return false })
				case 2:
					change(func(p *Place, _ int) bool { return p.Refused(now, "shared", true) })
				case 3:
					change(func(p *Place, _ int) bool { return p.Refused(now, "own1", false) })
				case 4:
					change(func(p *Place, _ int) bool { return p.Spent(now, "shared", time.Minute) })
				case 5, 6:
					change(func(p *Place, _ int) bool { p.Enable(now, "shared", true); return true })
				}
			}
			for i := range pools[0] {
				check(i)
			}
		}
	})
}
