package quota

import (
	"cmp"
	"slices"
	"strings"

	"sluice"
)

// Owner names an account: whose limits they are.
type Owner struct {
	Scope sluice.Scope
	ID    string // of the key, tenant or model; of the tenant for everything that is part of one
	Part  string // of the project, model, user or run within the tenant; else empty
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

// Account is the counters of one owner. What every reservation reads comes first,
// and the counters lie behind it in the same piece of memory: see newAccount.
type Account struct {
	counters []counter
	rows     []sluice.Limit // of the counters, in force; the slice of the policy where the two agree
	gauges   uint64         // bit i: counters[i] is a gauge; there are fewer than 64
	at       int64          // tick to which it has been brought: see refresh
	turn     int64          // of the calendar, likewise
	refs     int32          // reservations that refer to it, expired ones included
	gone     bool           // forgotten: it is not in the book
	used     int64          // tick of the last request
	owner    Owner
	limits   []sluice.Limit       // as configured; the caller's slice
	asked    []sluice.Limit       // of a run: the tightest that its requests have asked for
	born     int64                // tick of a run's first request
	peers    *[MaxClaims]*Account // of a key: those that its last request claimed beside it
}

// newAccount makes an account with room for so many counters in the same piece of
// memory: to a request, an account whose counters are elsewhere costs as much again.
func newAccount(o Owner, counters int, tick int64) (a *Account) {
	switch {
	case counters <= 2:
		m := new(struct {
			Account
			c [2]counter
		})
		a, m.counters = &m.Account, m.c[:0]
	case counters <= 4:
		m := new(struct {
			Account
			c [4]counter
		})
		a, m.counters = &m.Account, m.c[:0]
	default:
		m := new(struct {
			Account
			c [6]counter
		})
		a, m.counters = &m.Account, m.c[:0]
	}
	a.owner, a.born, a.used, a.at = o, tick, tick, tick
	return a
}

// Owner is whose account it is.
func (a *Account) Owner() Owner { return a.owner }

// ofRun are the dimensions that a run counts from its first request on, bounded
// or not: a later request of it may bound them.
var ofRun = [...]sluice.Dimension{sluice.Requests, sluice.InputTokens, sluice.OutputTokens, sluice.Spend, sluice.AllTokens, sluice.RunTime}

// configure brings the counters in line with a claim. Counters keep what they
// have counted and never move; those without a limit stop refusing. Of several
// limits on the same dimension and window the tightest counts. REQUIRES: it has
// been refreshed.
func (a *Account) configure(c *Claim) {
	a.limits = c.Limits
	a.ask(c.Asked)
	a.rows = append(make([]sluice.Limit, 0, max(len(a.rows), len(c.Limits))), a.rows...) // they may be the policy's
	if a.owner.Scope == sluice.ScopeRun {
		for _, d := range ofRun {
			a.ensure(sluice.Limit{Dimension: d, Window: sluice.PerRun})
		}
	}
	for i := range a.counters {
		l := &a.rows[i]
		n := a.amount(*l)
		a.counters[i].setAmount(l, n)
		l.Amount = n
	}
	for _, ls := range [...][]sluice.Limit{a.limits, a.asked} {
		for _, l := range ls {
			if l.Amount > 0 && a.index(l.Dimension, l.Window) < 0 {
				l.Amount = a.amount(l)
				a.ensure(l)
			}
		}
	}
	if slices.Equal(a.rows, a.limits) {
		a.rows = a.limits
	}
}

// ensure makes a counter for a limit, if there is none. REQUIRES: rows are the
// account's own.
func (a *Account) ensure(l sluice.Limit) (index int) {
	if i := a.index(l.Dimension, l.Window); i >= 0 {
		return i
	}
	i := len(a.counters)
	if l.Dimension.Gauge() {
		a.gauges |= 1 << i
	}
	a.counters, a.rows = append(a.counters, newCounter(&l)), append(a.rows, l)
	a.turn = neverLooked
	return i
}

// neverLooked is a turn of no calendar.
const neverLooked = -1

// ask keeps the tightest of what requests of a run ask for. The account of
// further runs is not one run's.
func (a *Account) ask(limits []sluice.Limit) {
	if a.owner.Part == furtherPart {
		a.asked = limits
		return
	}
	for _, l := range limits {
		i := slices.IndexFunc(a.asked, func(o sluice.Limit) bool { return o.Dimension == l.Dimension && o.Window == l.Window })
		switch {
		case l.Amount <= 0:
		case i < 0:
			a.asked = append(a.asked, l)
		default:
			a.asked[i].Amount = min(a.asked[i].Amount, l.Amount)
		}
	}
}

// amount is the limit in force, 0 if there is none.
func (a *Account) amount(l sluice.Limit) int64 {
	own, asked := tightest(a.limits, l.Dimension, l.Window), tightest(a.asked, l.Dimension, l.Window)
	if own == 0 || asked > 0 && asked < own {
		return asked
	}
	return own
}

// configured reports whether a claim's limits are those in force. Most often they
// are the very same slice, since a policy is shared by all requests of a key.
func (a *Account) configured(c *Claim) bool {
	if len(a.limits) != len(c.Limits) || !a.hasAsked(c.Asked) {
		return false
	}
	return len(c.Limits) == 0 || &a.limits[0] == &c.Limits[0] || slices.Equal(a.limits, c.Limits)
}

func (a *Account) hasAsked(limits []sluice.Limit) bool {
	if a.owner.Part == furtherPart {
		return slices.Equal(a.asked, limits)
	}
	for _, l := range limits {
		if have := tightest(a.asked, l.Dimension, l.Window); l.Amount > 0 && (have == 0 || have > l.Amount) {
			return false
		}
	}
	return true
}

// index is where the counter of a dimension and window is, -1 if there is none.
func (a *Account) index(d sluice.Dimension, w sluice.Window) int {
	return slices.IndexFunc(a.rows, func(l sluice.Limit) bool { return l.Dimension == d && l.Window == w })
}

// refresh brings the counters to this moment: buckets refill, fixed windows roll.
func (a *Account) refresh(tick int64, cal *calendar) {
	if tick > a.at || a.turn != cal.turn {
		a.pass(tick, cal)
	}
}

func (a *Account) pass(tick int64, cal *calendar) {
	elapsed, rolls := tick-a.at, a.turn != cal.turn
	a.at, a.turn = max(tick, a.at), cal.turn
	for i := range a.counters {
		c, l := &a.counters[i], &a.rows[i]
		switch w := l.Window; {
		case w == sluice.NoWindow:
		case !spans(w):
			if elapsed > 0 {
				c.refill(l, elapsed)
			}
		default:
			if rolls {
				c.roll(cal.window[w])
			}
			if l.Dimension == sluice.RunTime {
				c.level = max(tick-a.born, 0)
			}
		}
	}
}

// atRest reports whether the account may be forgotten: nothing refers to it and
// a new one would be in the same state. A run is forgotten when it has been idle.
func (a *Account) atRest(tick int64) bool {
	if a.refs > 0 {
		return false
	}
	if a.owner.Scope == sluice.ScopeRun {
		idle := int64(RunIdle)
		if i := a.index(sluice.RunTime, sluice.PerRun); i >= 0 {
			idle = max(idle, a.rows[i].Amount)
		}
		return tick-a.used >= idle
	}
	for i := range a.counters {
		if !a.counters[i].atRest(&a.rows[i]) {
			return false
		}
	}
	return true
}

func tightest(limits []sluice.Limit, d sluice.Dimension, w sluice.Window) (amount int64) {
	for _, l := range limits {
		if l.Dimension == d && l.Window == w && l.Amount > 0 && (amount == 0 || l.Amount < amount) {
			amount = l.Amount
		}
	}
	return amount
}
