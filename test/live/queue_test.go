package live

import (
	"math"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// steady is an engine that makes a token in so long, however many run and whatever
// their input.
func steady(token time.Duration) fleet.Profile {
	return fleet.Profile{PrefillRate: 1_000_000_000, StepBase: token, Slots: 256}
}

// orders are the fair queue and its control.
var orders = []struct {
	name string
	fifo bool
}{{"fair", false}, {"fifo", true}}

// cL9: of 16 slots one tenant would have a hundred calls of 10 s; another's only
// call waits at most one turn of a slot. By FIFO it waits for 84 calls, 60 s.
func TestCase_cL9(t *testing.T) {
	const call = 10 * time.Second
	for _, o := range orders {
		t.Run(o.name, func(t *testing.T) {
			at(t, plan{
				backends: []backend{{steady(100 * time.Millisecond), route.Capacity{Concurrency: 16}}},
				sharing:  sched.Policy{FIFO: o.fifo},
				queue:    route.QueueBounds{MaxWait: time.Hour},
				tenants:  map[sluice.TenantID]sluice.Policy{"a": {}, "b": {}},
			}, func(t *testing.T, s *site) {
				c := s.crowd()
				for range 100 {
					c.send(ask{tenant: "a", in: 50, out: 100})
				}
				time.Sleep(3 * time.Second)
				if p := s.pool(); p.Waiting != 84 || p.Backends[0].Running != 16 {
					t.Errorf("%d wait and %d run, want 84 and 16", p.Waiting, p.Backends[0].Running)
				}
				c.send(ask{tenant: "b", in: 50, out: 100})
				got := c.all()
				s.served(got["a"])
				s.served(got["b"])
				wait := got["b"][0].queued
				t.Logf("b waited %v", wait)
				if within := wait <= call; within == o.fifo {
					t.Errorf("b waited %v; a turn is %v", wait, call)
				}
			})
		})
	}
}

// cO3: one tenant keeps 100 calls of 4,000 tokens in flight; another asks once a
// second for 200 tokens. At the 99th percentile it waits at most 1.2 times what it
// waits alone and one quantum: a turn, the time until calls that run have ended for it
// and for one of the other's, which stands equal. Alone it waits for nothing, by FIFO
// for 84 calls, 85 s.
func TestCase_cO3(t *testing.T) {
	long(t)
	const length = 10 * time.Minute
	run := func(t *testing.T, fifo, flooded bool) (wait, turn time.Duration) {
		at(t, plan{
			backends: []backend{{fleet.Llama8BOnH100(), route.Capacity{Concurrency: 16, KVTokens: 443_000}}},
			sharing:  sched.Policy{FIFO: fifo},
			queue:    route.QueueBounds{MaxWait: time.Hour},
			tenants:  map[sluice.TenantID]sluice.Policy{"a": {}, "b": {}},
		}, func(t *testing.T, s *site) {
			c := s.crowd()
			if flooded {
				for range 100 {
					c.loop(1, length, ask{tenant: "a", in: 3000, out: 1000, whole: true})
					time.Sleep(100 * time.Millisecond)
				}
			}
			c.every(length, func(int) (ask, time.Duration) {
				return ask{tenant: "b", in: 150, out: 50, whole: true}, time.Second
			})
			b := c.all()["b"]
			s.served(b)
			wait = quantile(b, 990, waited)
			turn = s.log.turn("b", s.table.Pools["main"], 0, length, false)
		})
		return wait, turn
	}
	alone, _ := run(t, false, false)
	fair, turn := run(t, false, true)
	fifo, fifoTurn := run(t, true, true)
	t.Logf("wait p99 of b: alone %v, fair %v (a turn is %v), fifo %v (%v)", alone, fair, turn, fifo, fifoTurn)
	if most := alone*12/10 + turn; fair > most {
		t.Errorf("b waits %v, want at most %v", fair, most)
	}
	if most := alone*12/10 + fifoTurn; fifo < 2*most {
		t.Errorf("the control waits %v: within %v", fifo, most)
	}
}

// cO4: interactive calls come at 120 % of what the pool serves, and one batch call
// a second. Batch has a share of 20 %, 1.6 calls a second: so all of its calls are
// served, with a bounded wait. By FIFO its calls wait as the interactive ones do,
// and are fewer.
func TestCase_cO4(t *testing.T) {
	long(t)
	const length = 5 * time.Minute
	for _, o := range orders {
		t.Run(o.name, func(t *testing.T) {
			at(t, plan{
				backends: []backend{{steady(20 * time.Millisecond), route.Capacity{Concurrency: 16}}}, // 8 calls a second
				sharing: sched.Policy{FIFO: o.fifo, Classes: [sluice.NumClasses]sched.Class{
					sluice.Interactive: {Share: 800, Headroom: 100}, sluice.Batch: {Share: 200},
				}},
				queue:   route.QueueBounds{MaxWait: time.Hour},
				tenants: map[sluice.TenantID]sluice.Policy{"a": {}, "b": {}, "c": {Class: sluice.Batch}},
			}, func(t *testing.T, s *site) {
				c := s.crowd()
				for _, id := range []sluice.TenantID{"a", "b"} {
					c.every(length, func(i int) (ask, time.Duration) {
						return ask{tenant: id, in: 200, out: 100, whole: true}, time.Second / 48 * 10
					})
				}
				c.every(length, func(int) (ask, time.Duration) {
					return ask{tenant: "c", in: 200, out: 100, class: "batch", whole: true}, time.Second
				})
				time.Sleep(length)
				p := s.pool()
				got := c.all()
				s.served(got["c"])
				_, n := s.log.served("c", 0, length)
				wait := quantile(got["c"], 990, waited)
				t.Logf("of 300 batch calls %d were served in time, wait p99 %v; then waited %v", n, wait, p.ByClass)
				if within := n >= 295 && wait <= 5*time.Second && p.ByClass["batch"] <= 2; within == o.fifo {
					t.Errorf("%d batch calls served of 300, wait p99 %v", n, wait)
				}
				if a, b := p.ByClass["interactive"], p.ByClass["batch"]; !o.fifo && a < 300 || a+b != p.Waiting {
					t.Errorf("%d interactive and %d batch calls of %d wait: no overload", a, b, p.Waiting)
				}
			})
		})
	}
}

// Three tenants of weights 1, 2 and 4, with calls of different sizes, want more than
// there is: what they get is as their weights. By FIFO it is as they ask.
func TestWeights(t *testing.T) {
	long(t)
	const warm, length = 30 * time.Second, 5 * time.Minute
	for _, o := range orders {
		t.Run(o.name, func(t *testing.T) {
			at(t, plan{
				backends: []backend{
					{steady(10 * time.Millisecond), route.Capacity{Concurrency: 8}},
					{steady(10 * time.Millisecond), route.Capacity{Concurrency: 8}},
				},
				sharing: sched.Policy{FIFO: o.fifo},
				queue:   route.QueueBounds{MaxWait: time.Hour},
				tenants: map[sluice.TenantID]sluice.Policy{"one": {Weight: 1}, "two": {Weight: 2}, "four": {Weight: 4}},
			}, func(t *testing.T, s *site) {
				c := s.crowd()
				c.loop(24, length, ask{tenant: "one", in: 800, out: 400, whole: true})
				c.loop(24, length, ask{tenant: "two", in: 200, out: 100, whole: true})
				c.loop(24, length, ask{tenant: "four", in: 400, out: 200, whole: true})
				time.Sleep(length - time.Second)
				for _, f := range s.pool().Flows {
					due := map[string]float64{"one": 1. / 7, "two": 2. / 7, "four": 4. / 7}[f.Tenant]
					if !o.fifo && (math.Abs(f.FairShare-due) > 0.001 || math.Abs(f.Share-due) > 0.05) {
						t.Errorf("the status gives %s a share of %.3f, due %.3f; want %.3f", f.Tenant, f.Share, f.FairShare, due)
					}
				}
				for _, gs := range c.all() {
					s.served(gs)
				}
				one, _ := s.log.served("one", warm, length)
				two, _ := s.log.served("two", warm, length)
				four, _ := s.log.served("four", warm, length)
				x, y := float64(two)/float64(one), float64(four)/float64(one)
				t.Logf("served 1 : %.3f : %.3f", x, y)
				if within := x > 1.94 && x < 2.06 && y > 3.88 && y < 4.12; within == o.fifo {
					t.Errorf("served 1 : %.3f : %.3f, want 1 : 2 : 4", x, y)
				}
			})
		})
	}
}

// What needs more prefill than any backend has starts on one that is idle, whatever
// the others do: it takes no more of the pool than that one.
func TestLargePromptTakesAnIdleBackend(t *testing.T) {
	slow := fleet.Profile{PrefillRate: 1000, StepBase: 10 * time.Millisecond, Slots: 64}
	one := backend{slow, route.Capacity{Concurrency: 64, PrefillTokens: 6000}}
	at(t, plan{backends: []backend{one, one, one}, tenants: map[sluice.TenantID]sluice.Policy{"a": {}, "b": {}}}, func(t *testing.T, s *site) {
		c := s.crowd()
		c.send(ask{tenant: "a", in: 5000, out: 10}) // for 5 s
		time.Sleep(time.Second)
		c.send(ask{tenant: "b", in: 20_000, out: 10})
		got := c.all()
		s.served(got["a"])
		s.served(got["b"])
		if wait := got["b"][0].queued; wait > 0 {
			t.Errorf("it waits %v beside two idle backends", wait)
		}
	})
}
