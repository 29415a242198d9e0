package quota

import (
	"slices"
	"time"

	"sluice"
	"sluice/internal/byname"
)

// Amounts is one figure for each dimension.
type Amounts [sluice.NumDimensions]int64

// Claim is one scope's part of a request: whose account, and the limits that
// its policy gives it. No limits means unlimited.
type Claim struct {
	Owner  Owner
	Limits []sluice.Limit
	// Asked tightens the limits of a run, for this request and those after it.
	// It loosens nothing.
	Asked []sluice.Limit
	// Shadow lets in what does not fit, and tells: see Reservation.Would.
	Shadow bool
}

// MaxClaims bounds the scopes of one reservation.
const MaxClaims = 8

// The bounds of accounts that callers name: users and runs.
const (
	// MaxLabelled bounds them in all, MaxLabelledOf those of one tenant.
	MaxLabelled   = 1 << 18
	MaxLabelledOf = MaxLabelled / 4
	// RunIdle is how long a run without requests is remembered, or as long as
	// its time where that is more.
	RunIdle = 24 * time.Hour
)

// Book is all accounts. It is not safe for concurrent use.
type Book struct {
	accounts byname.Index[Owner, Account, owners]
	order    []*Account // in no order that matters; what the hand goes over
	hand     int        // the next account to be looked at for eviction
	base     time.Time  // the first moment seen; ticks count from it
	tick     int64      // nanoseconds since base, never going back
	seen     time.Time  // the last moment that was passed
	calendar calendar
	terms    map[*sluice.Limit]*terms // of policies, by their first limits

	made         uint64         // accounts, ever
	labelled     int            // accounts that callers name
	labelledOf   map[string]int // of each tenant that has any
	most, mostOf int            // their bounds
}

// NewBook makes an empty book.
func NewBook() *Book {
	return &Book{terms: make(map[*sluice.Limit]*terms), labelledOf: make(map[string]int), most: MaxLabelled, mostOf: MaxLabelledOf}
}

// Bound sets other bounds than MaxLabelled and MaxLabelledOf. Accounts that are
// there stay.
func (b *Book) Bound(all, ofTenant int) { b.most, b.mostOf = all, ofTenant }

// Len is how many accounts are in memory.
func (b *Book) Len() int { return len(b.order) }

// advance takes the time. A step back, of the wall clock or of a caller that
// passes an older moment, changes nothing: no bucket refills by it and no window
// reopens.
func (b *Book) advance(now time.Time) {
	if now == b.seen && !b.base.IsZero() {
		return // the steps of a request come at one moment
	}
	b.seen = now
	if b.base.IsZero() {
		b.base = now
	}
	b.tick = max(b.tick, int64(now.Sub(b.base)))
	b.calendar.advance(now)
}

// Open finds or creates the accounts of a reservation, once per request, and
// brings their limits up to date. It reports whether a limit of an account that
// existed has changed. r must be new or closed. At most MaxClaims claims.
func (b *Book) Open(now time.Time, r *Reservation, claims []Claim) (changed bool) {
	b.advance(now)
	r.reset()
	r.state = open
	for i := range claims {
		c := &claims[i]
		a, differs := b.find(c)
		changed = changed || differs
		if a == nil {
			continue
		}
		if a.owner.Scope == sluice.ScopeRun {
			a.used = b.tick
		}
		a.refs++
		if c.Shadow {
			r.shadow |= 1 << r.claims
		}
		r.accounts[r.claims], r.scopes[r.claims] = a, c.Owner.Scope
		r.claims++
	}
	return changed
}

// find returns a claim's account, nil if it has no limits and never had. A
// label beyond the bound gets the account that its tenant's further ones share.
func (b *Book) find(c *Claim) (a *Account, changed bool) {
	a = b.accounts.Find(c.Owner)
	if a == nil {
		if len(c.Limits) == 0 && len(c.Asked) == 0 {
			return nil, false
		}
		a = b.create(c.Owner, max(rates(c.Limits), rates(c.Asked)))
		if a.terms == unlimited {
			b.configure(a, c)
			return a, false
		}
	}
	if a.configured(c) {
		return a, false
	}
	a.refresh(b.tick, &b.calendar)
	b.configure(a, c)
	return a, true
}

// create makes an account, most likely of so many counters, or finds the shared one
// where there is no room.
func (b *Book) create(o Owner, counters int) *Account {
	b.evict(2)
	if b.full(o) {
		o = o.further()
		if a := b.accounts.Find(o); a != nil {
			return a
		}
	}
	b.made++
	a := newAccount(o, counters, b.tick)
	b.accounts.Add(a)
	b.order = append(b.order, a)
	b.count(o, 1)
	return a
}

