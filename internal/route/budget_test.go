package route

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

// attempts is the log of a history: who, where, when. It is what the budgets are
// judged by.
type attempts []attempted

type attempted struct {
	at     time.Time
	tenant sluice.TenantID
	place  int
	retry  bool
	n      int64 // of them, at the same moment
}

// add notes one more.
func (l *attempts) add(a attempted) {
	if i := len(*l) - 1; i >= 0 {
		last := (*l)[i]
		if a.n = last.n; a == last {
			(*l)[i].n++
			return
		}
	}
	a.n = 1
	*l = append(*l, a)
}

// count is the first attempts and the retries in (from, to] that one budget counts.
func (l attempts) count(from, to time.Time, counts func(tenant sluice.TenantID, place int) bool) (firsts, retries int64) {
	for i := len(l) - 1; i >= 0 && l[i].at.After(from); i-- {
		switch a := l[i]; {
		case a.at.After(to) || !counts(a.tenant, a.place):
		case a.retry:
			retries += a.n
		default:
			firsts += a.n
		}
	}
	return firsts, retries
}

// TestRetryBudgets: in any history no budget admits more than it may, by the log,
// at any admission and so in any window; and what it denies was within a sub-bucket
// of that.
func TestRetryBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := RetryPolicy{
			Share:   rapid.SampledFrom([]int64{0, -1, 50, 300}).Draw(t, "share"),
			Minimum: rapid.SampledFrom([]int64{0, -1, 2}).Draw(t, "minimum"),
		}
		h := &history{t: t, now: time.Unix(1_800_000_000, 0), places: []*Place{{}, {}}}
		h.retries.Configure(p)
		h.policy = p.WithDefaults()
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			h.step()
		}
		h.windows()
		h.amplification()
	})
}

// history drives budgets and logs what they say.
type history struct {
	t       *rapid.T
	retries Retries
	policy  RetryPolicy
	places  []*Place
	now     time.Time
	log     attempts
}

func (h *history) step() {
	t := h.t
	tenant := sluice.TenantID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"))
	place := rapid.IntRange(0, len(h.places)-1).Draw(t, "place")
	switch rapid.SampledFrom([]string{"first", "burst", "retries", "retries", "time", "long"}).Draw(t, "op") {
	case "time":
		h.now = h.now.Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "ms")) * time.Millisecond)
	case "long":
		h.now = h.now.Add(time.Duration(rapid.IntRange(1, 11_000).Draw(t, "ms")) * time.Millisecond)
	case "first":
		h.first(tenant, place)
	case "burst":
		for range rapid.IntRange(1, 120).Draw(t, "n") {
			h.first(tenant, place)
		}
	case "retries":
		for range rapid.IntRange(1, 25).Draw(t, "n") {
			h.retry(tenant, place)
		}
	}
}

func (h *history) first(tenant sluice.TenantID, place int) {
	h.retries.First(h.now, tenant, h.places[place])
	h.log.add(attempted{at: h.now, tenant: tenant, place: place})
}

// budgets are the three, by which attempts they count.
func budgets(tenant sluice.TenantID, place int) map[Denied]func(sluice.TenantID, int) bool {
	return map[Denied]func(sluice.TenantID, int) bool{
		DeniedFleet:   func(sluice.TenantID, int) bool { return true },
		DeniedTenant:  func(id sluice.TenantID, _ int) bool { return id == tenant },
		DeniedBackend: func(_ sluice.TenantID, at int) bool { return at == place },
	}
}

func (h *history) retry(tenant sluice.TenantID, place int) {
	why := h.retries.Allows(h.now, tenant)
	if why == Allowed {
		why = h.retries.AllowsOn(h.now, h.places[place])
	}
	if why != Allowed { // it is within a sub-bucket of the truth
		counts := budgets(tenant, place)[why]
		_, retries := h.log.count(h.now.Add(-RetryWindow-bucketSpan), h.now, counts)
		firsts, _ := h.log.count(h.now.Add(bucketSpan-RetryWindow), h.now, counts)
		if most := h.most(firsts); retries < most {
			h.t.Fatalf("%s denied after %d retries and %d first attempts: %d are due", why, retries, firsts, most)
		}
		return
	}
	h.retries.Admit(h.now, tenant)
	h.retries.Retried(h.now, h.places[place])
	h.log.add(attempted{at: h.now, tenant: tenant, place: place, retry: true})
	for name, counts := range budgets(tenant, place) {
		firsts, retries := h.log.count(h.now.Add(-RetryWindow), h.now, counts)
		if most := h.most(firsts); retries > most {
			h.t.Fatalf("%s: %d retries admitted in 10s with %d first attempts, at most %d are due", name, retries, firsts, most)
		}
	}
}

