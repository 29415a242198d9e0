package tabletop

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

// TestClosedLoop: a client with four streams never has more requests open, and what
// comes up meanwhile waits with it, in order.
func TestClosedLoop(t *testing.T) {
	x := tenant("a", 50, 500, 200)
	x.Client.Streams = 4
	s := world(1, benchProfile(), x)
	p, err := newPlay(t.Context(), s, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	last, most := int64(-1), 0
	for p.step() {
		most = max(most, p.roster.open)
		if q := p.roster.tail; q != nil && q.index > last {
			if q.index > last+4 {
				t.Fatalf("request %d follows %d", q.index, last)
			}
			last = q.index
		}
	}
	if most != 4 {
		t.Errorf("%d were open at a time, want 4", most)
	}
	// Each takes 200 steps of 8 ms or somewhat more: 4 streams make 2 to 2.5 of them a second.
	if n := float64(p.numbers) / 60; n < 1.8 || n > 2.6 {
		t.Errorf("%.2f requests/s", n)
	}
}

// TestLeaving: who leaves by its own will in mid-answer is charged for what it has
// seen, and does not count against the target.
func TestLeaving(t *testing.T) {
	x := tenant("a", 10, 500, 400)
	x.Client.Leave = Leave{Permille: 500, After: 3 * time.Second}
	r := mustRun(t, world(1, benchProfile(), x), Options{})
	a := &r.Phases[0].All
	near(t, "left", float64(a.Left)/float64(a.Requests), 0.45, 0.15)
	if a.Cancelled != a.Left || a.SLO < 990 || a.Completed+a.Left != a.Requests {
		t.Errorf("%+v", a)
	}
	asked, cost := float64(a.Requests)*(500+2*400)*1000, float64(a.Cost)
	if cost < 0.6*asked || cost > 0.95*asked {
		t.Errorf("charged %.0f of %.0f nano-dollars", cost, asked)
	}
}

// TestPatience: a client leaves where no first token has come in time, and stays
// once it has.
func TestPatience(t *testing.T) {
	x := tenant("a", 40, 2000, 400)
	x.Client.Patience, x.Client.MaxWait = 2*time.Second, 20*time.Second
	r := mustRun(t, world(1, benchProfile(), x), Options{})
	a := &r.Phases[0].All
	if a.Impatient == 0 || a.Impatient != a.Cancelled || a.TTFT.Max > 2*time.Second || a.E2E.Max < 3*time.Second {
		t.Errorf("%+v", a)
	}
}

// TestPrefixes: what prompts have in common is found in a machine's cache, until it
// starts anew.
func TestPrefixes(t *testing.T) {
	x := tenant("a", 10, 2000, 50)
	x.Prefix = Prefix{Tokens: 1600, Groups: 5}
	engine := benchProfile()
	engine.BlockTokens = 16
	s := world(1, engine, x)
	s.Length = 2 * time.Minute
	s.Warmup = 10 * time.Second
	near(t, "hits", float64(mustRun(t, s, Options{}).Phases[0].Backends[0].Hits), 800, 0.02)
	s.Events = []Event{
		{At: time.Minute, Backends: &Backends{IDs: []sluice.BackendID{"b0"}, Down: true}},
		{At: time.Minute + time.Second, Backends: &Backends{IDs: []sluice.BackendID{"b0"}, Up: true}},
	}
	if r := mustRun(t, s, Options{}); r.Phases[1].Backends[0].Hits >= r.Phases[0].Backends[0].Hits {
		t.Errorf("hits before and after a restart: %+v, %+v", r.Phases[0].Backends, r.Phases[1].Backends)
	}
	x.Prefix = Prefix{}
	if h := mustRun(t, world(1, engine, x), Options{}).Phases[0].Backends[0].Hits; h != 0 {
		t.Errorf("%d permille of prompts that have nothing in common", h)
	}
}

// TestApply: another table comes into force in the middle of a run.
func TestApply(t *testing.T) {
	s := world(2, benchProfile(), tenant("a", 10, 500, 100))
	smaller := *s.Policies[0].Table.Pools["main"]
	smaller.Backends = smaller.Backends[:1]
	s.Events = []Event{{At: 30 * time.Second, Phase: "after", Apply: []Variant{variant("smaller", &smaller, s.Sources), naive(&smaller, s.Sources)}}}
	for _, policy := range []string{"sluice", "naive"} {
		r := mustRun(t, s, Options{Policy: policy})
		if before, after := r.Phases[0].Backends, r.Phases[1].Backends; before[1].Attempts < 50 || after[1].Attempts != 0 || after[0].Attempts < 200 {
			t.Errorf("%s: attempts before %+v, after %+v", policy, before, after)
		}
		if r.Phases[1].All.Completed != r.Phases[1].All.Requests {
			t.Errorf("%s: %+v", policy, r.Phases[1].All)
		}
	}
}

// TestFailing: a backend that answers with errors is left alone after a few, and
// what failed there completes elsewhere.
func TestFailing(t *testing.T) {
	s := world(2, benchProfile(), tenant("a", 10, 500, 100))
	s.Events = []Event{{At: 10 * time.Second, Backends: &Backends{IDs: []sluice.BackendID{"b0"}, Fail: &Fail{Permille: 1000, Reason: sluice.UpstreamError}}}}
	r := mustRun(t, s, Options{})
	p := &r.Phases[1]
	if p.All.Completed != p.All.Requests || p.Backends[0].Failed == 0 || p.Backends[0].Failed != p.Backends[0].Attempts || p.Backends[0].Failed > 40 {
		t.Errorf("%+v, %+v", p.All, p.Backends)
	}
	if p.Retries.Attempts != p.Retries.Dispatched+p.Backends[0].Failed || p.Retries.Amplification > 1100 {
		t.Errorf("%+v", p.Retries)
	}
}

// TestProviderRates: a provider's rates bound what is served, and its refusals are
// few, since its headers tell.
func TestProviderRates(t *testing.T) {
	x := tenant("a", 4, 500, 50)
	x.Client.MaxWait = 5 * time.Second
	s := world(1, fleet.Profile{}, x)
	s.Machines = []Machine{{Backend: "b0", Hosted: &fleet.Service{Latency: 200 * time.Millisecond, PrefillRate: 50_000, TokenTime: 10 * time.Millisecond, RequestsPerMinute: 60}}}
	s.Warmup, s.Length = time.Minute, 3*time.Minute
	r := mustRun(t, s, Options{})
	p := &r.Phases[0]
	near(t, "completed a minute", float64(p.All.Completed)/2, 60, 0.1)
	if p.Backends[0].Failed > 12 {
		t.Errorf("%+v", p.Backends)
	}
}

// TestWrongScenarios: what cannot be run is told in full.
func TestWrongScenarios(t *testing.T) {
	s := world(1, benchProfile(), tenant("a", 1, 1, 1), tenant("a", 1, 1, 1))
	rate := -1.0
	s.Warmup = 2 * time.Minute
	s.Machines = append(s.Machines, Machine{Backend: "none"})
	s.Policies[1].Principals = nil
	s.Events = []Event{{At: time.Second, Label: "x", Traffic: &Traffic{Sources: []int{7}, Rate: &rate}}, {Label: "y", Backends: &Backends{IDs: []sluice.BackendID{"b9"}}}, {Label: "z", Apply: s.Policies[:1]}}
	const want = `the run lasts 1m0s after a warm-up of 2m0s, and drains for 10m0s: it must last longer than its warm-up, and at most a year
machine none: give it a replica's profile or a hosted service, one of the two
policy naive has 0 principals for 2 sources: give it one for each
source 1: there is another of the name a
event "x" at 1s: source 7 is not one of 2
event "x" at 1s: a rate of -1 is negative
event "y" at 0s: backend b9 has no machine that plays it
event "z" at 0s: it applies 1 variants to 2 policies`
	if _, err := s.Run(t.Context(), Options{}); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	s = world(1, benchProfile(), tenant("a", 1, 1, 1))
	s.Expect = []Expectation{{Text: "slo > 5 apples"}}
	if _, err := s.Run(t.Context(), Options{}); err == nil || err.Error() != `expectation "slo > 5 apples": column 7: slo is a share, and "5" is not: write a value such as 99%` {
		t.Error(err)
	}
}
