package ladder

import (
	"errors"
	"fmt"
	"time"
)

// Ladder is where one pool stands.
type Ladder struct {
	policy Policy
	rung   Rung
	since  time.Time // on it
	cause  Cause     // of that
	raised Raise
	over   time.Time // since when the next rung's bounds are reached; zero if they are not
	calm   time.Time // since when this rung's bounds are kept; zero if they are not
	signal Signal    // as of the last Observe
	pin    *Pin

	hold [NumRungs]time.Duration // of each rung; 0: as the policy has it
	left [NumRungs]time.Time     // when each was left last, downwards
}

// Pin keeps a ladder on a tier, whatever the signals say.
type Pin struct {
	Tier    Tier
	Author  string
	Reason  string
	At      time.Time // when it was given; of an order to pin, now if it is zero
	Expires time.Time
}

// Raise is what put a ladder up to where it stands, or to where it came down from: the
// last step up, or an operator's pin.
type Raise struct {
	Cause  Cause  // CauseNone on the ground that it has never left
	Signal Signal // of that moment
	By     string // of CausePin: who
	Reason string // and why
}

// MaxPin is the longest that a pin lasts.
const MaxPin = 24 * time.Hour

// Change is one move of a ladder.
type Change struct {
	From, To Rung
	Cause    Cause
	Signal   Signal
	Acts     bool // requests feel it; else it is what the ladder would do
	Pin      *Pin // of CausePin
}

// Policy is the policy in force.
func (l *Ladder) Policy() *Policy { return &l.policy }

// Configure puts a policy into force. Where the ladder stands higher than it may, or may
// not stand at all, it comes down at once. It reports a change of where it stands or
// whether that is felt.
func (l *Ladder) Configure(now time.Time, p Policy) (c Change, changed bool) {
	from, acted := l.rung, l.Acting()
	l.policy = p
	l.hold = [NumRungs]time.Duration{}
	switch {
	case p.Mode == Off:
		l.rung, l.pin = 0, nil
	case l.pin == nil:
		l.rung = min(l.rung, last(p.Top))
	}
	if l.rung != from {
		l.moved(now, l.rung, CauseConfig)
	}
	if l.Acting() == acted && l.rung == from {
		return Change{}, false
	}
	return Change{From: from, To: l.rung, Cause: CauseConfig, Signal: l.signal, Acts: l.acts()}, true
}

// Observe takes the signals of a moment, and moves by one rung at most. It reports
// whether it did, or whether a pin has ended.
func (l *Ladder) Observe(now time.Time, s Signal) (c Change, changed bool) {
	l.signal = s
	if l.policy.Mode == Off {
		return Change{}, false
	}
	from := l.rung
	if l.pin != nil {
		if now.Before(l.pin.Expires) {
			return Change{}, false
		}
		return l.release(now, CauseExpired), true
	}
	cause := l.climb(now, &s)
	if cause == CauseNone {
		cause = l.descend(now, &s)
	}
	if cause == CauseNone {
		return Change{}, false
	}
	return Change{From: from, To: l.rung, Cause: cause, Signal: s, Acts: l.acts()}, true
}

// climb takes a step up if the bounds of the next rung have been reached for long
// enough.
func (l *Ladder) climb(now time.Time, s *Signal) Cause {
	if l.rung >= last(l.policy.Top) {
		l.over = time.Time{}
		return CauseNone
	}
	next := l.rung + 1
	enter := &l.policy.Steps[next.Tier()].Enter
	cause := enter.over(s)
	if next == ShedInteractive && (enter.Age == 0 || s.Own < enter.Age) { // what waits of standard is not helped by that
		cause = CauseNone
	}
	if cause == CauseNone {
		l.over = time.Time{}
		return CauseNone
	}
	if l.over.IsZero() {
		l.over = now
	}
	if now.Sub(l.over) < l.policy.Rise || l.rung > 0 && now.Sub(l.since) < l.policy.Rise {
		return CauseNone
	}
	if at := l.left[next]; at.IsZero() || now.Sub(at) >= l.policy.MaxHold {
		l.hold[next] = l.policy.Hold
	} else {
		l.hold[next] = min(2*l.holds(next), l.policy.MaxHold)
	}
	l.moved(now, next, cause)
	return cause
}

// descend takes a step down if the bounds of the rung have been kept for long enough.
func (l *Ladder) descend(now time.Time, s *Signal) Cause {
	if l.rung == 0 || !l.policy.Steps[l.rung.Tier()].Exit.calm(s) {
		l.calm = time.Time{}
		return CauseNone
	}
	if l.calm.IsZero() {
		l.calm = now
	}
	if hold := l.holds(l.rung); now.Sub(l.calm) < hold || now.Sub(l.since) < hold {
		return CauseNone
	}
	l.left[l.rung] = now
	l.moved(now, l.rung-1, CauseCalm)
	return CauseCalm
}

func (l *Ladder) moved(now time.Time, to Rung, why Cause) {
	if why != CauseCalm && to > l.rung {
		l.raised = Raise{Cause: why, Signal: l.signal}
	}
	l.rung, l.since, l.cause = to, now, why
	l.over, l.calm = time.Time{}, time.Time{}
}

