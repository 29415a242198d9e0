package route

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

var start = time.Unix(1_800_000_000, 0)

func paced(r Rates) *Place {
	return &Place{Backend: &Backend{ID: "b", Weight: 1, Capacity: Capacity{Concurrency: 1000, Rates: r}}}
}

// copied is a place that forgets what is asked of it.
func copied(p *Place) *Place {
	q := *p
	q.lanes = nil
	for _, l := range p.lanes {
		c := *l
		q.lanes = append(q.lanes, &c)
	}
	return &q
}

// TestRatesAgainstModel: over any history what a place let in, by what it really
// took, is at most a burst and what refilled, plus what live attempts can still
// exceed their holds by; RoomAt is the first moment at which the need fits.
func TestRatesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 5000).Draw(t, "amount")
		p := paced(Rates{RateTokens: amount})
		now := start
		type live struct{ n Taken }
		var running []live
		took, debt := int64(0), int64(0)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "passes")))
			n := Need{Input: sluice.Tokens(rapid.Int64Range(0, 3000).Draw(t, "in")), Output: sluice.Tokens(rapid.Int64Range(0, 3000).Draw(t, "out"))}
			if at := p.RoomAt(now, n); at.After(now) {
				if p.Usable(now, &n) != LeftPaced {
					t.Fatalf("RoomAt says in %v, and it is usable now", at.Sub(now))
				}
				q := copied(p)
				if got := q.Usable(at.Add(-1), &n); got != LeftPaced {
					t.Fatalf("a nanosecond before RoomAt: %q", got)
				}
				q = copied(p)
				if got := q.Usable(at, &n); got != Chosen {
					t.Fatalf("at RoomAt: %q", got)
				}
			} else {
				running = append(running, live{take(p, now, n)})
			}
			for len(running) > 0 && rapid.Bool().Draw(t, "ends") {
				l := running[0]
				running = running[1:]
				used := rapid.Int64Range(0, 4000).Draw(t, "used")
				l.n.Spent(sluice.Tokens(used), 0, sluice.ReasonNone)
				took += used
				debt = max(debt, used-l.n.held[RateTokens].n)
				p.Give(&l.n)
			}
			p.tick(now)
			b := &p.lanes[0].rates[RateTokens]
			if b.level+b.returnable > b.amount || b.returnable < 0 {
				t.Fatalf("level %d and returnable %d of %d", b.level, b.returnable, b.amount)
			}
			held := int64(0)
			for _, l := range running {
				held += l.n.held[RateTokens].n
			}
			elapsed := int64(now.Sub(start))
			if most := amount + amount*(elapsed/1000)/(minute/1000) + 1 + 120*max(debt, 0); took > most {
				t.Fatalf("took %d in %v, at most %d", took, now.Sub(start), most)
			}
			if b.level+held < b.level {
				t.Fatal("holds are negative")
			}
		}
	})
}

func TestLongHoldBuysNoSecondBurst(t *testing.T) {
	p := paced(Rates{RateTokens: 600})
	n := take(p, start, Need{Input: 600})
	now := start.Add(2 * time.Minute)
	if got := p.Usable(now, &Need{Input: 600}); got != Chosen {
		t.Fatalf("after two minutes: %q", got)
	}
	take(p, now, Need{Input: 600})
	n.Spent(0, 0, sluice.UpstreamError)
	p.Give(&n)
	if left, _, _ := p.RateLeft(now, RateTokens); left != 0 {
		t.Errorf("%d left after a long hold came back unused, want 0", left)
	}
}

func TestSettleLeavesDebt(t *testing.T) {
	p := paced(Rates{RateOutput: 600})
	n := take(p, start, Need{Output: 100})
	n.Spent(0, 900, sluice.ReasonNone)
	p.Give(&n)
	if left, _, _ := p.RateLeft(start, RateOutput); left != -300 {
		t.Fatalf("%d left, want a debt of 300", left)
	}
	if got, want := p.RoomAt(start, Need{Output: 10}), start.Add(31*time.Second); !got.Equal(want) {
		t.Errorf("room in %v, want %v", got.Sub(start), want.Sub(start))
	}
}

func TestConnectFailureCountsNoRequest(t *testing.T) {
	p := paced(Rates{RateRequests: 10})
	n := take(p, start, Need{})
	n.Spent(0, 0, sluice.UpstreamConnect)
	p.Give(&n)
	if left, _, _ := p.RateLeft(start, RateRequests); left != 10 {
		t.Errorf("%d requests left, want 10", left)
	}
}

func TestHints(t *testing.T) {
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for _, c := range []struct {
		name       string
		configured int64
		hint       Hint
		want       int64
		known      bool
	}{
		{"lowers", 600, Hint{Remaining: 100, At: start}, 100, true},
		{"never raises", 600, Hint{Limit: 6000, Remaining: 5000, At: start}, 600, true},
		{"refills with its age", 600, Hint{Remaining: 100, At: at(-10 * time.Second)}, 200, true},
		{"makes a rate", 0, Hint{Limit: 600, Remaining: 100, At: start}, 100, true},
		{"of no known limit", 0, Hint{Remaining: 100, At: start}, 0, false},
		{"of nothing", 600, Hint{Limit: 600, Remaining: -1, At: start}, 600, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := paced(Rates{RateRequests: c.configured})
			p.Hint(start, "", c.hint)
			if left, _, known := p.RateLeft(start, RateRequests); left != c.want || known != c.known {
				t.Errorf("left %d, known %v, want %d, %v", left, known, c.want, c.known)
			}
		})
	}
}

