package quota

import (
	"time"

	"sluice"
)

// Visit is what the claims of a request follow from, beside its key. Where nothing of it
// is another than at the key's last request, the claims are the same.
type Visit struct {
	User    sluice.UserID
	Project sluice.ProjectID
	Model   sluice.ModelID
	Policy  *sluice.Policy
	Edition uint32 // of the limits of models and the fleet
}

// visit is a key's last request: most requests of a key claim the same accounts, and to
// look those up, or only to compare their names, costs more than all else that is done
// at their arrival. It is three cache lines, beside which of the accounts nothing is read
// but what a reservation reads anyway.
type visit struct {
	Visit
	claims, shadow uint8
	partly         bool // some claims have no account
	scopes         [MaxClaims]sluice.Scope
	others         [MaxClaims - 1]*Account // the accounts but that of the key
	terms          [MaxClaims - 1]*terms   // in force at others then
	made           uint64                  // accounts by then
}

// Reopen is Open for a key whose last request was another such visit, if nothing has
// changed since at any of its accounts. Else it reports false, and r is as it was.
func (b *Book) Reopen(now time.Time, r *Reservation, key Owner, v *Visit) bool {
	b.advance(now)
	k := b.accounts.Find(key)
	if k == nil || k.last == nil || k.last.Visit != *v {
		return false
	}
	l := k.last
	others := l.others[:l.claims-1]
	if l.partly && l.made != b.made { // one of those that were missing, perhaps
		return false
	}
	for n, a := range others {
		if a.terms != l.terms[n] {
			return false
		}
	}
	r.reset()
	r.state, r.claims, r.shadow, r.scopes = open, l.claims, l.shadow, l.scopes
	r.accounts[0] = k
	k.refs++
	for n, a := range others {
		r.accounts[n+1] = a
		a.refs++
	}
	return true
}

// Remember keeps what Open has found for so many claims, for [Book.Reopen].
func (b *Book) Remember(r *Reservation, claims int, v *Visit) {
	if r.claims == 0 || r.scopes[0] != sluice.ScopeKey {
		return
	}
	k := r.accounts[0]
	if k.last == nil {
		k.last = new(visit)
	}
	*k.last = visit{Visit: *v, claims: r.claims, shadow: r.shadow, partly: int(r.claims) < claims, scopes: r.scopes, made: b.made}
	for n, a := range r.Accounts()[1:] {
		k.last.others[n], k.last.terms[n] = a, a.terms
		if a.owner.Further() { // until there is room for one of its own
			k.last = nil
			return
		}
	}
}
