package route

import (
	"time"

	"sluice"
)

// Fit tells why the backend may be given nothing at all now, Chosen if it may.
func (p *Place) Fit(now time.Time) Left {
	if p.steady() {
		return Chosen
	}
	return p.fit(now)
}

// sound reports whether nothing is the matter with the backend, as most often, whatever
// the time.
func (p *Place) sound() bool {
	return p.Health.sound() && !p.drained && !p.shunned && len(p.lanes) > 0 && p.lanes[0].sound()
}

// fit is Fit of a place that is not steady.
func (p *Place) fit(now time.Time) Left {
	now = p.tick(now)
	switch {
	case p.drained:
		return LeftDrained
	case p.Health.off:
		return Chosen
	case !p.Health.Usable(now):
		return LeftUnhealthy
	case p.shunned && !(p.Health.due(now) && !p.domain.probing()):
		return LeftDomain
	}
	paused := false
	for _, l := range p.lanes {
		if !l.gone && l.usable(now) {
			return Chosen
		}
		paused = paused || !l.gone && l.state() == CredentialUsable
	}
	if paused { // by a 429
		return LeftUnhealthy
	}
	return LeftParked
}

// FitWith is Fit for what must go with one credential; with any if it is empty.
func (p *Place) FitWith(now time.Time, only string) Left {
	if only == "" && p.steady() {
		return Chosen
	}
	return p.fitWith(now, only)
}

func (p *Place) fitWith(now time.Time, only string) Left {
	left := p.Fit(now)
	if only == "" || left != Chosen || p.Health.off {
		return left
	}
	l := p.named(only)
	switch {
	case l == nil:
		return LeftParked
	case l.usable(p.now):
		return Chosen
	case l.state() == CredentialUsable: // paused by a 429
		return LeftUnhealthy
	}
	return LeftParked
}

// named is the lane of a credential that the backend has, nil if it has none of that name.
func (p *Place) named(key string) *lane {
	for _, l := range p.lanes {
		if l.key.ID == key && !l.gone {
			return l
		}
	}
	return nil
}

// Serves reports whether the backend takes requests, and more than a probe.
func (p *Place) Serves(now time.Time) bool {
	return p.Backend.Weight > 0 && p.Fit(now) == Chosen && !p.Health.Open()
}

// Avoided reports whether the backend's domain has failed: it is to be given a
// request only where there is no other.
func (p *Place) Avoided() bool { return p.domain != nil && p.domain.open && !p.Health.off }

// Cooling reports whether the backend is kept out, and until when as far as that is
// by time alone.
func (p *Place) Cooling(now time.Time) (until time.Time, cooling bool) {
	return p.CoolingWith(now, "")
}

// CoolingWith is Cooling for what must go with one credential.
func (p *Place) CoolingWith(now time.Time, only string) (until time.Time, cooling bool) {
	now = p.tick(now)
	if p.Health.off {
		return time.Time{}, false
	}
	var keys time.Time
	found := false
	for _, l := range p.lanes {
		if l.gone || only != "" && l.key.ID != only {
			continue
		}
		if at := l.until(); !found || at.Before(keys) {
			keys, found = at, true
		}
	}
	if until, _ = p.Health.Cooling(now); keys.After(until) {
		until = keys
	}
	return until, now.Before(until)
}

// Resumes is when a backend of which nothing is wrong but that it asked to be left
// alone for a while (429, 529, Retry-After) may be given requests again, those that must
// go with one credential if that is named; false if it is not that, or something else is
// in the way.
func (p *Place) Resumes(now time.Time, only string) (at time.Time, paced bool) {
	now = p.tick(now)
	h := &p.Health
	if h.off || h.phase == open || h.probing || p.shunned {
		return time.Time{}, false
	}
	for _, l := range p.lanes {
		if !l.gone && (only == "" || l.key.ID == only) && l.state() == CredentialUsable && (at.IsZero() || l.paused.Before(at)) {
			at, paced = l.paused, true
		}
	}
	if h.paused.After(at) {
		at = h.paused
	}
	return at, paced && now.Before(at)
}

