package route

import (
	"math"
	"slices"
	"time"

	"sluice"
)

// relane brings the lanes in line with the backend's keys: what is learnt and owed
// of a key stays.
func (p *Place) relane() {
	keys := p.Backend.Keys
	if len(keys) == 0 { // it is called without one, or with one of which nothing is known
		keys = []Key{{ID: string(p.Backend.ID), Weight: 1}}
	}
	for _, l := range p.lanes {
		l.gone = true
	}
	for _, k := range keys {
		k.Weight = min(max(k.Weight, 1), MaxKeyWeight)
		i := slices.IndexFunc(p.lanes, func(l *lane) bool { return l.key.ID == k.ID })
		if i < 0 {
			i = len(p.lanes)
			p.lanes = append(p.lanes, &lane{turn: p.firstTurn()})
		}
		l := p.lanes[i]
		l.key, l.gone, l.step = k, false, stride/uint64(k.Weight)
		l.own.Enable()
		if l.shared = new(Credential); p.Credentials != nil && len(p.Backend.Keys) > 0 {
			l.shared = p.Credentials.Of(k.ID)
		}
		l.retune(p.Backend.Capacity.Rates, p.at)
	}
	p.lanes = slices.DeleteFunc(p.lanes, func(l *lane) bool { return l.gone && l.running == 0 })
}

// firstTurn is the turn of a new lane: it gets its share from now on.
func (p *Place) firstTurn() uint64 {
	turn := uint64(0)
	for i, l := range p.lanes {
		if i == 0 || l.turn < turn {
			turn = l.turn
		}
	}
	return turn
}

// retune puts rates into force.
func (l *lane) retune(rates Rates, now int64) {
	for r, amount := range rates {
		b := &l.rates[r]
		switch {
		case amount > 0 && b.amount == 0:
			*b = bucket{amount: amount, period: minute, level: amount, at: now}
		case amount > 0:
			b.learnt = false
			b.set(amount, minute)
		case !b.learnt:
			*b = bucket{}
		}
	}
}

// fitsAt is when the lane's rates have what is asked for.
func (l *lane) fitsAt(now int64, amounts *[NumRates]int64) int64 {
	at := now
	for r := range l.rates {
		b := &l.rates[r]
		if b.amount == 0 {
			continue
		}
		b.refill(now)
		at = max(at, b.fitsAt(amounts[r]))
	}
	return at
}

// live reports whether the lane may be given attempts, rates aside, of those that must
// go with one credential if that is named. What nothing keeps out (NoBreakers) uses every
// key.
func (p *Place) live(now time.Time, l *lane, only string) bool {
	return !l.gone && (only == "" || l.key.ID == only) && (p.Health.off || l.usable(now))
}

// paced reports whether no credential's rates have their amounts now, and remembers
// when one's will.
func (p *Place) paced(amounts *[NumRates]int64, only string) bool {
	if !p.rated {
		return false
	}
	now := p.at
	at := p.fitsAt(now, amounts, only)
	if at <= now {
		return false
	}
	if until := p.now.Add(time.Duration(at - now)); !p.until.After(p.now) || until.Before(p.until) {
		p.until = until
	}
	return true
}

func (p *Place) fitsAt(now int64, amounts *[NumRates]int64, only string) int64 {
	at := int64(math.MaxInt64)
	for _, l := range p.lanes {
		if p.live(p.now, l, only) {
			at = min(at, l.fitsAt(now, amounts))
		}
	}
	if at == math.MaxInt64 {
		return now // no rate is what stands in the way
	}
	return at
}

// PacedUntil is when the rates have room for something that Open or Usable turned
// away for them; false if there is no such thing.
func (p *Place) PacedUntil(now time.Time) (time.Time, bool) {
	return p.until, p.until.After(p.tick(now))
}

// RoomAt is when the provider's rates have what a request needs, if nothing else
// happens: now, if they do not stand in its way.
func (p *Place) RoomAt(now time.Time, n Need) time.Time {
	p.tick(now)
	amounts := n.amounts()
	return p.now.Add(time.Duration(p.fitsAt(p.at, &amounts, n.Only) - p.at))
}

