package engine

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// Observe takes a signal about a backend. Call Advance next.
func (e *Engine) Observe(now time.Time, s Signal) {
	now = e.tick(now)
	pl := e.places[s.Backend]
	if pl == nil {
		return
	}
	for _, h := range s.Rates {
		pl.Hint(now, s.Key, h)
	}
	if s.Limited {
		pl.Limited(now, s.Key, s.Pause, len(s.Rates) > 0)
	}
	if s.Overloaded {
		pl.Overloaded(now)
	}
	if s.Load != nil {
		pl.Loaded(now, *s.Load)
	}
	changed := false
	if s.Pause > 0 && !s.Limited && !s.Spent { // a refused attempt pauses its backend or its credential when it ends
		pl.Pause(now, s.Pause)
		changed = true
	}
	if s.Probed {
		changed = pl.Probed(now, s.Healthy) || changed
	}
	if s.Refused {
		changed = pl.Refused(now, s.Key, s.Everywhere) || changed
	}
	if s.Spent {
		changed = pl.Spent(now, s.Key, s.Pause) || changed
	}
	if changed {
		e.healthChanged(now)
	}
}

// spent tells a running request's place what its attempt took: all that the request
// did, less what earlier attempts were charged.
func (e *Engine) spent(now time.Time, r *request, a *Actual) {
	if r.phase != running {
		return
	}
	before := r.res.Posted()
	in, out := a.Usage.InputTotal()-sluice.Tokens(before[sluice.InputTokens]), a.Usage.OutputTotal()-sluice.Tokens(before[sluice.OutputTokens])
	if a.Reason == sluice.ReasonNone && !r.call.Free {
		r.place.Completed(now, r.taken, max(0, out), r.call.Choices)
	}
	r.taken.Spent(in, out, a.Reason)
}

// paced is the earliest that the rates of a pool's backends have room for something
// that they had none for.
func (p *pool) paced(now time.Time) (at time.Time, ok bool) {
	for _, pl := range p.places {
		if t, is := pl.PacedUntil(now); is && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

// describe adds what is known of a backend's capacity.
func (b *BackendView) describe(now time.Time, pl *route.Place) {
	b.Adaptive, b.TokenTime = pl.Adaptive()
	b.KVCapacity = pl.KVCapacity()
	b.KVPermille, b.LoadAge = pl.Told(now)
	for r := range route.Rate(route.NumRates) {
		if left, all, known := pl.RateLeft(now, r); known {
			b.Rates = append(b.Rates, RateView{r, left, all})
		}
	}
}
