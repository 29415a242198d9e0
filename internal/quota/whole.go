package quota

import (
	"math"
	"time"

	"sluice"
)

// A run gets nothing back, so that what a request takes beyond its hold is taken from
// the requests to come. Rates hold the output that is expected and wait a debt out; a
// run holds all that the request may have, as told by [Reservation.Bound]. So requests
// that run at one time do not exceed it together.

// whole reports whether a limit is one of a run on output, or on all tokens.
func whole(l *sluice.Limit) bool {
	return l.Window == sluice.PerRun && l.Amount > 0 && (l.Dimension == sluice.OutputTokens || l.Dimension == sluice.AllTokens)
}

// Whole reports whether the output of the request is held whole.
func (r *Reservation) Whole() bool {
	for n, a := range r.Accounts() {
		if a.terms.whole && !r.isShadow(n) {
			return true
		}
	}
	return false
}

// ofRun is what a request that needs so much takes of a run.
func (r *Reservation) ofRun(need *Amounts) Amounts {
	of := *need
	if more := r.most[sluice.OutputTokens] - need[sluice.OutputTokens]; more > 0 {
		of[sluice.OutputTokens] = add(of[sluice.OutputTokens], more)
		of[sluice.AllTokens] = add(of[sluice.AllTokens], more)
	}
	return of
}

// needOf is what a request takes of a limit, of what it needs and of that as a run
// takes it.
func needOf(l *rate, need, ofRun *Amounts) int64 {
	if l.Window == sluice.PerRun {
		return ofRun[l.Dimension]
	}
	return need[l.Dimension]
}

// ofRun is likewise, of what is asked.
func (of *asks) ofRun() asks {
	out := *of
	if o := &out[sluice.OutputTokens]; o.most > o.need {
		all := &out[sluice.AllTokens]
		all.need = add(all.need, o.most-o.need)
		o.need = o.most
	}
	return out
}

// OutputRoom is how much output a request with so much input could hold of its run:
// what it holds already, and what is free. limited is false where no bound of a run on
// output, or on all tokens, applies; to one that holds, a bound that came later does not.
func (b *Book) OutputRoom(now time.Time, r *Reservation, input int64) (room int64, limited bool) {
	b.advance(now)
	room = math.MaxInt64
	for n, a := range r.Accounts() {
		if !a.terms.whole || r.isShadow(n) {
			continue
		}
		a.refresh(b.tick, &b.calendar)
		for i := range a.terms.rates {
			l := &a.terms.rates[i]
			if !whole(&l.Limit) {
				continue
			}
			most := max(0, a.counters[l.at].free(l))
			if h := r.holdOf(n, int(l.at)); h != nil {
				most = min(add(most, h.amount), l.Amount)
			} else if len(r.holds) > 0 {
				continue
			}
			if l.Dimension == sluice.AllTokens {
				most = max(0, most-input)
			}
			room, limited = min(room, most), true
		}
	}
	return room, limited
}
