package route

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

func keyed(id string, all *Credentials, keys ...Key) *Place {
	p := slotted(id, "")
	p.Backend.Keys, p.Credentials = keys, all
	return p
}

func TestKeysShareByWeight(t *testing.T) {
	p := keyed("b", nil, Key{"x", 1}, Key{"y", 3})
	got := map[string]int{}
	for range 400 {
		n := take(p, start, Need{})
		got[n.Key()]++
		p.Give(&n)
	}
	if got["x"] != 100 || got["y"] != 300 {
		t.Errorf("%v, want 100 and 300", got)
	}
}

// Credentials are out apart from backends: a 429 pauses one here, a spent one is out
// everywhere, one that may not use a model only at that backend.
func TestCredentialsCoolDownApart(t *testing.T) {
	var all Credentials
	a, b := keyed("a", &all, Key{"x", 1}, Key{"y", 1}), keyed("b", &all, Key{"x", 1})
	now := start
	end := func(p *Place, e Ending) string {
		n := take(p, now, Need{})
		p.Ended(now, &n, e)
		p.Give(&n)
		return n.Key()
	}
	first := end(a, Ending{Why: sluice.UpstreamLimited, RetryAfter: time.Minute})
	for range 3 {
		if got := end(a, Ending{}); got == first {
			t.Fatalf("the paused credential %s is used", got)
		}
	}
	if a.State(now) != "healthy" || b.Fit(now) != Chosen {
		t.Fatalf("the backend is %s", a.State(now))
	}
	end(a, Ending{Why: sluice.UpstreamLimited, RetryAfter: 2 * time.Minute})
	if a.State(now) != "cooling" || a.Fit(now) != LeftUnhealthy {
		t.Fatalf("both are paused, and the backend is %s", a.State(now))
	}
	if until, _ := a.Cooling(now); until.Sub(now) != time.Minute {
		t.Errorf("back in %v", until.Sub(now))
	}
	now = now.Add(time.Minute)
	if a.Fit(now) != Chosen {
		t.Fatal("the first pause is over")
	}
	b.Refused(now, "x", false) // not for this model
	if b.State(now) != "disabled" || b.Fit(now) != LeftParked || end(a, Ending{}) != "x" {
		t.Fatalf("refused at one backend: it is %s there", b.State(now))
	}
	a.Spent(now, "x", 0)
	now = now.Add(2 * time.Minute)
	if got := end(a, Ending{}); got != "y" {
		t.Fatalf("%s is used", got)
	}
	a.Refused(now, "y", true)
	if a.State(now) != "parked" {
		t.Errorf("one spent, one refused: %s", a.State(now))
	}
	now = now.Add(ParkedFor - 2*time.Minute)
	trial := take(a, now, Need{}) // of x
	if a.Fit(now) != LeftParked || trial.Key() != "x" {
		t.Errorf("a second request beside the trial of %s", trial.Key())
	}
	a.Ended(now, &trial, Ending{})
	a.Give(&trial)
	if s, _ := all.Of("x").State(); s != CredentialUsable {
		t.Errorf("after the trial it is %s", s)
	}
	all.Renew(func(id string) bool { return id == "y" })
	if s, _ := all.Of("y").State(); s != CredentialUsable || len(all.byID) != 1 {
		t.Errorf("a reload leaves y %s, of %d", s, len(all.byID))
	}
}

// Rates are a credential's own, and a request goes with one that has room.
func TestRatesOfCredentials(t *testing.T) {
	p := keyed("b", nil, Key{"x", 1}, Key{"y", 1})
	p.Fit(start)
	p.Hint(start, "x", Hint{Rate: RateTokens, Limit: 1000, Remaining: 10, At: start})
	p.Hint(start, "y", Hint{Rate: RateTokens, Limit: 1000, Remaining: 500, At: start})
	for range 2 {
		if n := take(p, start, Need{Input: 100}); n.Key() != "y" {
			t.Errorf("goes with %s", n.Key())
		}
	}
	if left, all, known := p.RateLeft(start, RateTokens); left != 310 || all != 2000 || !known {
		t.Errorf("%d of %d left, known %v", left, all, known)
	}
	if got := p.Usable(start, &Need{Input: 301}); got != LeftPaced {
		t.Errorf("more than either has: %q", got)
	}
}

