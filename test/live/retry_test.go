package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// dispatch is one attempt, as the gate granted it.
type dispatch struct {
	at      time.Duration
	tenant  sluice.TenantID
	backend sluice.BackendID
	retry   bool
}

// The wave: 60 requests a second of three tenants on three backends of one provider,
// which fails for twenty seconds.
const (
	waveTenants = 3
	waveEach    = 20 // requests a second of each tenant
	waveFrom    = 5 * time.Second
	waveTo      = 25 * time.Second
	waveEnd     = 40 * time.Second
	waveOver    = waveTo + route.Cooldown + time.Second // every backend is in use again
)

// wave is what became of it.
type wave struct {
	attempts []dispatch
	denied   map[string]int // decisions on retries, by word
	gots     []got
}

func retryWave(t *testing.T, naive bool, fault fakellm.Rule) (w wave) {
	p := plan{queue: route.QueueBounds{MaxWait: 5 * time.Second}, tenants: map[sluice.TenantID]sluice.Policy{}}
	if naive {
		p.sharing, p.retries = sched.Policy{FIFO: true}, route.NaiveRetries()
	}
	for range 3 {
		p.backends = append(p.backends, backend{fleet.Llama8BOnH100(), route.Capacity{Concurrency: 64}})
	}
	for i := range waveTenants {
		p.tenants[sluice.TenantID(fmt.Sprint("t", i))] = sluice.Policy{}
	}
	at(t, p, func(t *testing.T, s *site) {
		c := s.crowd()
		for _, id := range slices.Sorted(maps.Keys(p.tenants)) {
			rnd := rand.New(rand.NewPCG(7, uint64(id[1])))
			c.every(waveEnd, func(int) (ask, time.Duration) {
				return ask{tenant: id, in: 200, out: 20, whole: true}, time.Duration(rnd.ExpFloat64() / waveEach * float64(time.Second))
			})
		}
		time.Sleep(waveFrom)
		for _, b := range s.table.Pools["main"].Backends {
			s.provider.Play(b.Model, fault)
		}
		time.Sleep(waveTo - waveFrom)
		for _, b := range s.table.Pools["main"].Backends {
			s.provider.Play(b.Model)
		}
		time.Sleep(waveEnd - waveTo)
		for _, gs := range c.all() {
			w.gots = append(w.gots, gs...)
		}
		s.numbered()
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		w.attempts, w.denied = s.log.attempts, s.log.denied
	})
	return w
}

// numbered judges that the ledger has the attempts of each request by their numbers,
// each once, and that all but the last failed.
func (s *site) numbered() {
	s.t.Helper()
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	of := map[sluice.RequestID]int{}
	for i := range s.log.entries {
		e := &s.log.entries[i]
		if e.Attempt == 0 {
			continue
		}
		if of[e.Request]++; e.Attempt != of[e.Request] {
			s.t.Fatalf("%s: entry %d is of attempt %d", e.Request, of[e.Request], e.Attempt)
		}
		if !e.Final && (e.Outcome != sluice.Failed || e.Reason == sluice.ReasonNone) {
			s.t.Fatalf("%s: attempt %d of several is %v %v", e.Request, e.Attempt, e.Outcome, e.Reason)
		}
	}
	n := 0
	for _, attempts := range of {
		n += attempts
	}
	if granted := len(s.log.attempts); n != granted {
		s.t.Errorf("the ledger has %d attempts, %d were granted", n, granted)
	}
}

// count is the first attempts and the others in a time, of all or one backend.
func (w *wave) count(from, to time.Duration, b sluice.BackendID) (firsts, retries int) {
	for i := range w.attempts {
		switch a := &w.attempts[i]; {
		case a.at <= from || a.at > to || b != "" && a.backend != b:
		case a.retry:
			retries++
		default:
			firsts++
		}
	}
	return firsts, retries
}

// bounded judges that at each retry there had been as many in ten seconds as
// may have been: of all, and of its backend.
func (w *wave) bounded(t *testing.T) {
	t.Helper()
	for i := range w.attempts {
		a := &w.attempts[i]
		if !a.retry {
			continue
		}
		for _, b := range []sluice.BackendID{"", a.backend} {
			firsts, retries := w.count(a.at-route.RetryWindow, a.at, b)
			if most := max(firsts/10, 10); retries > most {
				t.Fatalf("at %v: %d retries in 10s with %d first attempts (backend %q), at most %d are due", a.at, retries, firsts, b, most)
			}
		}
	}
}

// answered is the part of what was asked in a time that was answered, in percent.
func (w *wave) answered(from, to time.Duration) int {
	gs := between(w.gots, from, to)
	ok := 0
	for _, g := range gs {
		if g.status == 200 && g.err == nil {
			ok++
		}
	}
	return 100 * ok / max(len(gs), 1)
}

// TestRetryWave: one in seven of what the provider is sent fails, or all of it. With the
// budget it is sent at most a tenth more than what was admitted, or one a second;
// behind two retries whatever happens it is all that fails, up to three times as much.
func TestRetryWave(t *testing.T) {
	long(t)
	some, all := fakellm.Rule{Fault: "status=500", Probability: 1. / 7}, fakellm.Rule{Fault: "status=500"}
	for _, tt := range []struct {
		name  string
		naive bool
		fault fakellm.Rule
	}{{"one in 7 fails", false, some}, {"all fails", false, all}, {"naive, one in 7 fails", true, some}, {"naive, all fails", true, all}} {
		w := retryWave(t, tt.naive, tt.fault)
		firsts, retries := w.count(waveFrom, waveTo, "")
		amplification := 1000 * (firsts + retries) / max(firsts, 1)
		t.Logf("%-22s %4d requests got %4d retries: amplification %d.%03d; answered %d %% before, %d %% in the wave, %d %% after it; decisions %v",
			tt.name, firsts, retries, amplification/1000, amplification%1000, w.answered(0, waveFrom), w.answered(waveFrom, waveTo), w.answered(waveOver, waveEnd), w.denied)
		if w.answered(0, waveFrom) != 100 || w.answered(waveOver, waveEnd) != 100 {
			t.Errorf("%s: not all is answered while nothing fails", tt.name)
		}
		windows := int((waveTo - waveFrom) / route.RetryWindow)
		if bounded := retries <= firsts/10+10*windows; bounded == tt.naive {
			t.Errorf("%s: %d retries of %d first attempts: bounded=%v", tt.name, retries, firsts, bounded)
		}
		if tt.naive {
			continue
		}
		w.bounded(t)
		budgeted := 0
		for why, n := range w.denied {
			if route.Denied(why).Budgeted() {
				budgeted += n
			}
		}
		if _, dispatched := w.count(0, waveEnd, ""); w.denied[""] != dispatched || tt.fault == some && budgeted == 0 {
			t.Errorf("%s: decisions %v: want as many allowed as the %d dispatched, and some denied by a budget", tt.name, w.denied, dispatched)
		}
		for _, g := range w.gots {
			if g.status != 200 && g.reason != "upstream_error" && g.reason != "no_backend" {
				t.Fatalf("%s: a client is told %d %s: not what the provider did", tt.name, g.status, g.reason)
			}
		}
	}
}
