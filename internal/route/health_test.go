package route

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

func slotted(id, domain string) *Place {
	return &Place{Backend: &Backend{ID: sluice.BackendID(id), Domain: domain, Weight: 1, Capacity: Capacity{Concurrency: 40}}}
}

func take(p *Place, now time.Time, n Need) (t Taken) {
	p.Take(now, &n, &t)
	return t
}

func TestConsecutiveFailuresOpen(t *testing.T) {
	p, now := slotted("b", ""), start
	for _, why := range []sluice.Reason{sluice.UpstreamError, sluice.UpstreamTimeout, sluice.UpstreamTruncated, sluice.UpstreamStalled, sluice.UpstreamRefused} {
		fail(p, now, why) // the last shows that it is alive
	}
	for i := range DefaultFailures {
		if p.Fit(now) != Chosen {
			t.Fatalf("out after %d failures in a row", i)
		}
		fail(p, now, sluice.UpstreamConnect)
		fail(p, now, sluice.ClientGone) // tells nothing
	}
	if p.Fit(now) != LeftUnhealthy || p.State(now) != "cooling" {
		t.Fatalf("in use after %d failures in a row: %s", DefaultFailures, p.State(now))
	}
	now = now.Add(Cooldown)
	probe := take(p, now, Need{})
	if p.Fit(now) != LeftUnhealthy || p.State(now) != "probing" {
		t.Fatal("a second request beside the probe")
	}
	p.Ended(now, &probe, Ending{Why: sluice.UpstreamError})
	p.Give(&probe)
	if until, cooling := p.Cooling(now); !cooling || until.Sub(now) != Cooldown {
		t.Fatal("a failed probe must cool down again")
	}
	now = now.Add(Cooldown)
	probe = take(p, now, Need{})
	p.Ended(now, &probe, Ending{Why: sluice.ClientGone})
	p.Give(&probe)
	if p.Fit(now) != Chosen || p.State(now) != "cooling" {
		t.Fatal("a probe whose client left has told nothing: the next request is one")
	}
	fail(p, now, sluice.ReasonNone)
	for _, tt := range []struct {
		at    time.Duration
		share int64
		slots int64
		state string
	}{{0, 100, 4, "ramping"}, {10 * time.Second, 400, 16, "ramping"}, {20 * time.Second, 700, 28, "ramping"}, {30 * time.Second, 1000, 40, "healthy"}} {
		at := now.Add(tt.at)
		p.Fit(at)
		if share := p.Health.Share(at); share != tt.share || p.Slots() != tt.slots || p.State(at) != tt.state {
			t.Errorf("%v into the ramp: %d ‰ of %d slots, %s; want %+v", tt.at, share, p.Slots(), p.State(at), tt)
		}
	}
}

// What began before a breaker opened is no news when it ends after it.
func TestLateEndsAreNoNews(t *testing.T) {
	p, now := slotted("b", ""), start
	old := take(p, now, Need{})
	for range DefaultFailures {
		fail(p, now, sluice.UpstreamError)
	}
	p.Ended(now, &old, Ending{Why: sluice.ReasonNone})
	p.Give(&old)
	if p.State(now) != "cooling" {
		t.Fatalf("an answer of before closes it: %s", p.State(now))
	}
	old.trip, now = 0, now.Add(Cooldown)
	fail(p, now, sluice.ReasonNone)
	for range DefaultFailures {
		late := take(p, now, Need{})
		late.trip, late.probe = 0, false
		p.Ended(now, &late, Ending{Why: sluice.UpstreamTruncated})
		p.Give(&late)
	}
	if p.State(now) != "ramping" {
		t.Errorf("failures of before open it again: %s", p.State(now))
	}
}