// hold gives an attempt the credential with the least running ÷ weight of those
// that have room for it, and takes what it needs of its rates.
func (p *Place) hold(now time.Time, n *Need, t *Taken) {
	l := p.lanes[0]
	if !p.steady() || len(p.lanes) > 1 {
		l = p.roomiest(now, n)
		t.shared, t.own = l.shared.started(now), l.own.started(now)
	}
	t.lane = l
	l.running++
	l.turn += l.step
	if !p.rated {
		return
	}
	t.counted = true
	for r, amount := range n.amounts() {
		l.rates[r].refill(p.at)
		t.held[r] = l.rates[r].take(amount)
	}
}

// roomiest is the credential with the least running ÷ weight of those that have room for
// a need, else of all.
func (p *Place) roomiest(now time.Time, n *Need) (best *lane) {
	amounts, fits := n.amounts(), false
	for _, l := range p.lanes {
		if l.gone {
			continue
		}
		room := p.live(now, l, n.Only) && (!p.rated || l.fitsAt(p.at, &amounts) <= p.at)
		if best == nil || room && !fits || room == fits && l.less(best) {
			best, fits = l, room
		}
	}
	return best
}

// unhold ends what an attempt holds of its credential, and puts right what it took.
func (p *Place) unhold(t *Taken) {
	l := t.lane
	if p.rated {
		spent := t.spent()
		for r := range l.rates {
			var h held
			if t.counted {
				h = t.held[r]
			}
			used := h.n
			if t.known {
				used = spent[r]
			}
			l.rates[r].refill(p.at)
			l.rates[r].settle(h, used)
		}
	}
	if l.running--; l.running == 0 && l.gone {
		p.lanes = slices.DeleteFunc(p.lanes, func(x *lane) bool { return x == l })
	}
}

// lane finds a credential's lane; without a name, or one that is not known, the
// only one, or nil.
func (p *Place) lane(key string) *lane {
	for _, l := range p.lanes {
		if l.key.ID == key || len(p.lanes) == 1 {
			return l
		}
	}
	return nil
}

// Hint takes what the provider told of a rate of a credential.
func (p *Place) Hint(now time.Time, key string, h Hint) {
	p.tick(now)
	if l := p.lane(key); l != nil && h.Rate < NumRates {
		l.rates[h.Rate].hint(p.at, p.since(h.At), h)
		p.known()
		p.stir()
	}
}

// Limited notes that the provider refused for a rate of a credential (429) and for
// how long it asked to be left alone; told is that it also said which rates are
// left, by Hint. Where it says nothing at all it is short of capacity as far as can
// be told.
func (p *Place) Limited(now time.Time, key string, wait time.Duration, told bool) {
	now = p.tick(now)
	counted, l := told, p.lane(key)
	if l == nil {
		return
	}
	for r := range l.rates {
		if b := &l.rates[r]; b.amount > 0 && !told {
			b.pause(p.at, wait)
			counted = true
		}
	}
	if !counted && wait <= 0 {
		p.limit.Overloaded(now, p.running)
	}
}

// RateLeft is what is left of a rate over the credentials that may be used, and what
// there is in all; false if it is not known of one of them.
func (p *Place) RateLeft(now time.Time, r Rate) (left, all int64, known bool) {
	p.tick(now)
	known = true
	for _, l := range p.lanes {
		if l.gone || l.state() != CredentialUsable && !p.Health.off {
			continue
		}
		b := &l.rates[r]
		b.refill(p.at)
		left, all, known = left+b.level, all+b.amount, known && b.amount > 0
	}
	return left, all, known && all > 0
}

// Refused notes that the provider refuses a credential: altogether (401), or only
// here (403), such as for this model. Spent, that its allowance is spent, for so
// long if that is known. They report whether that changed anything.
func (p *Place) Refused(now time.Time, key string, everywhere bool) (changed bool) {
	now = p.tick(now)
	l := p.lane(key)
	p.stir()
	switch {
	case l == nil:
		return false
	case everywhere:
		return l.shared.Disable(now)
	}
	return l.own.Disable(now)
}

