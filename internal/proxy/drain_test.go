package proxy

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// drainRig is a provider that does not stop, and what is told of its answers.
type drainRig struct {
	*rig
	mu   sync.Mutex
	told []string
	gone []time.Duration // when the provider saw its caller leave, from the start
	from time.Time
}

var usual = upstream.Drain{For: 30 * time.Second, Bytes: 1 << 20, AtOnce: 2}

// inDrain runs f with a provider that answers by h. Its key may run one at a time.
func inDrain(t *testing.T, h http.Handler, change func(*setup), f func(t *testing.T, r *drainRig)) {
	t.Helper()
	d := &drainRig{}
	s := setup{places: []place{{runsOn: true, drain: usual, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done := context.AfterFunc(r.Context(), func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.gone = append(d.gone, time.Since(d.from))
		})
		defer done()
		h.ServeHTTP(w, r)
	})}}}
	s.hooks.Drained = func(_ sluice.ProviderID, result string, _ time.Duration) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.told = append(d.told, result)
	}
	s = gauge(s)
	if change != nil {
		change(&s)
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		d.rig, d.from = r, time.Now()
		f(t, d)
		if len(r.x.Drains()) != 0 {
			t.Errorf("left: %v", r.x.Drains())
		}
	})
}

// leaves asks, and leaves after a while.
func (r *drainRig) leaves(t *testing.T, a ask, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	a.ctx = ctx
	r.do(a)
	synctest.Wait()
}

func (r *drainRig) results() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.told...)
}

func (r *drainRig) wantOne(t *testing.T, result string, source sluice.UsageSource) Record {
	t.Helper()
	rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
	if got := r.results(); len(got) != 1 || got[0] != result {
		t.Errorf("told %v, want %s", got, result)
	}
	if rec.Usage.Source != source || rec.Final.Usage != rec.Usage {
		t.Errorf("got the usage %+v, want it %v", rec.Usage, source)
	}
	return rec
}

// What a provider that does not stop bills is learned from the rest of its answer,
// while the caller's slot and the backend's are free at once, and charged once.
func TestDrain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		talk  talk
		ask   ask
		leave time.Duration
	}{
		{"in mid-stream", talk{chunks: 10, gap: time.Second, usage: usage(9, 10)}, ask{stream: true}, 3500 * time.Millisecond},
		{"before the first content", talk{first: 5 * time.Second, chunks: 10, usage: usage(9, 10)}, ask{stream: true}, time.Second},
		{"before the headers", talk{before: 5 * time.Second, chunks: 10, usage: usage(9, 10)}, ask{stream: true}, time.Second},
		{"in one piece", talk{before: 5 * time.Second, chunks: 10, usage: usage(9, 10)}, ask{}, time.Second},
	} {
		for _, hard := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				inDrain(t, tt.talk, func(s *setup) { s.policy.HardSpend, s.places[0].slots = hard, 1 }, func(t *testing.T, r *drainRig) {
					r.leaves(t, tt.ask, tt.leave)
					if v := r.gate.Dump(1); v.Running != 0 || v.Open != 1 || r.x.Drains()["p"] != 1 {
						t.Errorf("%d run, %d open, %v are drained", v.Running, v.Open, r.x.Drains())
					}
					began := time.Now()
					if g := r.do(ask{}); g.status != 200 {
						t.Errorf("the next got %d %s", g.status, g.body)
					}
					if q := r.last().Final.Queued; q > 0 {
						t.Errorf("the next waited %v", q)
					}
					time.Sleep(time.Minute - time.Since(began))
					synctest.Wait()
					r.mu.Lock()
					if len(r.gone) > 0 {
						t.Errorf("the provider was cut after %v", r.gone)
					}
					r.mu.Unlock()
					for _, e := range r.journal.entries {
						if e.Reason == sluice.ClientGone {
							if e.Usage.Source != sluice.UsageDrained || e.Usage.Output != 10 || e.Usage.Input != 9 || e.Cost != e.CostHigh || !e.Final || e.Late {
								t.Errorf("got the entry %+v", e)
							}
						}
					}
					if got := r.results(); len(got) != 1 || got[0] != exchange.DrainWhole {
						t.Errorf("told %v", got)
					}
				})
			})
		}
	}
}