// TestHintOfADay: a limit that is full again only in hours is not one of a minute.
func TestHintOfADay(t *testing.T) {
	p := paced(Rates{})
	p.Hint(start, "", Hint{Rate: RateRequests, Limit: 200, Remaining: 100, Reset: 12 * time.Hour, At: start})
	if left, _, _ := p.RateLeft(start.Add(time.Hour), RateRequests); left != 108 {
		t.Errorf("%d left after an hour of a day's 200 from 100, want 108", left)
	}
}

func TestLimitedPacesUntilRetryAfter(t *testing.T) {
	p := paced(Rates{RateRequests: 60})
	p.Limited(start, "", 10*time.Second, false)
	if got, want := p.RoomAt(start, Need{}), start.Add(11*time.Second); !got.Equal(want) {
		t.Errorf("room in %v, want %v", got.Sub(start), want.Sub(start))
	}
}

func TestOverloadShrinksOnlyAdaptiveLimits(t *testing.T) {
	for _, c := range []struct {
		c    Capacity
		want int64
	}{
		{Capacity{Concurrency: 32}, 32},
		{Capacity{}, 8},
		{Capacity{Concurrency: 32, Adaptive: true}, 8},
	} {
		p := &Place{Backend: &Backend{ID: "b", Weight: 1, Capacity: c.c}}
		for range 8 {
			take(p, start, Need{})
		}
		p.Overloaded(start)
		if got := p.Slots(); got != c.want {
			t.Errorf("%+v: %d slots, want %d", c.c, got, c.want)
		}
	}
}

func TestLoadOnlyLowers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Place{Backend: &Backend{ID: "b", Weight: 1}}
		for range rapid.IntRange(0, 16).Draw(t, "running") {
			take(p, start, Need{})
		}
		now := start
		for range 20 {
			before := p.Slots()
			now = now.Add(time.Second)
			p.Loaded(now, Load{
				At: now, Every: time.Second, Running: rapid.Int64Range(0, 32).Draw(t, "r"), Waiting: rapid.Int64Range(0, 32).Draw(t, "w"),
				KVPermille: rapid.Int64Range(-1, 1000).Draw(t, "kv"),
			})
			if got := p.Slots(); got > before || got < before-before/16-2 || got < 1 {
				t.Fatalf("a report took %d slots to %d", before, got)
			}
		}
	})
}

// TestStaleLoadLowersSlowly: five intervals are nothing, each further one is 1/16,
// half is the end of it, and the next report gives it back.
func TestStaleLoadLowersSlowly(t *testing.T) {
	p := &Place{Backend: &Backend{ID: "b", Weight: 1}}
	p.Loaded(start, Load{At: start, Every: time.Second, KVPermille: 100})
	for _, c := range []struct {
		age  time.Duration
		want int64
	}{{5 * time.Second, 16}, {6 * time.Second, 15}, {8 * time.Second, 13}, {13 * time.Second, 8}, {time.Hour, 8}} {
		if got := p.Share(start.Add(c.age)); got != c.want {
			t.Errorf("%v old: %d slots, want %d", c.age, got, c.want)
		}
	}
	now := start.Add(2 * time.Hour)
	p.Loaded(now, Load{At: now, Every: time.Second})
	if got := p.Share(now); got != 16 {
		t.Errorf("after a report: %d slots, want 16", got)
	}
}

func TestDeadBackendHasNoShare(t *testing.T) {
	p := &Place{Backend: &Backend{ID: "b", Weight: 1}}
	for range DefaultFailures {
		fail(p, start, sluice.UpstreamConnect)
	}
	if got := p.Share(start); got != 0 {
		t.Errorf("share %d, want 0", got)
	}
}

// TestLearntMemory: an engine's own figure bounds where the configuration names
// none, and what others use of it counts while it is fresh.
func TestLearntMemory(t *testing.T) {
	p := &Place{Backend: &Backend{ID: "b", Weight: 1}}
	take(p, start, Need{KV: 100})
	p.Loaded(start, Load{At: start, Every: time.Second, KVPermille: 800, KVCapacity: 1000})
	if got := p.Usable(start, &Need{KV: 300}); got != LeftFull {
		t.Errorf("beside 800 of 1000: %q, want full", got)
	}
	if got := p.Usable(start.Add(3*time.Second), &Need{KV: 300}); got != Chosen {
		t.Errorf("when that is old: %q, want it taken", got)
	}
	if got := p.Usable(start.Add(3*time.Second), &Need{KV: 950}); got != LeftFull {
		t.Errorf("beside our own 100: %q, want full", got)
	}
}

// TestAnswersMoveTheLimit: what the engine tells of its attempts reaches the limit.
func TestAnswersMoveTheLimit(t *testing.T) {
	p := &Place{Backend: &Backend{ID: "b", Weight: 1, Capacity: Capacity{TokenTime: 20 * time.Millisecond}}}
	now := start
	run := func(token time.Duration, rounds int) {
		for range rounds {
			var live []Taken
			for range 16 {
				live = append(live, take(p, now, Need{Prefill: 100}))
			}
			now = now.Add(50 * time.Millisecond)
			for i := range live {
				p.Progressed(now, &live[i], 1, 1)
			}
			now = now.Add(64 * token)
			for i := range live {
				p.Completed(now, &live[i], 65, 1)
				p.Give(&live[i])
			}
		}
	}
	run(10*time.Millisecond, 10)
	grown := p.Slots()
	if grown <= 16 {
		t.Fatalf("%d slots of a fast backend, want more than 16", grown)
	}
	run(80*time.Millisecond, 20)
	if got := p.Slots(); got >= 16 {
		t.Errorf("%d slots of a slow backend, want fewer than 16", got)
	}
}