// RampEnds is when a backend that comes back has all of its share; false if none does.
func (p *Place) RampEnds(now time.Time) (time.Time, bool) {
	h := &p.Health
	if h.phase != ramping || h.off || h.Share(p.tick(now)) >= 1000 {
		return time.Time{}, false
	}
	return h.ramp.Add(h.rules().Ramp), true
}

// State is how the backend is, in a word: "healthy"; "cooling", its breaker being
// open or having asked for a pause; "probing"; "ramping"; "held", in use though it
// fails, since its pool has no other; "avoided", its failure domain having failed;
// "parked" or "disabled", for want of a credential; "drained", by an operator.
func (p *Place) State(now time.Time) string {
	now = p.tick(now)
	h := &p.Health
	switch {
	case p.drained:
		return "drained"
	case h.off:
		return "healthy"
	case h.probing:
		return "probing"
	case now.Before(h.paused) || h.phase == open:
		return "cooling"
	}
	switch p.Fit(now) {
	case LeftUnhealthy:
		return "cooling"
	case LeftDomain:
		return "avoided"
	case LeftParked:
		for _, l := range p.lanes {
			if !l.gone && l.state() == CredentialParked {
				return string(CredentialParked)
			}
		}
		return string(CredentialDisabled)
	}
	switch {
	case h.held:
		return "held"
	case h.Share(now) < 1000:
		return "ramping"
	}
	return "healthy"
}

// Ended learns from an attempt's end: for the breaker, and for the credential. It
// reports whether what the backend may be given has changed. Call Give next.
func (p *Place) Ended(now time.Time, t *Taken, e Ending) (changed bool) {
	now = p.tick(now)
	e.slow, e.trip, e.probe = t.slow, t.trip, t.probe
	e.late = e.Why == sluice.LostRace && p.overdue(t)
	changed = p.endLane(now, t, e.Why)
	if e.Why == sluice.ReasonNone && t.at > t.lane.struck {
		t.lane.strikes = 0
	}
	if e.Why == sluice.UpstreamLimited && !e.Overload {
		if e.RetryAfter <= 0 && e.Credential && t.lane.state() == CredentialUsable { // else it is out by itself
			e.RetryAfter = p.backOff(t)
		}
		changed = p.pauseLane(now, t.lane, e.RetryAfter) || changed
		e.RetryAfter = 0
	}
	if changed = p.Health.ended(now, e) || changed; changed {
		p.stir()
	}
	p.rejoin = p.rejoin || changed && (p.Health.phase != closed || p.Fit(now) != Chosen)
	return changed
}

// overdue reports whether an attempt has no content by when that is slow.
func (p *Place) overdue(t *Taken) bool {
	most := p.Health.rules().FirstToken
	return most > 0 && !t.shown && time.Duration(p.at-t.at) > most
}

// Probed takes the outcome of a probe outside of requests. It reports whether that
// changed what the backend may be given.
func (p *Place) Probed(now time.Time, ok bool) (changed bool) {
	now = p.tick(now)
	if changed = p.Health.probed(now, ok); changed {
		p.stir()
	}
	p.rejoin = p.rejoin || changed
	return changed
}

// Pause keeps the backend out for a while: it asked for it. It only lengthens.
func (p *Place) Pause(now time.Time, d time.Duration) {
	if p.Health.pause(p.tick(now), d) {
		p.rejoin = true
		p.stir()
	}
}

// Drain keeps new attempts from the backend, or lets them come again. It reports whether
// that changed anything.
func (p *Place) Drain(drain bool) (changed bool) {
	changed = p.drained != drain
	p.drained = drain
	p.stir()
	return changed
}

// Drained reports whether an operator keeps new attempts from the backend.
func (p *Place) Drained() bool { return p.drained }