// most is the rule, as it is written down.
func (h *history) most(firsts int64) int64 {
	return max(max(h.policy.Share, 0)*firsts/1000, max(h.policy.Minimum, 0)*10)
}

// windows: in any ten seconds whatever there are at most as many retries as the
// rule has for the first attempts of these and the ten seconds before.
func (h *history) windows() {
	for _, a := range h.log {
		for _, end := range []time.Time{a.at, a.at.Add(RetryWindow / 3), a.at.Add(RetryWindow - 1)} {
			for name, counts := range budgets(a.tenant, a.place) {
				firsts, _ := h.log.count(end.Add(-2*RetryWindow), end, counts)
				if _, retries := h.log.count(end.Add(-RetryWindow), end, counts); retries > h.most(firsts) {
					h.t.Fatalf("%s: %d retries in 10s, first attempts in 20s: %d", name, retries, firsts)
				}
			}
		}
	}
}

// amplification of the whole history: the share of first attempts, and the minimum
// for each ten seconds that it lasted.
func (h *history) amplification() {
	if len(h.log) == 0 {
		return
	}
	lasted := h.now.Sub(h.log[0].at) + 1
	windows := int64((lasted + RetryWindow - 1) / RetryWindow)
	for name, counts := range budgets("a", 0) {
		firsts, retries := h.log.count(time.Time{}, h.now, counts)
		if most := max(h.policy.Share, 0)*firsts/1000 + max(h.policy.Minimum, 0)*10*windows; retries > most {
			h.t.Fatalf("%s: %d retries of %d first attempts in %v, at most %d are due", name, retries, firsts, lasted, most)
		}
	}
}

// A steady load of failures is held to 1.1 and gets nearly that.
func TestSteadyAmplification(t *testing.T) {
	var r Retries
	p, now := &Place{}, time.Unix(1_800_000_000, 0)
	const perSecond = 200
	firsts, retries := 0, 0
	for i := range 60 * perSecond {
		now = now.Add(time.Second / perSecond)
		r.First(now, "a", p)
		firsts++
		if r.Allows(now, "a") == Allowed && r.AllowsOn(now, p) == Allowed {
			r.Admit(now, "a")
			r.Retried(now, p)
			retries++
		}
		if i == 0 && retries != 1 {
			t.Error("the minimum is there from the start")
		}
	}
	if got := 1000 * (firsts + retries) / firsts; got < 1094 || got > 1100 {
		t.Errorf("%d retries of %d first attempts: amplification %d ‰, want 1094 to 1100", retries, firsts, got)
	}
}

func TestRetriesUnbounded(t *testing.T) {
	var r Retries
	r.Configure(NaiveRetries())
	p, now := &Place{Health: Health{phase: open}}, time.Unix(1_800_000_000, 0)
	for range 1000 {
		if r.Allows(now, "a") != Allowed || r.AllowsOn(now, p) != Allowed {
			t.Fatal("denied")
		}
		r.Admit(now, "a")
		r.Retried(now, p)
	}
	if _, bounded := r.Left(now); bounded {
		t.Error("a bound that is not there is shown")
	}
	r.Configure(RetryPolicy{}) // what was counted stays
	if got := r.Allows(now, "a"); got != DeniedFleet {
		t.Errorf("after a reload: %q, want %q", got, DeniedFleet)
	}
}

