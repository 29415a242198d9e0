package jobs

import (
	"time"

	"sluice"
)

// Hold is a limit of a job's caller that is spent, and that lines of it wait for.
type Hold struct {
	Since     time.Time        `json:"since"`
	Until     time.Time        `json:"until"` // when the limit's window ends: what it refuses runs no sooner
	Reason    sluice.Reason    `json:"reason"`
	Scope     sluice.Scope     `json:"scope"`
	ID        string           `json:"id,omitempty"` // whose limit: the key, project or tenant
	Dimension sluice.Dimension `json:"dimension"`
	Window    sluice.Window    `json:"window"`
	Rate      float64          `json:"rate,omitempty"` // lines that had ended per second before; 0 if that is not known
}

// holdOf is the hold of a refusal, nil if it is none: it passes in a while, or nobody knows
// when.
func holdOf(e *sluice.Error, now time.Time, rate float64) *Hold {
	r := e.Refusal
	if e.Kind != sluice.KindBudgetExhausted || e.Reason == sluice.BudgetHeld || r == nil || !r.Reset.After(now) {
		return nil
	}
	return &Hold{
		Since: now, Until: r.Reset.UTC(), Reason: e.Reason, Scope: r.Scope, ID: r.ID,
		Dimension: r.Limit.Dimension, Window: r.Limit.Window, Rate: rate,
	}
}

// on reports whether lines wait for it at a time.
func (h *Hold) on(now time.Time) bool { return h != nil && now.Before(h.Until) }

// same reports whether another refusal is by the same limit, in the same window.
func (h *Hold) same(o *Hold) bool {
	return h != nil && h.Until.Equal(o.Until) && h.Scope == o.Scope && h.ID == o.ID && h.Dimension == o.Dimension && h.Window == o.Window
}

// held is a change of a job's hold that the store has not been told of.
type held struct{ to *Hold }

// meets learns of a refusal, or of a line that ran though there was one. REQUIRES: crew.mu
// is held.
func (w *work) meets(out *outcome, now time.Time) {
	is := w.job.Held
	if w.held != nil {
		is = w.held.to
	}
	switch {
	case out.refused != nil:
		if h := holdOf(out.refused, now, w.pace.rate()); h != nil && !is.same(h) {
			if h.Rate == 0 && is != nil {
				h.Rate = is.Rate
			}
			w.held = &held{h}
		}
	case is != nil && out.Result != nil && out.Result.State == LineSucceeded && out.began.After(is.Since):
		w.held = &held{} // there is room again
	}
}

// finish is when the last of some lines is predicted to end: at the pace that they had
// before, from the time on at which the limit begins anew. Zero if nothing can be said.
func (h *Hold) finish(rate float64, open int) time.Time {
	if h.Rate > 0 {
		rate = h.Rate
	}
	return finishAt(h.Until, rate, open)
}