func TestShareOfFailuresOpens(t *testing.T) {
	const beyond = DefaultBreakVolume
	for _, tt := range []struct {
		name        string
		every, last int // every so many succeeds; alone in its pool
		want        string
	}{{"half fails", 2, 0, "cooling"}, {"a third fails", 0, 0, "healthy"}, {"half fails, alone", 2, 1, "held"}} {
		p, now := slotted("b", ""), start
		for i := range 2 * beyond {
			why := sluice.ReasonNone
			if tt.every > 0 && i%tt.every == 0 || tt.every == 0 && i%3 == 0 {
				why = sluice.UpstreamError
			}
			n := take(p, now, Need{})
			p.Ended(now, &n, Ending{Why: why, Last: tt.last == 1})
			p.Give(&n)
			if i+1 < beyond && p.State(now) != "healthy" {
				t.Fatalf("%s: judged by %d attempts", tt.name, i+1)
			}
			now = now.Add(100 * time.Millisecond)
		}
		if got := p.State(now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	// What was long ago does not count.
	p, now := slotted("b", ""), start
	for range DefaultBreakVolume / 4 {
		fail(p, now, sluice.UpstreamError)
		fail(p, now, sluice.ReasonNone)
	}
	now = now.Add(DefaultBreakWindow)
	for range DefaultBreakVolume / 4 {
		fail(p, now, sluice.UpstreamError)
		fail(p, now, sluice.ReasonNone)
	}
	if p.State(now) != "healthy" {
		t.Errorf("%s by what was a window ago", p.State(now))
	}
}

func TestSlowAnswersOpen(t *testing.T) {
	for _, tt := range []struct {
		name         string
		first, whole time.Duration
		want         string
	}{{"fast", time.Second, 2 * time.Second, "healthy"}, {"late first token", 6 * time.Second, 7 * time.Second, "cooling"}, {"crawls", time.Second, 30 * time.Second, "cooling"}} {
		p, now := slotted("b", ""), start
		p.Health.Configure(BreakerPolicy{FirstToken: 5 * time.Second, Rate: 10, Window: MaxBreakTime}, false)
		for range DefaultBreakVolume {
			n := take(p, now, Need{})
			p.Progressed(now.Add(tt.first), &n, 1, 1)
			p.Completed(now.Add(tt.whole), &n, 101, 1)
			now = now.Add(tt.whole)
			p.Ended(now, &n, Ending{})
			p.Give(&n)
		}
		if got := p.State(now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Retry-After only lengthens: never a pause, never a cool-down.
func TestPauseOnlyLengthens(t *testing.T) {
	p, now := slotted("b", ""), start
	for _, tt := range []struct {
		e    Ending
		want time.Duration
	}{
		{Ending{Why: sluice.UpstreamLimited, RetryAfter: 30 * time.Second}, 30 * time.Second},
		{Ending{Why: sluice.UpstreamLimited, RetryAfter: time.Second}, 30 * time.Second},
		{Ending{Why: sluice.UpstreamLimited, RetryAfter: 40 * time.Second, Overload: true}, 40 * time.Second},
		{Ending{Why: sluice.UpstreamError, RetryAfter: time.Minute}, time.Minute},
		{Ending{Why: sluice.UpstreamError, RetryAfter: time.Second}, time.Minute},
		{Ending{Why: sluice.UpstreamLimited, RetryAfter: 24 * time.Hour}, MaxPause},
	} {
		n := take(p, now, Need{})
		p.Ended(now, &n, tt.e)
		p.Give(&n)
		if until, cooling := p.Cooling(now); !cooling || until.Sub(now) != max(tt.want, time.Minute) && tt.want >= time.Minute {
			t.Errorf("%+v: %v", tt.e, until.Sub(now))
		}
	}
	if p.Probed(now, true); p.Fit(now) == Chosen {
		t.Error("a probe cuts a pause short")
	}
}

// TestBreakerAgainstAnything: whatever happens, a closed or ramping backend runs no
// more than its share of slots lets it, an open one nothing but one probe, and the
// moment before which it gets nothing moves only forward while it is out.
func TestBreakerAgainstAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := slotted("b", ""), start
		type attempt struct {
			n     Taken
			probe bool
		}
		var live []attempt
		var until time.Time
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			open := p.Health.Open()
			switch rapid.SampledFrom([]string{"take", "take", "end", "end", "pass", "probe"}).Draw(t, "op") {
			case "take":
				if p.Usable(now, &Need{}) != Chosen {
					continue
				}
				if now.Before(until) && open {
					t.Fatalf("given a request %v before its cool-down ends", until.Sub(now))
				}
				most := max(1, 40*p.Health.Share(now)/1000)
				n := take(p, now, Need{})
				live = append(live, attempt{n, open})
				if !open && p.Running() > max(most, 1) {
					t.Fatalf("runs %d, and %d is its share", p.Running(), most)
				}
			case "end":
				if len(live) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				a := live[i]
				live = append(live[:i], live[i+1:]...)
				why := rapid.SampledFrom([]sluice.Reason{sluice.ReasonNone, sluice.UpstreamError, sluice.UpstreamError, sluice.UpstreamTruncated, sluice.ClientGone, sluice.UpstreamLimited}).Draw(t, "why")
				p.Ended(now, &a.n, Ending{Why: why, RetryAfter: time.Duration(rapid.IntRange(0, 20).Draw(t, "after")) * time.Second})
				p.Give(&a.n)
				if a.probe && why == sluice.UpstreamError && !p.Health.Open() {
					t.Fatal("a probe that failed closed it")
				}
				if open && !a.probe && !p.Health.Open() {
					t.Fatal("what is no probe closed it")
				}
			case "pass":
				now = now.Add(time.Duration(rapid.IntRange(0, 8000).Draw(t, "ms")) * time.Millisecond)
			case "probe":
				p.Probed(now, rapid.IntRange(0, 3).Draw(t, "ok") == 0)
			}
			probes := 0
			for _, a := range live {
				if a.probe && p.Health.probing && a.n.trip == p.Health.trips {
					probes++
				}
			}
			if probes > 1 {
				t.Fatalf("%d probes at a time", probes)
			}
			if !p.Health.Open() {
				until = time.Time{}
				continue
			}
			at, _ := p.Health.Cooling(now)
			if at.Before(until) && now.Before(until) {
				t.Fatalf("the cool-down was cut short by %v", until.Sub(at))
			}
			until = at
		}
	})
}

// TestRampShare: one of three backends comes back under a load that the others bear.
// Over each of six parts of the ramp it gets no more than its share of the third
// that is due to it, and at the end the third.
func TestRampShare(t *testing.T) {
	ps := []*Place{slotted("a", ""), slotted("b", ""), slotted("c", "")}
	now, got := start, 0
	for range DefaultFailures {
		fail(ps[0], now, sluice.UpstreamError)
	}
	var c Chooser
	c.Configure(ByLoad, Affinity{}, ps)
	next := func() *Place {
		left := make([]Left, len(ps))
		for i, p := range ps {
			left[i] = p.Usable(now, &Need{})
		}
		if i := Ease(now, ps, left); i >= 0 {
			return ps[i]
		}
		return ps[c.Choose(now, left, &Asking{})]
	}
	const each = 10 * time.Millisecond
	run := func(d time.Duration) (n int) {
		for end := now.Add(d); now.Before(end); now = now.Add(each) {
			p := next()
			fail(p, now, sluice.ReasonNone)
			if p == ps[0] {
				n++
			}
		}
		return n
	}
	if got = run(Cooldown); got != 0 {
		t.Fatalf("%d requests while it cools down", got)
	}
	for part := range int64(6) {
		got = run(5 * time.Second)
		to := RampStart + (1000-RampStart)*(part+1)/6
		from := RampStart + (1000-RampStart)*part/6
		if most, least := int(500*to/(2000+to))+2, int(500*from/(2000+from))-2; got > most || got < least {
			t.Errorf("part %d of the ramp: %d of 500, want %d to %d", part, got, least, most)
		}
	}
	if got = run(30 * time.Second); got < 999 || got > 1001 {
		t.Errorf("after the ramp: %d of 3000, want a third", got)
	}
}

func TestDomain(t *testing.T) {
	ps := []*Place{slotted("a1", "a"), slotted("a2", "a"), slotted("a3", "a"), slotted("b1", "b")}
	d, now := NewDomain("a", ps[:3]), start
	judge := func() {
		d.Judge(BreakerPolicy{})
		Settle(now, ps, true)
	}
	open := func(p *Place) {
		for range DefaultFailures {
			fail(p, now, sluice.UpstreamConnect)
		}
		judge()
	}
	if open(ps[0]); d.Open() || ps[2].Fit(now) != Chosen {
		t.Fatal("one of three opens it")
	}
	if open(ps[1]); !d.Open() || ps[2].Fit(now) != LeftDomain || ps[2].State(now) != "avoided" || ps[3].Fit(now) != Chosen {
		t.Fatalf("two of three: open %v, the third is %s", d.Open(), ps[2].State(now))
	}
	now = now.Add(Cooldown)
	probe := take(ps[0], now, Need{})
	if ps[1].Fit(now) != LeftDomain {
		t.Error("two probes in one domain")
	}
	ps[0].Ended(now, &probe, Ending{})
	ps[0].Give(&probe)
	if judge(); d.Open() || ps[2].Fit(now) != Chosen {
		t.Error("one of three is left, and the domain is avoided")
	}
	open(ps[0])
	if open(ps[3]); ps[2].Fit(now) != Chosen {
		t.Error("the domain is avoided though there is no other")
	}
}

// The last that answers anything stays in use, and is let go when another is there.
func TestSettleReleases(t *testing.T) {
	ps := []*Place{slotted("a", ""), slotted("b", "")}
	now := start
	for i := range DefaultBreakVolume {
		why := sluice.ReasonNone
		if i%2 == 0 {
			why = sluice.UpstreamError
		}
		fail(ps[0], now, why)
	}
	if Settle(now, ps, true); ps[0].Fit(now) == Chosen {
		t.Fatal("kept beside another")
	}
	for range DefaultFailures {
		fail(ps[1], now, sluice.UpstreamConnect)
	}
	if Settle(now, ps, false); ps[0].Fit(now) == Chosen {
		t.Fatal("kept though its models have another pool")
	}
	if Settle(now, ps, true); ps[0].Fit(now) != Chosen || ps[0].State(now) != "held" || ps[1].Fit(now) == Chosen {
		t.Errorf("alone: %s, %s", ps[0].State(now), ps[1].State(now))
	}
}

// What ran as a breaker opened by a share says whether anything is answered still: a
// backend of which all of that fails is not taken back for want of another, and the
// failures of one that was count on.
func TestWhatRanAsItOpenedCounts(t *testing.T) {
	for _, answers := range []int{0, 1} {
		p, now := slotted("a", ""), start
		var ran []Taken
		for range DefaultFailures + answers {
			ran = append(ran, take(p, now, Need{}))
		}
		for i := range DefaultBreakVolume {
			why := sluice.ReasonNone
			if i%2 == 0 {
				why = sluice.UpstreamError
			}
			fail(p, now, why)
		}
		for i := range ran {
			why := sluice.UpstreamError
			if i < answers {
				why = sluice.ReasonNone
			}
			if i == len(ran)-1 && answers > 0 {
				Settle(now, []*Place{p}, true) // taken back, but for the last
				if p.State(now) != "held" {
					t.Errorf("it answers some: %s, want held", p.State(now))
				}
			}
			p.Ended(now, &ran[i], Ending{Why: why})
			p.Give(&ran[i])
		}
		if Settle(now, []*Place{p}, true); p.State(now) != "cooling" {
			t.Errorf("%d failures in a row: %s, want cooling", DefaultFailures, p.State(now))
		}
	}
}
