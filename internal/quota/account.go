package quota

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/prefetch"
)

// Owner names an account: whose limits they are.
type Owner struct {
	Scope sluice.Scope
	ID    string // of the tenant or model; of the tenant for everything that is part of one
	Part  string // of the key, project, model, user or run within the tenant; else empty
}

// owners is how a book finds accounts.
type owners struct{}

func (owners) Name(a *Account) Owner { return a.owner }

func (owners) Hash(seed maphash.Seed, o Owner) uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := maphash.String(seed, o.ID) ^ uint64(o.Scope)*odd
	if o.Part != "" {
		h = h*odd ^ maphash.String(seed, o.Part)
	}
	return h
}

// furtherPart is the part of the account that ids beyond the bound share. No
// label of a caller begins with a control character.
const furtherPart = "\x00further"

// further is the account that a label's owner shares when there is no room for
// one of its own.
func (o Owner) further() Owner { return Owner{Scope: o.Scope, ID: o.ID, Part: furtherPart} }

// Further reports whether it is the one that labels without room of their own share.
func (o Owner) Further() bool { return o.Part == furtherPart }

// labelled reports whether callers name the owner as they like.
func (o Owner) labelled() bool { return o.Scope == sluice.ScopeUser || o.Scope == sluice.ScopeRun }

// Label is the owner as a refusal names it: the narrowest part.
func (o Owner) Label() string {
	switch o.Part {
	case "":
		return o.ID
	case furtherPart:
		return "further " + o.Scope.String() + "s of " + o.ID
	}
	return o.Part
}

// Compare orders owners by scope, then by name.
func (o Owner) Compare(p Owner) int {
	return cmp.Or(cmp.Compare(o.Scope, p.Scope), strings.Compare(o.ID, p.ID), strings.Compare(o.Part, p.Part))
}

// Account is the counters of one owner. What a dispatch looks at comes first, then what
// every reservation does. The counters, and behind them what is seldom looked at, lie
// in the same piece of memory: see newAccount.
type Account struct {
	held     [numGauges]int64 // what is in flight
	at       int64            // tick to which it has been brought: see refresh
	turn     int32            // of the calendar, likewise
	refs     int32            // reservations that refer to it, expired ones included
	terms    *terms           // in force
	counters []counter        // of rates and budgets: one for each of the terms' rates
	owner    Owner
	more     *particulars
	born     int64 // tick of a run's first request
	used     int64 // likewise, of its last
}

// particulars are what of an account is seldom looked at.
type particulars struct {
	limits []sluice.Limit // as configured; the caller's slice
	asked  []sluice.Limit // of a run: the tightest that its requests have asked for
}

const numGauges = 2

// gaugeOf is where an account keeps a dimension that is a gauge, dimensionOf the
// dimension that it keeps there.
func gaugeOf(d sluice.Dimension) int { return int(d - sluice.Concurrency) }

func dimensionOf(gauge int) sluice.Dimension { return sluice.Concurrency + sluice.Dimension(gauge) }

// free is what can be taken of a gauge now.
func (a *Account) free(gauge int) int64 { return a.terms.gauges[gauge] - a.held[gauge] }

// holdOf is what a request that needs n takes of a gauge: at most the limit, nothing
// where there is none, so that it only counts what is limited.
func (a *Account) holdOf(gauge int, n int64) int64 { return min(max(0, n), a.terms.gauges[gauge]) }

// fits reports whether a request that needs n can take it of a gauge now.
func (a *Account) fits(gauge int, n int64) bool {
	h := a.holdOf(gauge, n)
	return h == 0 || a.free(gauge) >= h
}

// newAccount makes an account with room for so many counters in the same piece of
// memory: to a request, an account whose counters are elsewhere costs as much again.
func newAccount(o Owner, counters int, tick int64) (a *Account) {
	switch {
	case counters <= 2:
		m := new(struct {
			Account
			c [2]counter
			p particulars
		})
		a, m.counters, m.more = &m.Account, m.c[:0], &m.p
	case counters <= 4:
		m := new(struct {
			Account
			c [4]counter
			p particulars
		})
		a, m.counters, m.more = &m.Account, m.c[:0], &m.p
	default:
		m := new(struct {
			Account
			c [6]counter
			p particulars
		})
		a, m.counters, m.more = &m.Account, m.c[:0], &m.p
	}
	a.owner, a.at, a.terms = o, tick, unlimited
	a.born, a.used = tick, tick
	return a
}

// What an account and each of its counters take, in bytes: see TestLayout.
const (
	accountBytes = 128
	counterBytes = 48
)

// prefetch asks the processor for an account and so many counters behind it, unless it is
// one that all requests share: that is at hand.
func (a *Account) prefetch(of sluice.Scope, counters int) {
	if !of.Shared() {
		prefetch.From(a, accountBytes+counterBytes*uintptr(counters))
	}
}

// rates is how many of limits have a counter.
func rates(limits []sluice.Limit) (n int) {
	for i := range limits {
		if !limits[i].Dimension.Gauge() {
			n++
		}
	}
	return n
}

// forget makes it the account of nobody: what remembers it finds other terms.
func (a *Account) forget() { a.terms = unlimited }

// Owner is whose account it is.
func (a *Account) Owner() Owner { return a.owner }

// ofRun are the dimensions that a run counts from its first request on, bounded
// or not: a later request of it may bound them.
var ofRun = [...]sluice.Dimension{sluice.Requests, sluice.InputTokens, sluice.OutputTokens, sluice.Spend, sluice.AllTokens, sluice.RunTime}

