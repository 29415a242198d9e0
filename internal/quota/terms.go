package quota

import (
	"slices"

	"sluice"
)

// terms is an account's limits, as what is done at every request reads them. They do
// not change: an account whose limits do takes others. So accounts of one policy share
// them, and they stay in the caches.
type terms struct {
	rows  []sluice.Limit // all, gauges too; the policy's slice where the two agree
	rates []rate         // of those that have a counter, in the order of the counters
}

// rate is a limit that has a counter.
type rate struct {
	sluice.Limit
	how counting
	row int32 // in rows
}

// counting is how a counter counts.
type counting uint8

const (
	inFlight  counting = iota // no window: what is held
	byBucket                  // second, minute
	bySpan                    // a fixed window, or a run
	byRunTime                 // a span too, of time: nothing takes of it
)

func countingOf(l *sluice.Limit) counting {
	switch {
	case l.Dimension == sluice.RunTime:
		return byRunTime
	case bucket(l.Window):
		return byBucket
	case spans(l.Window):
		return bySpan
	}
	return inFlight
}

func newTerms(rows []sluice.Limit) *terms {
	t := &terms{rows: rows, rates: make([]rate, 0, rates(rows))}
	for i := range rows {
		if l := &rows[i]; !l.Dimension.Gauge() {
			t.rates = append(t.rates, rate{*l, countingOf(l), int32(i)})
		}
	}
	return t
}

// unlimited are the terms of an account of which nothing is known yet.
var unlimited = &terms{}

// counter is the rate and the counter of a row that is not a gauge's.
func (a *Account) counter(row int) (*rate, *counter) {
	i := slices.IndexFunc(a.terms.rates, func(l rate) bool { return int(l.row) == row })
	return &a.terms.rates[i], &a.counters[i]
}

// mostTerms bounds how many terms a book remembers to be shared.
const mostTerms = 4096

// termsOf are the terms of a policy's limits.
func (b *Book) termsOf(limits []sluice.Limit) *terms {
	first := &limits[0]
	if t := b.terms[first]; t != nil && len(t.rows) == len(limits) {
		return t
	}
	if len(b.terms) >= mostTerms { // of policies that may be long gone
		clear(b.terms)
	}
	t := newTerms(limits)
	b.terms[first] = t
	return t
}

// agree makes rows the account's: the terms of the policy's limits where they are the
// same.
func (b *Book) agree(a *Account, rows []sluice.Limit) {
	if limits := a.more.limits; len(rows) > 0 && slices.Equal(rows, limits) {
		a.terms = b.termsOf(limits)
		return
	}
	a.terms = newTerms(rows)
}
