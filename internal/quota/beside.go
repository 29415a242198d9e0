package quota

// Beside opens a reservation for a second attempt at a request, beside the one that
// holds for the first: with its accounts, in its windows, and nothing held yet, which
// is for TopUp to take and TakeGauges. A second attempt is not another request of its
// caller, so that it counts as none. It ends apart from the other, exactly once too.
// REQUIRES: of is open, r is new or closed.
func (b *Book) Beside(r, of *Reservation) {
	r.reset()
	r.state = open
	r.accounts, r.scopes, r.ends, r.claims, r.shadow, r.would = of.accounts, of.scopes, of.ends, of.claims, of.shadow, of.would
	r.bound = Amounts{}
	for _, a := range r.Accounts() {
		a.refs++
	}
	r.holds = append(r.holds, of.holds...)
	r.each(func(_ int, h *hold, c *counter, l *rate) bool {
		if h.amount = 0; bucket(l.Window) {
			h.mark = c.overflow // what a refill loses from now on
		}
		return true
	})
}