// TestCredentialsAgainstAnything: whatever happens, no attempt goes with a credential
// that is out, but for one trial at a time, and what is out stays so no shorter for
// what it is told.
func TestCredentialsAgainstAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := keyed("b", nil, Key{"x", 1}, Key{"y", 2}), start
		out := map[string]time.Time{} // by credential: not before
		trials := map[string]bool{}
		var live []Taken
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key")
			d := time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute
			switch rapid.SampledFrom([]string{"take", "take", "end", "pass", "spent", "refused"}).Draw(t, "op") {
			case "take":
				if p.Usable(now, &Need{}) != Chosen {
					continue
				}
				n := take(p, now, Need{})
				if now.Before(out[n.Key()]) {
					t.Fatalf("%s is used %v before it may be", n.Key(), out[n.Key()].Sub(now))
				}
				if n.shared && trials[n.Key()] {
					t.Fatalf("two trials of %s", n.Key())
				}
				trials[n.Key()] = trials[n.Key()] || n.shared
				live = append(live, n)
			case "end":
				if len(live) == 0 {
					continue
				}
				n := live[0]
				live = live[1:]
				if n.shared {
					trials[n.Key()] = false
				}
				p.Ended(now, &n, Ending{Why: rapid.SampledFrom([]sluice.Reason{sluice.ReasonNone, sluice.ClientGone, sluice.UpstreamLimited}).Draw(t, "why")})
				p.Give(&n)
			case "pass":
				now = now.Add(d)
			case "spent":
				p.Fit(now)
				if p.Spent(now, key, d); now.Before(out[key]) || p.lane(key).shared.state == CredentialParked {
					if until := p.lane(key).shared.until; until.Before(out[key]) {
						t.Fatalf("%s was shortened by %v", key, out[key].Sub(until))
					}
				}
				out[key], trials[key] = p.lane(key).shared.until, false
			case "refused":
				p.Fit(now)
				p.Refused(now, key, true)
				if got := p.lane(key).shared.until; got.Before(out[key]) || got.Before(now.Add(DisabledFor)) {
					t.Fatalf("%s is out until %v, was %v", key, got, out[key])
				}
				out[key], trials[key] = p.lane(key).shared.until, false
			}
		}
	})
}

// A 429 that tells no time leaves the credential alone for longer each time, up to a
// bound and within a half of it, the same for the same events; what was in flight at
// the time does not add to it, and an answer begins anew.
func TestBackOffWithoutATime(t *testing.T) {
	run := func(id sluice.BackendID) (pauses []time.Duration) {
		now := time.Unix(1000, 0)
		p := &Place{Backend: &Backend{ID: id, Weight: 1, Capacity: Capacity{Concurrency: 9}}}
		limited := func() {
			first, second := take(p, now, Need{}), take(p, now, Need{})
			now = now.Add(time.Millisecond)
			p.Ended(now, &first, Ending{Why: sluice.UpstreamLimited, Credential: true})
			p.Give(&first)
			until, _ := p.Cooling(now)
			pauses = append(pauses, until.Sub(now))
			p.Ended(now, &second, Ending{Why: sluice.UpstreamLimited, Credential: true})
			p.Give(&second)
			if again, _ := p.Cooling(now); again != until {
				t.Errorf("what was in flight made it %v from %v", again.Sub(now), until.Sub(now))
			}
			now = until.Add(time.Millisecond)
		}
		for range 10 {
			limited()
		}
		for i, d := range pauses {
			most := min(FirstBackOff<<i, MostBackOff)
			if d < most/2 || d > most {
				t.Errorf("%s: 429 number %d leaves it alone for %v, want %v to %v", id, i+1, d, most/2, most)
			}
		}
		x := take(p, now, Need{})
		now = now.Add(time.Second)
		p.Ended(now, &x, Ending{})
		p.Give(&x)
		limited()
		if d := pauses[10]; d > FirstBackOff {
			t.Errorf("%s: after an answer %v", id, d)
		}
		return pauses
	}
	a := run("a")
	if again := run("a"); !slices.Equal(a, again) {
		t.Errorf("the same events gave %v and %v", a, again)
	}
	if b := run("b"); slices.Equal(a, b) {
		t.Errorf("two backends come back at the same times: %v", b)
	}
}
