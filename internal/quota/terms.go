package quota

import (
	"slices"

	"sluice"
)

// terms is an account's limits, as what is done at every request reads them. They do
// not change: an account whose limits do takes others. So accounts of one policy share
// them, and they stay in the caches.
type terms struct {
	rates  []rate           // those that have a counter, in the order of rows and of an account's counters
	usual  bool             // each of them is a bucket or a span, and every bucket has a limit
	gauges [numGauges]int64 // those of gauges, 0 if there is none
	rows   []sluice.Limit   // all, gauges too; the policy's slice where the two agree
}

// rate is a limit that has a counter.
type rate struct {
	sluice.Limit
	slow uint64 // how long a unit takes it, rounded up: see slowness
	row  int32  // in rows
	how  counting
}

// counting is how a counter counts.
type counting uint8

const (
	byBucket  counting = iota // second, minute
	bySpan                    // a fixed window, or a run
	byRunTime                 // a span too, of time: nothing takes of it
	inFlight                  // no window: what is held
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
	t := &terms{rows: rows, rates: make([]rate, 0, rates(rows)), usual: true}
	for i := range rows {
		if l := &rows[i]; l.Dimension.Gauge() {
			t.gauges[gaugeOf(l.Dimension)] = l.Amount
		} else {
			how := countingOf(l)
			t.rates = append(t.rates, rate{Limit: *l, slow: slowness(l), row: int32(i), how: how})
			t.usual = t.usual && (how == bySpan || how == byBucket && l.Amount > 0)
		}
	}
	return t
}

// unlimited are the terms of an account of which nothing is known yet.
var unlimited = &terms{}

// counter is the rate and the counter of a row that is not a gauge's.
func (a *Account) counter(row int) (*rate, *counter) {
	i := a.terms.of(row)
	return &a.terms.rates[i], &a.counters[i]
}

// of is where the rate of a row is that is not a gauge's, and an account's counter for it.
func (t *terms) of(row int) int {
	return slices.IndexFunc(t.rates, func(l rate) bool { return int(l.row) == row })
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
