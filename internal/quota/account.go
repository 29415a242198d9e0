package quota

import (
	"cmp"
	"slices"

	"sluice"
)

// Owner names an account: whose limits they are.
type Owner struct {
	Scope sluice.Scope
	ID    string // of the key, tenant or model; of the tenant for a project and a tenant × model
	Part  string // of the project or the model within the tenant; else empty
}

// Label is the owner as a refusal names it: the narrowest part.
func (o Owner) Label() string {
	if o.Part != "" {
		return o.Part
	}
	return o.ID
}

// Compare orders owners by scope, then by name.
func (o Owner) Compare(p Owner) int {
	return cmp.Or(cmp.Compare(o.Scope, p.Scope), cmp.Compare(o.ID, p.ID), cmp.Compare(o.Part, p.Part))
}

// Account is the counters of one owner.
type Account struct {
	owner    Owner
	limits   []sluice.Limit // as configured; the caller's slice
	counters []counter
	refs     int // reservations that refer to it, expired ones included
}

// Owner is whose account it is.
func (a *Account) Owner() Owner { return a.owner }

// configure brings the counters in line with limits. Counters keep what they
// have counted and never move; those without a limit stop refusing. Of several
// limits on the same dimension and window the tightest counts.
func (a *Account) configure(limits []sluice.Limit, tick int64) {
	a.limits = limits
	for i := range a.counters {
		c := &a.counters[i]
		c.setAmount(tightest(limits, c.limit.Dimension, c.limit.Window))
	}
	for _, l := range limits {
		if l.Amount > 0 && a.counter(l.Dimension, l.Window) == nil {
			l.Amount = tightest(limits, l.Dimension, l.Window)
			a.counters = append(a.counters, counter{limit: l, level: l.Amount, at: tick})
		}
	}
}

// configured reports whether limits are those in force. Most often they are the
// very same slice, since a policy is shared by all requests of a key.
func (a *Account) configured(limits []sluice.Limit) bool {
	if len(a.limits) != len(limits) {
		return false
	}
	return len(limits) == 0 || &a.limits[0] == &limits[0] || slices.Equal(a.limits, limits)
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
// a new one would be in the same state.
func (a *Account) atRest() bool {
	if a.refs > 0 {
		return false
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