// No retry goes to a backend whose breaker is open: until a request completed
// there, also when its cool-down is over.
func TestNoRetryWhileTheBreakerIsOpen(t *testing.T) {
	var r Retries
	p, now := &Place{Backend: &Backend{Weight: 1}}, time.Unix(1_800_000_000, 0)
	r.First(now, "a", p)
	for i := range DefaultFailures {
		if got := r.AllowsOn(now, p); got != Allowed {
			t.Fatalf("after %d failures: %q", i, got)
		}
		fail(p, now, sluice.UpstreamError)
	}
	for _, now := range []time.Time{now, now.Add(Cooldown)} {
		if got := r.AllowsOn(now, p); got != DeniedBreaker {
			t.Errorf("open: %q, want %q", got, DeniedBreaker)
		}
		if left, bounded := r.LeftOn(now, p); left != 0 || !bounded {
			t.Errorf("open: %d left, bounded=%v", left, bounded)
		}
	}
	fail(p, now.Add(Cooldown), sluice.ReasonNone)
	if got := r.AllowsOn(now.Add(Cooldown), p); got != Allowed {
		t.Errorf("after an answer: %q", got)
	}
}

// Tenants beyond the bound share one budget, until one of the others is idle.
func TestRetryTenantsAreBounded(t *testing.T) {
	var r Retries
	r.Configure(RetryPolicy{Minimum: MaxRetryMinimum})
	p, now := &Place{}, time.Unix(1_800_000_000, 0)
	id := func(i int) sluice.TenantID { return sluice.TenantID(fmt.Sprint("t", i)) }
	for i := range MaxRetryTenants + 2 {
		r.First(now, id(i), p)
		r.Admit(now, id(i))
	}
	if n := r.tenants.Len(); n != MaxRetryTenants {
		t.Fatalf("%d tenants are remembered", n)
	}
	if r.others.retries != 2 || r.of(id(MaxRetryTenants)) != &r.others {
		t.Errorf("the last two do not share: %+v", r.others.retries)
	}
	r.First(now.Add(RetryWindow), id(0), p) // 1 is the oldest by now
	r.First(now.Add(RetryWindow+bucketSpan), id(MaxRetryTenants), p)
	if r.tenants.Find(id(1)) != nil || r.tenants.Find(id(0)) == nil || r.tenants.Find(id(MaxRetryTenants)) == nil || r.tenants.Len() != MaxRetryTenants {
		t.Error("the one that was idle for longest did not make room")
	}
}

// The clock may step back, and stand still for long.
func TestRetriesAndTheClock(t *testing.T) {
	var r Retries
	p, now := &Place{}, time.Unix(1_800_000_000, 0)
	r.First(now, "a", p)
	for range 10 {
		r.Admit(now, "a")
	}
	for _, at := range []time.Duration{0, -time.Hour, RetryWindow} {
		if got := r.Allows(now.Add(at), "a"); got != DeniedFleet {
			t.Errorf("at %v: %q, want %q", at, got, DeniedFleet)
		}
	}
	r.First(now.Add(-time.Hour), "a", p) // counts now
	if got := r.fleet.firsts; got != 1 {
		t.Errorf("%d first attempts count, want the last", got)
	}
	if got := r.Allows(now.Add(RetryWindow+bucketSpan), "a"); got != Allowed {
		t.Errorf("after the window: %q", got)
	}
	if left, _ := r.Left(now.Add(100 * 365 * 24 * time.Hour)); left != 10 {
		t.Errorf("a century later %d are left", left)
	}
}

// fail is an attempt there that ends so.
func fail(p *Place, now time.Time, why sluice.Reason) {
	n := take(p, now, Need{})
	p.Ended(now, &n, Ending{Why: why})
	p.Give(&n)
}

// Without breakers nothing keeps a backend out; with them again, what happened counts.
func TestNoBreakers(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &Place{Backend: &Backend{ID: "b", Weight: 1, Keys: []Key{{ID: "k"}}}}
	p.Health.Configure(BreakerPolicy{}, true)
	for range 2 * DefaultFailures {
		fail(p, now, sluice.UpstreamError)
	}
	p.Pause(now, time.Minute)
	p.Refused(now, "k", true)
	if _, cooling := p.Cooling(now); cooling || p.Fit(now) != Chosen || p.Health.Open() || p.State(now) != "healthy" {
		t.Errorf("kept out: %+v", p.Health)
	}
	p.Health.Configure(BreakerPolicy{}, false)
	if p.Fit(now) == Chosen || !p.Health.Open() {
		t.Errorf("forgotten: %+v", p.Health)
	}
}
