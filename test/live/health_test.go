package live

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// threeBackends are equal.
func threeBackends() plan {
	p := plan{queue: route.QueueBounds{MaxWait: 5 * time.Second}, tenants: map[sluice.TenantID]sluice.Policy{"t": {}}}
	for range 3 {
		p.backends = append(p.backends, backend{fleet.Llama8BOnH100(), route.Capacity{Concurrency: 64}})
	}
	return p
}

// calls are the attempts that went to a backend in a time.
func calls(attempts []dispatch, b sluice.BackendID, from, to time.Duration) (out []dispatch) {
	for _, a := range attempts {
		if a.backend == b && a.at >= from && a.at < to {
			out = append(out, a)
		}
	}
	return out
}

// TestAbortsKeepTheSpread: three equal backends abort one stream in ten, 3,000 calls.
// None is put aside for that: each gets a third, within 5 %.
func TestAbortsKeepTheSpread(t *testing.T) {
	long(t)
	at(t, threeBackends(), func(t *testing.T, s *site) {
		for _, b := range s.table.Pools["main"].Backends {
			s.provider.Play(b.Model, fakellm.Rule{Fault: "die-after=1", Probability: .1})
		}
		c := s.crowd()
		c.every(100*time.Second, func(int) (ask, time.Duration) {
			return ask{tenant: "t", in: 200, out: 40}, time.Second / 30
		})
		n := 0
		for _, gs := range c.all() {
			n += len(gs)
		}
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		for _, b := range s.table.Pools["main"].Backends {
			got := len(calls(s.log.attempts, b.ID, 0, time.Hour))
			t.Logf("%s: %d of %d attempts for %d requests", b.ID, got, len(s.log.attempts), n)
			if third := len(s.log.attempts) / 3; got < third*95/100 || got > third*105/100 {
				t.Errorf("%s got %d, want %d ± 5 %%", b.ID, got, third)
			}
		}
		cut := 0
		for i := range s.log.entries {
			if s.log.entries[i].Reason == sluice.UpstreamTruncated {
				cut++
			}
		}
		if n < 2990 || cut < n*8/100 || cut > n*12/100 {
			t.Errorf("%d requests, of which %d were cut, want 3000 and a tenth", n, cut)
		}
	})
}

// An outage of 30 s of one of three backends under 30 requests a second.
const (
	outageFrom = 5 * time.Second
	outageTo   = 35 * time.Second
	outageEnd  = 90 * time.Second
)

// TestOutageOf30s: once its breaker is open nothing goes to the backend that is down
// but one request in ten seconds. The first of these that is answered begins the
// ramp: over each part of it the backend gets no more than that part of its third.
func TestOutageOf30s(t *testing.T) {
	long(t)
	at(t, threeBackends(), func(t *testing.T, s *site) {
		c := s.crowd()
		c.every(outageEnd, func(int) (ask, time.Duration) {
			return ask{tenant: "t", in: 200, out: 20, whole: true}, time.Second / 30
		})
		time.Sleep(outageFrom)
		s.provider.Play("b0", fakellm.Rule{Fault: "reset"})
		time.Sleep(outageTo - outageFrom)
		s.provider.Play("b0")
		failed := 0
		for _, gs := range c.all() {
			for _, g := range gs {
				if g.status != 200 {
					failed++
				}
			}
		}
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		during := calls(s.log.attempts, "b0", outageFrom, outageTo)
		if n := len(during); n < route.DefaultFailures || failed > 0 {
			t.Fatalf("%d calls while it is down, %d requests failed", n, failed)
		}
		opened := during[route.DefaultFailures-1].at
		probes := calls(s.log.attempts, "b0", opened+time.Second, outageTo)
		last := opened
		for _, a := range probes {
			if a.at-last < route.Cooldown || a.retry {
				t.Errorf("a call %v after the one before, retry=%v", a.at-last, a.retry)
			}
			last = a.at
		}
		after := calls(s.log.attempts, "b0", outageTo, outageEnd)
		if after[0].at-last < route.Cooldown {
			t.Errorf("the probe that was answered came %v after the one before", after[0].at-last)
		}
		begun := after[0].at
		t.Logf("opened at %v, probes %d, back at %v", opened, len(probes), begun)
		const part = 5 * time.Second
		for at := time.Duration(0); at < route.DefaultRamp; at += part {
			got := len(calls(s.log.attempts, "b0", begun+at+time.Millisecond, begun+at+part))
			to := int64(route.RampStart) + (1000-route.RampStart)*int64(at+part)/int64(route.DefaultRamp)
			from := int64(route.RampStart) + (1000-route.RampStart)*int64(at)/int64(route.DefaultRamp)
			most, least := 150*to/(2000+to)+3, 150*from/(2000+from)-3
			t.Logf("%v into the ramp: %d of 150, from %d to %d ‰ of its share", at, got, from, to)
			if int64(got) > most || int64(got) < least {
				t.Errorf("%v into the ramp: %d of 150, want %d to %d", at, got, least, most)
			}
		}
		whole := begun + route.DefaultRamp
		n := len(calls(s.log.attempts, "b0", whole, whole+10*time.Second))
		if n < 95 || n > 105 {
			t.Errorf("after the ramp: %d of 300, want a third", n)
		}
	})
}
