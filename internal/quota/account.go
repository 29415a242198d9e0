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

// Account is the counters of one owner.
type Account struct {
	owner    Owner
	limits   []sluice.Limit // as configured; the caller's slice
	asked    []sluice.Limit // of a run: the tightest that its requests have asked for
	counters []counter
	gauges   uint64               // bit i: counters[i] is a gauge; there are fewer than 64
	refs     int                  // reservations that refer to it, expired ones included
	born     int64                // tick of a run's first request
	used     int64                // tick of the last request
	gone     bool                 // forgotten: it is not in the book
	peers    *[MaxClaims]*Account // of a key: those that its last request claimed beside it
}

// Owner is whose account it is.
func (a *Account) Owner() Owner { return a.owner }

// ofRun are the dimensions that a run counts from its first request on, bounded
// or not: a later request of it may bound them.
var ofRun = [...]sluice.Dimension{sluice.Requests, sluice.InputTokens, sluice.OutputTokens, sluice.Spend, sluice.AllTokens, sluice.RunTime}

// configure brings the counters in line with a claim. Counters keep what they
// have counted and never move; those without a limit stop refusing. Of several
// limits on the same dimension and window the tightest counts.
func (a *Account) configure(c *Claim, tick int64) {
	a.limits = c.Limits
	a.ask(c.Asked)
	if a.owner.Scope == sluice.ScopeRun {
		for _, d := range ofRun {
			a.ensure(sluice.Limit{Dimension: d, Window: sluice.PerRun}, tick)
		}
	}
	for i := range a.counters {
		c := &a.counters[i]
		c.setAmount(a.amount(c.limit))
	}
	for _, ls := range [...][]sluice.Limit{a.limits, a.asked} {
		for _, l := range ls {
			if l.Amount > 0 && a.counter(l.Dimension, l.Window) == nil {
				l.Amount = a.amount(l)
				a.ensure(l, tick)
			}
		}
	}
}

func (a *Account) ensure(l sluice.Limit, tick int64) {
	if a.counter(l.Dimension, l.Window) != nil {
		return
	}
	c := newCounter(l, tick)
	if l.Dimension == sluice.RunTime {
		c.setFirst(a.born)
	}
	if a.counters == nil {
		a.counters = make([]counter, 0, max(len(a.limits), 1)) // there are many accounts, and their limits seldom change
	}
	if l.Dimension.Gauge() {
		a.gauges |= 1 << len(a.counters)
	}
	a.counters = append(a.counters, c)
}

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

func (a *Account) counter(d sluice.Dimension, w sluice.Window) *counter {
	for i := range a.counters {
		if l := &a.counters[i].limit; l.Dimension == d && l.Window == w {
			return &a.counters[i]
		}
	}
	return nil
}

func (a *Account) refresh(tick int64, cal *calendar) {
	for i := range a.counters {
		a.counters[i].refresh(tick, cal)
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
		if c := a.counter(sluice.RunTime, sluice.PerRun); c != nil {
			idle = max(idle, c.limit.Amount)
		}
		return tick-a.used >= idle
	}
	for i := range a.counters {
		if !a.counters[i].atRest() {
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