// holds is how long a rung has to be calm before it is left.
func (l *Ladder) holds(r Rung) time.Duration { return max(l.hold[r], l.policy.Hold) }

// Pin keeps the ladder on a tier until the pin expires. It takes the place of a pin that
// there was.
func (l *Ladder) Pin(now time.Time, p Pin) (Change, error) {
	switch {
	case l.policy.Mode == Off:
		return Change{}, errors.New("the pool's ladder is off")
	case p.Tier >= NumTiers:
		return Change{}, fmt.Errorf("there is no tier %d", p.Tier)
	case !p.Expires.After(now) || p.Expires.Sub(now) > MaxPin:
		return Change{}, fmt.Errorf("a pin lasts for more than nothing and at most %v", MaxPin)
	case p.Author == "" || p.Reason == "":
		return Change{}, errors.New("a pin has an author and a reason")
	}
	from, to := l.rung, RungOf(p.Tier)
	if p.At.IsZero() || p.At.After(now) {
		p.At = now
	}
	l.pin = &p
	l.moved(now, to, CausePin)
	l.raised = Raise{Cause: CausePin, Signal: l.signal, By: p.Author, Reason: p.Reason}
	return Change{From: from, To: to, Cause: CausePin, Signal: l.signal, Acts: true, Pin: &p}, nil
}

// Unpin ends a pin: the ladder goes on from where it stands, one rung at a time. It
// reports whether there was one.
func (l *Ladder) Unpin(now time.Time) (Change, bool) {
	if l.pin == nil {
		return Change{}, false
	}
	return l.release(now, CauseUnpin), true
}

// release hands a pinned ladder to its signals. What a pin put it on is no higher than
// it climbs to of itself for long: it comes down by its holds as from anywhere.
func (l *Ladder) release(now time.Time, why Cause) Change {
	from := l.rung
	l.pin = nil
	l.moved(now, l.rung, why)
	return Change{From: from, To: l.rung, Cause: why, Signal: l.signal, Acts: l.acts()}
}

// acts reports whether where the ladder stands is felt.
func (l *Ladder) acts() bool { return l.policy.Mode == Act || l.pin != nil }

// Acting is the rung that requests feel.
func (l *Ladder) Acting() Rung {
	if l.acts() {
		return l.rung
	}
	return 0
}

// Would is the rung on which the ladder stands, felt or not.
func (l *Ladder) Would() Rung { return l.rung }

// Held reports whether an operator's pin keeps the ladder where it is.
func (l *Ladder) Held() bool { return l.pin != nil }

// Pinned reports whether a pin is in force already: one that was given at the same moment, by
// the same author, for the same tier.
func (l *Ladder) Pinned(p *Pin) bool {
	return l.pin != nil && l.pin.At.Equal(p.At) && l.pin.Author == p.Author && l.pin.Tier == p.Tier
}

// Raised is what put the ladder up to where it stands.
func (l *Ladder) Raised() Raise { return l.raised }

// Since is when it came to stand on its rung.
func (l *Ladder) Since() time.Time { return l.since }

// Restless reports whether time alone, or the next signal, may move the ladder.
func (l *Ladder) Restless() bool { return l.rung > 0 || l.pin != nil || !l.over.IsZero() }

// Earliest is how long it takes at least until the ladder is below a tier: what is
// refused for that tier has no use in coming sooner. 0 where it is already.
func (l *Ladder) Earliest(now time.Time, t Tier) (d time.Duration) {
	if l.rung.Tier() < t || t == None {
		return 0
	}
	if l.pin != nil {
		d = max(d, l.pin.Expires.Sub(now))
	} else if at := l.calm; !at.IsZero() {
		d -= now.Sub(at)
	}
	for r := l.rung; r >= RungOf(t); r-- {
		d += l.holds(r)
	}
	return max(d, 0)
}

// View is a picture of a ladder.
type View struct {
	Mode   Mode
	Rung   Rung // where it stands
	Acting Rung // what requests feel: 0 in shadow
	Since  time.Duration
	Cause  Cause
	Signal Signal
	Pin    *Pin
	Hold   time.Duration // of the rung, 0 on the ground
	Calm   time.Duration // for how long the rung's bounds have been kept
	Next   Bounds        // that the next rung begins at; zero on the last
	Exit   Bounds        // that this one ends at; zero on the ground
}

// View is a picture of the ladder now.
func (l *Ladder) View(now time.Time) View {
	v := View{Mode: l.policy.Mode, Rung: l.rung, Acting: l.Acting(), Cause: l.cause, Signal: l.signal}
	if l.pin != nil {
		pin := *l.pin
		v.Pin = &pin
	}
	if !l.since.IsZero() {
		v.Since = now.Sub(l.since)
	}
	if l.rung < last(l.policy.Top) {
		v.Next = l.policy.Steps[(l.rung + 1).Tier()].Enter
	}
	if l.rung > 0 {
		v.Hold, v.Exit = l.holds(l.rung), l.policy.Steps[l.rung.Tier()].Exit
	}
	if !l.calm.IsZero() {
		v.Calm = now.Sub(l.calm)
	}
	return v
}