// Spent is told of at Refused.
func (p *Place) Spent(now time.Time, key string, d time.Duration) (changed bool) {
	now = p.tick(now)
	l := p.lane(key)
	p.stir()
	return l != nil && l.shared.Park(now, d)
}

// Enable makes a credential usable that was out here, and everywhere, that was out
// altogether. It reports whether it was, and whether the backend has it.
func (p *Place) Enable(now time.Time, key string, everywhere bool) (was, has bool) {
	p.tick(now)
	for _, l := range p.lanes {
		if l.gone || l.key.ID != key {
			continue
		}
		own, _ := l.own.State()
		shared, _ := l.shared.State()
		was, has = own != CredentialUsable || everywhere && shared != CredentialUsable, true
		if l.own.Enable(); everywhere {
			l.shared.Enable()
		}
	}
	return was, has
}

// How long a credential is left alone after a 429 that tells no time: as many first ones,
// doubled by each in a row, as make the most.
const (
	FirstBackOff = time.Second
	MostBackOff  = time.Minute
)

// backOff is how long the credential of an attempt that was limited without a time is
// left alone: between half of 1 s · 2ⁿ, at most a minute, and all of it, n being the 429
// in a row before. Where in between is drawn from the names of backend and credential and
// from n, so that several gateways and credentials do not come back at once and the same
// events give the same times. What began before the last one that counted is the same
// episode, and counts no further.
func (p *Place) backOff(t *Taken) time.Duration {
	l := t.lane
	if l.strikes > 0 && t.at <= l.struck {
		return 0
	}
	d := MostBackOff
	if l.strikes < 6 {
		d = min(FirstBackOff<<l.strikes, MostBackOff)
	}
	l.strikes, l.struck = min(l.strikes+1, 6), p.at
	x := mix(hash(hash(14695981039346656037, string(p.Backend.ID)), l.key.ID) + uint64(l.strikes))
	return d/2 + time.Duration(x%uint64(d/2))
}

// pauseLane keeps a credential out of use here for a while: the provider asked for
// it. It only lengthens.
func (p *Place) pauseLane(now time.Time, l *lane, d time.Duration) (longer bool) {
	if until := now.Add(min(d, MaxPause)); l != nil && d > 0 && until.After(l.paused) {
		l.paused, longer = until, true
	}
	return longer
}

// OtherKey reports whether another credential than that may be used here.
func (p *Place) OtherKey(now time.Time, than string) bool {
	now = p.tick(now)
	return slices.ContainsFunc(p.lanes, func(l *lane) bool { return l.key.ID != than && p.live(now, l, "") })
}

// KeyView is one credential of a backend.
type KeyView struct {
	ID      string
	State   CredentialState
	Until   time.Time // of one that is out, or paused
	Paused  bool      // a rate of it is used up (429)
	Running int64
	Here    bool // it is out at this backend alone
}

// Keys appends the credentials of the backend.
func (p *Place) Keys(now time.Time, out []KeyView) []KeyView {
	now = p.tick(now)
	for _, l := range p.lanes {
		if l.gone {
			continue
		}
		shared, _ := l.shared.State()
		v := KeyView{ID: l.key.ID, State: l.state(), Running: l.running, Paused: now.Before(l.paused), Here: shared == CredentialUsable && l.state() != CredentialUsable}
		if until := l.until(); until.After(now) {
			v.Until = until
		}
		out = append(out, v)
	}
	return out
}

// endLane notes how an attempt with a credential ended. It reports whether that
// changed what the credential may be used for.
func (p *Place) endLane(now time.Time, t *Taken, why sluice.Reason) (changed bool) {
	if t.shared {
		changed = t.lane.shared.ended(now, why)
	}
	if t.own {
		changed = t.lane.own.ended(now, why) || changed
	}
	return changed
}