// Bounds: of time, of bytes, of how many at a time; beyond them it is estimated.
func TestDrainIsBounded(t *testing.T) {
	slow := talk{chunks: 100, gap: time.Second, usage: usage(9, 100)}
	t.Run("time", func(t *testing.T) {
		inDrain(t, slow, nil, func(t *testing.T, r *drainRig) {
			r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
			time.Sleep(usual.For + time.Second)
			rec := r.wantOne(t, exchange.DrainTime, sluice.UsageEstimated)
			if rec.Usage.Output < 33 {
				t.Errorf("charged %d of 33 that were seen", rec.Usage.Output)
			}
			if len(r.gone) != 1 || r.gone[0] != usual.For+3500*time.Millisecond {
				t.Errorf("the provider was left after %v", r.gone)
			}
		})
	})
	t.Run("bytes", func(t *testing.T) {
		inDrain(t, slow, func(s *setup) { s.places[0].drain.Bytes = 1000 }, func(t *testing.T, r *drainRig) {
			r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
			time.Sleep(20 * time.Second)
			r.wantOne(t, exchange.DrainBytes, sluice.UsageEstimated)
		})
	})
	t.Run("at once", func(t *testing.T) {
		inDrain(t, slow, func(s *setup) { s.policy.Limits = [sluice.NumScopes][]sluice.Limit{} }, func(t *testing.T, r *drainRig) {
			for range 3 {
				r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
			}
			if got := r.results(); len(got) != 1 || got[0] != exchange.DrainFull || r.x.Drains()["p"] != 2 {
				t.Errorf("told %v, %v are drained", got, r.x.Drains())
			}
			r.want(sluice.Cancelled, sluice.ClientGone, 499)
			time.Sleep(usual.For + time.Second)
		})
	})
	t.Run("it breaks", func(t *testing.T) {
		inDrain(t, talk{chunks: 10, gap: time.Second, end: "cut"}, nil, func(t *testing.T, r *drainRig) {
			r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
			time.Sleep(20 * time.Second)
			if rec := r.wantOne(t, exchange.DrainCut, sluice.UsageEstimated); rec.Usage.Output < 10 {
				t.Errorf("charged %d of 10 that were seen", rec.Usage.Output)
			}
		})
	})
	t.Run("no usage told", func(t *testing.T) {
		inDrain(t, talk{chunks: 10, gap: time.Second}, nil, func(t *testing.T, r *drainRig) {
			r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
			time.Sleep(20 * time.Second)
			if rec := r.wantOne(t, exchange.DrainWhole, sluice.UsageEstimated); rec.Usage.Output < 10 || rec.Usage.Output > 30 {
				t.Errorf("charged %d of 10 that were seen", rec.Usage.Output)
			}
		})
	})
}

// Providers that stop are never drained, nor is what has not been sent, nor a copy.
func TestNotDrained(t *testing.T) {
	slow := talk{chunks: 100, gap: time.Second, usage: usage(9, 100)}
	for name, change := range map[string]func(*setup){
		"stops": func(s *setup) { s.places[0].runsOn = false },
		"off":   func(s *setup) { s.places[0].drain = upstream.Drain{} },
	} {
		t.Run(name, func(t *testing.T) {
			inDrain(t, slow, change, func(t *testing.T, r *drainRig) {
				r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
				r.want(sluice.Cancelled, sluice.ClientGone, 499)
				if len(r.gone) != 1 || r.gone[0] > 3600*time.Millisecond || len(r.results()) != 0 {
					t.Errorf("the provider was left after %v, told %v", r.gone, r.results())
				}
			})
		})
	}
	t.Run("not sent", func(t *testing.T) {
		inDrain(t, slow, func(s *setup) { s.places[0].hole = true }, func(t *testing.T, r *drainRig) {
			r.leaves(t, ask{stream: true}, time.Second)
			if rec := r.want(sluice.Cancelled, sluice.ClientGone, 499); rec.Usage.Source != sluice.UsageNone {
				t.Errorf("got %+v", rec.Usage)
			}
		})
	})
}

// A client that reads too slowly is one that has left.
func TestDrainOfAStalledClient(t *testing.T) {
	inDrain(t, talk{chunks: 9000, usage: usage(9, 9000)}, func(s *setup) { s.buffer, s.places[0].drain.Bytes = 4<<10, 8<<20 }, func(t *testing.T, r *drainRig) {
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(DefaultWriteStall + time.Second)
		rec := r.last()
		resp.Body.Close()
		if rec.Final.Reason != sluice.ClientStalled || rec.Usage.Source != sluice.UsageDrained || rec.Usage.Output != 9000 {
			t.Errorf("got %v %+v", rec.Final.Reason, rec.Usage)
		}
	})
}

// The end of the gateway ends what is drained at once: it is settled by the estimate.
func TestDrainAtShutdown(t *testing.T) {
	inDrain(t, talk{chunks: 100, gap: time.Second, usage: usage(9, 100)}, nil, func(t *testing.T, r *drainRig) {
		r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
		began := time.Now()
		r.x.Close()
		if time.Since(began) > 0 {
			t.Errorf("it took %v", time.Since(began))
		}
		r.wantOne(t, exchange.DrainStop, sluice.UsageEstimated)
		r.leaves(t, ask{stream: true}, 3500*time.Millisecond)
		if got := r.results(); len(got) != 2 || got[1] != exchange.DrainStop {
			t.Errorf("told %v", got)
		}
	})
}

// An attempt that has won a race is drained as any; while it races it is not.
func TestDrainAfterARace(t *testing.T) {
	for _, leave := range []time.Duration{1500 * time.Millisecond, 4500 * time.Millisecond} {
		inDrain(t, talk{first: 3 * time.Second, chunks: 10, gap: time.Second, usage: usage(9, 10)}, func(s *setup) {
			s.hedge = &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true, true, true}}
			s.policy.Limits = [sluice.NumScopes][]sluice.Limit{}
			s.places = append(s.places, s.places[0])
		}, func(t *testing.T, r *drainRig) {
			r.leaves(t, ask{stream: true}, leave)
			time.Sleep(30 * time.Second)
			want := sluice.UsageEstimated
			if leave > 3*time.Second {
				want = sluice.UsageDrained
			}
			if rec := r.want(sluice.Cancelled, sluice.ClientGone, 499); rec.Final.Usage.Source != want {
				t.Errorf("left after %v: got %+v, told %v", leave, rec.Final.Usage, r.results())
			}
		})
	}
}