// full reports whether there is no room for an account of a label's own.
func (b *Book) full(o Owner) bool {
	return o.labelled() && (b.labelled >= b.most || b.labelledOf[o.ID] >= b.mostOf)
}

// count keeps the number of accounts that callers name.
func (b *Book) count(o Owner, n int) {
	if !o.labelled() || o.Part == furtherPart {
		return
	}
	b.labelled += n
	if b.labelledOf[o.ID] += n; b.labelledOf[o.ID] == 0 {
		delete(b.labelledOf, o.ID)
	}
}

// evict looks at the next n accounts and forgets those at rest. As every new
// account pays for looking at two, the book holds at most about twice the
// accounts that are not at rest, plus those that were there when the last one
// was created.
func (b *Book) evict(n int) {
	for range min(n, len(b.order)) {
		if b.hand >= len(b.order) {
			b.hand = 0
		}
		at := b.hand
		b.hand++ // past the one that moves here too: the newest is never at rest
		a := b.order[at]
		a.refresh(b.tick, &b.calendar)
		if !a.atRest(b.tick) {
			continue
		}
		last := len(b.order) - 1
		b.order[at] = b.order[last]
		b.order[last] = nil
		b.order = b.order[:last]
		b.accounts.Remove(a)
		b.count(a.owner, -1)
		a.forget()
	}
}

// Charge posts what was used outside any reservation, in the windows of at:
// holds found open at start. Limits do not refuse it; buckets go into debt.
func (b *Book) Charge(now, at time.Time, claims []Claim, actual Amounts) {
	b.advance(now)
	for i := range claims {
		a, _ := b.find(&claims[i])
		if a == nil {
			continue
		}
		a.began(b.tick - int64(now.Sub(at)))
		a.refresh(b.tick, &b.calendar)
		for j := range a.terms.rates {
			if l := &a.terms.rates[j]; l.how != byRunTime {
				a.counters[l.at].settle(l, 0, actual[l.Dimension], windowOf(&l.Limit, at))
			}
		}
	}
}

// Seed adds to what the window of at has taken, before the owner's limits are
// known: the counter starts to refuse when a policy brings its limit. A window
// that is past changes nothing. Of a run's time, at is when the run began.
func (b *Book) Seed(now, at time.Time, o Owner, l sluice.Limit) {
	b.advance(now)
	if !spans(l.Window) || l.Amount <= 0 {
		return
	}
	a := b.accounts.Find(o)
	if a == nil {
		a = b.create(o, 1)
	}
	rows := a.ensure(slices.Clone(a.terms.rows), sluice.Limit{Dimension: l.Dimension, Window: l.Window})
	a.terms = newTerms(rows)
	if l.Dimension == sluice.RunTime {
		a.began(b.tick - int64(now.Sub(at)))
		return
	}
	a.refresh(b.tick, &b.calendar)
	for i := range a.terms.rates {
		if t := &a.terms.rates[i]; t.Dimension == l.Dimension && t.Window == l.Window {
			a.counters[t.at].settle(t, 0, l.Amount, windowOf(&t.Limit, at))
		}
	}
}

// Introduce is Seed for a limit of a fixed window that comes into force while requests
// run: it makes the counter with what the window of at has taken. A counter that is there
// is left as it is, since it has counted all along, so that there must be one figure for
// each; and so is the account that labels without room of their own share. It reports
// whether it made one. Call it before the limit is in force: what is admitted between the
// figure and the counter is in neither.
func (b *Book) Introduce(now, at time.Time, o Owner, l sluice.Limit) bool {
	if !l.Window.Fixed() || l.Amount <= 0 || o.Further() {
		return false
	}
	switch a := b.accounts.Find(o); {
	case a == nil && b.full(o), a != nil && index(a.terms.rows, l.Dimension, l.Window) >= 0:
		return false
	}
	b.Seed(now, at, o, l)
	return true
}

// began notes that a run had a request at a tick.
func (a *Account) began(tick int64) {
	if a.owner.Scope != sluice.ScopeRun || tick >= a.born {
		return
	}
	a.born, a.turn = tick, neverLooked
}

// windowOf is the mark of a hold that was taken at a moment.
func windowOf(l *sluice.Limit, at time.Time) int64 {
	switch {
	case l.Window == sluice.PerRun:
		return theRun
	case !l.Window.Fixed():
		return 0
	}
	window, _ := windowAt(l.Window, at.Unix())
	return window
}