// configure brings an account's counters in line with a claim. Counters keep what they
// have counted and never move; those without a limit stop refusing. Of several
// limits on the same dimension and window the tightest counts. REQUIRES: it has
// been refreshed.
func (b *Book) configure(a *Account, c *Claim) {
	more := a.more
	more.limits = c.Limits
	a.ask(c.Asked)
	rows := append(make([]sluice.Limit, 0, max(len(a.terms.rows), len(c.Limits))), a.terms.rows...)
	if a.owner.Scope == sluice.ScopeRun {
		for _, d := range ofRun {
			rows = a.ensure(rows, sluice.Limit{Dimension: d, Window: sluice.PerRun})
		}
	}
	j := 0
	for i := range rows {
		l := &rows[i]
		n := a.amount(*l)
		if !l.Dimension.Gauge() {
			a.counters[j].setAmount(l, n)
			j++
		}
		l.Amount = n
	}
	for _, ls := range [...][]sluice.Limit{more.limits, more.asked} {
		for _, l := range ls {
			if l.Amount > 0 && index(rows, l.Dimension, l.Window) < 0 {
				l.Amount = a.amount(l)
				rows = a.ensure(rows, l)
			}
		}
	}
	b.agree(a, rows)
}

// ensure makes a counter for a limit, if there is none among the rows.
func (a *Account) ensure(rows []sluice.Limit, l sluice.Limit) []sluice.Limit {
	if index(rows, l.Dimension, l.Window) >= 0 {
		return rows
	}
	if !l.Dimension.Gauge() {
		a.counters = append(a.counters, newCounter(&l))
		a.turn = neverLooked
	}
	return append(rows, l)
}

// neverLooked is a turn of no calendar.
const neverLooked = -1

// ask keeps the tightest of what requests of a run ask for. The account of
// further runs is not one run's.
func (a *Account) ask(limits []sluice.Limit) {
	more := a.more
	if a.owner.Part == furtherPart {
		more.asked = limits
		return
	}
	for _, l := range limits {
		i := slices.IndexFunc(more.asked, func(o sluice.Limit) bool { return o.Dimension == l.Dimension && o.Window == l.Window })
		switch {
		case l.Amount <= 0:
		case i < 0:
			more.asked = append(more.asked, l)
		default:
			more.asked[i].Amount = min(more.asked[i].Amount, l.Amount)
		}
	}
}

// amount is the limit in force, 0 if there is none.
func (a *Account) amount(l sluice.Limit) int64 {
	own, asked := tightest(a.more.limits, l.Dimension, l.Window), tightest(a.more.asked, l.Dimension, l.Window)
	if own == 0 || asked > 0 && asked < own {
		return asked
	}
	return own
}

// configured reports whether a claim's limits are those in force. Most often the rows
// are the very same slice, since a policy is shared by all requests of a key.
func (a *Account) configured(c *Claim) bool {
	if len(c.Asked) == 0 && same(a.terms.rows, c.Limits) {
		return true
	}
	limits := a.more.limits
	return a.hasAsked(c.Asked) && (same(limits, c.Limits) || slices.Equal(limits, c.Limits))
}

// same reports whether two lists are one piece of memory.
func same(a, b []sluice.Limit) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

func (a *Account) hasAsked(limits []sluice.Limit) bool {
	asked := a.more.asked
	if a.owner.Part == furtherPart {
		return slices.Equal(asked, limits)
	}
	for _, l := range limits {
		if have := tightest(asked, l.Dimension, l.Window); l.Amount > 0 && (have == 0 || have > l.Amount) {
			return false
		}
	}
	return true
}

// index is the row of a dimension and window, -1 if there is none.
func index(rows []sluice.Limit, d sluice.Dimension, w sluice.Window) int {
	return slices.IndexFunc(rows, func(l sluice.Limit) bool { return l.Dimension == d && l.Window == w })
}

// refresh brings the counters to this moment: buckets refill, fixed windows roll.
func (a *Account) refresh(tick int64, cal *calendar) {
	t := a.terms
	if elapsed := tick - a.at; elapsed > 0 {
		a.at = tick
		for buckets := t.rates[:t.spans]; ; {
			n := fill(buckets, a.counters, uint64(elapsed))
			if n == len(buckets) {
				break
			}
			l := &buckets[n]
			a.counters[l.at].refill(l, uint64(elapsed))
			buckets = buckets[n+1:]
		}
	}
	if a.turn != cal.turn || t.others < len(t.rates) {
		a.roll(tick, cal)
	}
}

// roll is refresh of all counters but buckets.
func (a *Account) roll(tick int64, cal *calendar) {
	rates := a.terms.rates[a.terms.spans:]
	for i := range rates {
		l := &rates[i]
		c := &a.counters[l.at]
		if a.turn != cal.turn && spans(l.Window) {
			c.roll(cal.window[l.Window])
		}
		if l.how == byRunTime {
			c.level = max(tick-a.born, 0)
		}
	}
	a.turn = cal.turn
}

// atRest reports whether the account may be forgotten: nothing refers to it and
// a new one would be in the same state. A run is forgotten when it has been idle.
func (a *Account) atRest(tick int64) bool {
	if a.refs > 0 {
		return false
	}
	if a.owner.Scope == sluice.ScopeRun {
		idle := int64(RunIdle)
		if i := index(a.terms.rows, sluice.RunTime, sluice.PerRun); i >= 0 {
			idle = max(idle, a.terms.rows[i].Amount)
		}
		return tick-a.used >= idle
	}
	for i := range a.terms.rates {
		if l := &a.terms.rates[i]; !a.counters[l.at].atRest(l) {
			return false
		}
	}
	return a.held == [numGauges]int64{}
}

func tightest(limits []sluice.Limit, d sluice.Dimension, w sluice.Window) (amount int64) {
	for _, l := range limits {
		if l.Dimension == d && l.Window == w && l.Amount > 0 && (amount == 0 || l.Amount < amount) {
			amount = l.Amount
		}
	}
	return amount
}
