package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
)

// An answer that nobody saw is charged for what the time lets expect, and in the
// sum that is what the provider made of it.
func TestUnseenOutputIsChargedByTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stream bool
		text   string // %d is the length
		least  int    // length
		runsOn bool
		calls  int // of which the first 40 are answered
		leave  func(r *rand.Rand, n int) time.Duration
		off    float64 // in the sum, in per cent
	}{
		{"in one piece", false, "[[tokens=%d]]", 20, false, 110, func(r *rand.Rand, n int) time.Duration {
			return time.Duration(float64(n)*r.Float64()*7e6) + 50*time.Millisecond
		}, 5},
		{"in one piece, before it has begun", false, "[[delay=5s!tokens=%d]]", 20, false, 110, func(*rand.Rand, int) time.Duration { return time.Second }, 0},
		{"in one piece, of one that runs on", false, "[[tokens=%d]]", 20, true, 400, func(r *rand.Rand, _ int) time.Duration {
			return time.Duration(50+r.IntN(1500)) * time.Millisecond
		}, 7}, // two thirds are cut: without learning from these, 15 % low
		{"a stream of one that runs on", true, "[[tokens=%d]]", 20, true, 400, func(r *rand.Rand, _ int) time.Duration {
			return time.Duration(50+r.IntN(1500)) * time.Millisecond
		}, 7},
		{"thinking in hiding", true, "[[reasoning=400!tokens=%d]]", 420, false, 110, func(r *rand.Rand, _ int) time.Duration {
			return time.Duration(r.IntN(6000)) * time.Millisecond
		}, 5},
		{"a stream that shows all", true, "[[first=2s!tokens=%d]]", 20, false, 110, func(*rand.Rand, int) time.Duration { return time.Second }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p *fakellm.Server
			before := func(t *testing.T, s *setup) {
				made, err := fakellm.New(fakellm.Options{Models: []fakellm.Model{{Name: "up", Ratio: 1100, RunsOn: tt.runsOn}}, Seed: 7})
				if err != nil {
					t.Fatal(err)
				}
				p, s.places[0].handler = made, made
			}
			inBubble(t, setup{places: []place{{runsOn: tt.runsOn}}, before: before}, func(t *testing.T, r *rig) {
				defer p.Close()
				rnd := rand.New(rand.NewPCG(3, 4))
				for i := range tt.calls {
					n := tt.least + rnd.IntN(300)
					a := chat(tt.stream, fmt.Sprintf(tt.text, n))
					ctx, cancel := context.WithCancel(t.Context())
					if i >= 40 {
						time.AfterFunc(tt.leave(rnd, n), cancel)
					}
					a.ctx = ctx
					r.do(a)
					cancel()
					time.Sleep(10 * time.Second)
				}
				var got sluice.Tokens
				r.journal.mu.Lock()
				defer r.journal.mu.Unlock()
				for _, e := range r.journal.entries {
					if e.Outcome == sluice.Cancelled {
						got += e.Usage.OutputTotal()
					}
				}
				var want sluice.Tokens
				cancelled := 0
				for _, e := range p.Account(fakellm.Filter{End: fakellm.EndCancelled}).Served {
					want += e.Output
					cancelled++
				}
				off := float64(got - want)
				if want > 0 {
					off *= 100 / float64(want)
				}
				t.Logf("%d cancelled: charged %d, the provider %d (%+.1f %%)", cancelled, got, want, off)
				if cancelled < 40 || off > tt.off || off < -tt.off {
					t.Errorf("%d cancelled, %+.1f %% off", cancelled, off)
				}
			})
		})
	}
}

// A request that is given up while it waits for a connection has cost nothing.
func TestGivenUpBeforeItWasSent(t *testing.T) {
	inBubble(t, setup{places: []place{{hole: true}}}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.do(ask{ctx: ctx})
		rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
		if rec.Final.Attempt != 1 || rec.Usage != (sluice.Usage{}) || rec.Cost != 0 {
			t.Errorf("took %+v", rec.Final)
		}
	})
}
