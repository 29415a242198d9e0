package quota

import (
	"math"
	"time"

	"sluice"
)

// Visit is what the last reservation of a key was opened with: most requests of a key
// claim the same accounts, and to look those up, or only to compare their names, costs
// more than all else that is done at their arrival. Who opens reservations keeps one for
// each key, as long as its requests claim the same. The zero value is of no reservation.
type Visit struct {
	accounts [MaxClaims]*Account
	terms    [MaxClaims]*terms // in force at accounts then
	scopes   [MaxClaims]sluice.Scope
	counters [MaxClaims]uint8
	claims   uint8
	shadow   uint8
	partly   bool   // some claims have no account
	made     uint64 // accounts by then
}

// Prefetch asks the processor for the accounts that Reopen works on.
func (v *Visit) Prefetch() {
	for n, a := range v.accounts[:v.claims] {
		a.prefetch(v.scopes[n], int(v.counters[n]))
	}
}

// Reopen is Open of what the last reservation has claimed, if nothing has changed since
// at any of its accounts. Else it reports false, and r is as it was. REQUIRES: the claims
// would be the same.
func (b *Book) Reopen(now time.Time, r *Reservation, v *Visit) bool {
	b.advance(now)
	if v.claims == 0 || v.partly && v.made != b.made { // one of those that were missing, perhaps
		return false
	}
	for n, a := range v.accounts[:v.claims] {
		if a.terms != v.terms[n] {
			return false
		}
	}
	r.reset()
	r.state, r.claims, r.shadow, r.scopes, r.accounts = open, v.claims, v.shadow, v.scopes, v.accounts
	for _, a := range r.Accounts() {
		a.refs++
	}
	return true
}

// Remember keeps what Open has found for so many claims, for [Book.Reopen].
func (b *Book) Remember(r *Reservation, claims int, v *Visit) {
	*v = Visit{accounts: r.accounts, scopes: r.scopes, claims: r.claims, shadow: r.shadow, partly: int(r.claims) < claims, made: b.made}
	for n, a := range r.Accounts() {
		v.terms[n], v.counters[n] = a.terms, uint8(min(len(a.counters), math.MaxUint8))
		if a.owner.Further() { // until there is room for one of its own
			*v = Visit{}
			return
		}
	}
}
