package quota

import "time"

// Revise brings the limits of a reservation's accounts in line with what its request would
// claim now, and lets it pass those that it would not, or only as a shadow. It reports
// whether there may be room that there was not. What would be claimed and was not is left
// out, as is whose limits were shadows and are none now.
func (b *Book) Revise(now time.Time, r *Reservation, claims []Claim) (changed bool) {
	passes := r.shadow
	for n, a := range r.Accounts() {
		c := claimOn(claims, a.owner)
		if c == nil || c.Shadow {
			passes |= 1 << n
		}
		if c != nil {
			changed = b.ReviseAccount(now, c) || changed
		}
	}
	changed = changed || passes != r.shadow
	r.shadow = passes
	return changed
}

// claimOn is the claim that an account was found by, nil if there is none.
func claimOn(claims []Claim, o Owner) *Claim {
	for i := range claims {
		if c := &claims[i]; c.Owner == o || c.Owner.labelled() && c.Owner.further() == o {
			return c
		}
	}
	return nil
}

// ReviseAccount brings the limits of a claim's account, if there is one, in line with it. It
// reports whether they were others.
func (b *Book) ReviseAccount(now time.Time, c *Claim) (changed bool) {
	b.advance(now)
	a := b.accounts.Find(c.Owner)
	if a == nil || a.configured(c) {
		return false
	}
	a.refresh(b.tick, &b.calendar)
	b.configure(a, c)
	return true
}
