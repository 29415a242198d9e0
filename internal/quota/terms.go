package quota

import (
	"cmp"
	"slices"

	"sluice"
)

// terms is an account's limits, as what is done at every request reads them. They do
// not change: an account whose limits do takes others. So accounts of one policy share
// them, and they stay in the caches.
type terms struct {
	rates  []rate           // those that have a counter: buckets, then spans, then the others, which are few
	spans  int              // where in rates those begin
	others int              // likewise
	whole  bool             // they bound the output of a run, which it holds whole
	gauges [numGauges]int64 // those of gauges, 0 if there is none
	rows   []sluice.Limit   // all, gauges too; the policy's slice where the two agree
}

// rate is a limit that has a counter.
type rate struct {
	sluice.Limit
	period uint64 // of a bucket
	row    int32  // in rows
	at     uint8  // in the counters of an account: they are in the order of rows
	how    counting
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
	t := &terms{rows: rows, rates: make([]rate, 0, rates(rows))}
	for i := range rows {
		l := &rows[i]
		t.whole = t.whole || whole(l)
		if l.Dimension.Gauge() {
			t.gauges[gaugeOf(l.Dimension)] = l.Amount
		} else {
			t.rates = append(t.rates, rate{Limit: *l, period: period(l.Window), row: int32(i), at: uint8(len(t.rates)), how: countingOf(l)})
		}
	}
	slices.SortStableFunc(t.rates, func(a, b rate) int { return cmp.Compare(a.group(), b.group()) })
	for i := range t.rates {
		switch t.rates[i].group() {
		case 0:
			t.spans++
			fallthrough
		case 1:
			t.others++
		}
	}
	return t
}

// group orders rates: buckets that have a limit, spans, the others.
func (l *rate) group() int {
	switch {
	case l.how == byBucket && l.Amount > 0:
		return 0
	case l.how == bySpan:
		return 1
	}
	return 2
}

// unlimited are the terms of an account of which nothing is known yet.
var unlimited = &terms{}

// counter is the rate and the counter of a row that is not a gauge's.
func (a *Account) counter(row int) (*rate, *counter) {
	l := &a.terms.rates[a.terms.of(row)]
	return l, &a.counters[l.at]
}

// of is where the rate of a row is that is not a gauge's.
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
