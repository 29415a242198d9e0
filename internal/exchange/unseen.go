package exchange

import (
	"time"

	"sluice"
	"sluice/internal/estimate"
)

// times is when an attempt's answer came, from the moment that it was sent.
// Zero durations are of what did not happen.
type times struct {
	sent      time.Time
	head      time.Duration // the headers
	first     time.Duration // content reached the client
	firstSeen sluice.Tokens // what had been delivered by then
	whole     time.Duration // the end of the attempt
}

// end notes the end of the attempt, once.
func (t *times) end() {
	if t.whole == 0 {
		t.whole = since(t.sent)
	}
}

// withUnseen adds to what was seen of an attempt that was cut the output that
// nobody saw.
//
// An answer in one piece is generated before any of it shows: as far as the time
// until it was given up, or its headers came, lets expect, but never more than the
// hold, since the time tells nothing of a backend that hangs. So is hidden
// reasoning, until the first content. A backend that does not stop with the
// connection goes on to the end, as far off as it was for others that had come
// as far; one that told of an error has ended there.
func (t *turn) withUnseen(a *attempt, u sluice.Usage) sluice.Usage {
	if !t.r.Head.Op.Generates() {
		u.Output = max(u.Output, t.plan.work.Output)
		return u
	}
	stops := t.stops(a)
	switch {
	case !t.r.Head.Stream:
		n, known := t.generated(a, a.times.untilHead())
		switch {
		case !known:
			n = t.plan.work.Output
		case n < t.plan.work.OutputHold: // else it may be one that hangs
			a.least = n
		}
		if known {
			byTime(&u)
		}
		if !stops {
			n = t.remaining(a, n)
		}
		u.Output = max(u.Output, n-u.Reasoning)
	case !stops && !a.told:
		a.least = u.OutputTotal()
		u.Output = max(u.Output, t.remaining(a, a.least)-u.Reasoning)
	case a.tap.Covered() == 0:
		if n := t.hidden(a); n > u.Reasoning {
			u.Reasoning = n
			byTime(&u)
		}
	}
	return u
}

// byTime says that what was estimated was so by the time that it had.
func byTime(u *sluice.Usage) {
	if u.Source == sluice.UsageEstimated {
		u.Source = sluice.UsageTimed
	}
}

// untilHead is how long a whole answer was generated for, as far as is known.
func (t *times) untilHead() time.Duration {
	if t.head > 0 {
		return t.head
	}
	return t.whole
}

// generated is what a backend is expected to have generated after a while, over
// all choices; false if nothing is known of it.
func (t *turn) generated(a *attempt, after time.Duration) (sluice.Tokens, bool) {
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	n, ok := t.x.o.Learned.Generated(placeOf(a), after)
	return min(n*t.choices(), t.plan.work.OutputHold, t.bound(a)), ok
}

// remaining is what an answer that had come to least has in the end.
func (t *turn) remaining(a *attempt, least sluice.Tokens) sluice.Tokens {
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	return t.x.o.Learned.Remaining(t.key(a.place.Backend), least, t.bound(a))
}

// hidden is the hidden reasoning of a stream that was cut, in which none was
// told: what models that reason in hiding generate until their first content.
func (t *turn) hidden(a *attempt) sluice.Tokens {
	t.x.mu.Lock()
	hides := t.x.o.Learned.Hides(placeOf(a))
	t.x.mu.Unlock()
	if !hides {
		return 0
	}
	after := a.times.whole
	if a.times.first > 0 {
		after = a.times.first
	}
	n, _ := t.generated(a, after)
	return max(n-a.times.firstSeen, 0)
}

// learnCut takes into the estimates that an answer which the client did not wait for
// had come to some length, where the backend goes on to the end of it.
func (t *turn) learnCut(a *attempt) {
	if a.least <= 0 || a.failure == nil || a.failure.Kind != sluice.KindCancelled || a.place.Backend.StopsOnCancel || t.behind() || !a.sent {
		return
	}
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	t.x.o.Learned.ObserveCut(t.key(a.place.Backend), a.least, t.bound(a))
}

// learnPace takes into the estimates how long a complete answer took.
func (t *turn) learnPace(a *attempt, u sluice.Usage) {
	if a.failure != nil || u.Anomalous || t.r.Free || t.behind() || !t.r.Head.Op.Generates() {
		return
	}
	n := t.choices()
	p := estimate.Timing{Output: u.OutputTotal() / n, Hidden: max(u.Reasoning-a.tap.Reasoned(), 0) / n, Whole: a.times.untilHead()}
	if t.r.Head.Stream {
		p.Whole, p.First, p.FirstOutput = a.times.whole, a.times.first, p.Hidden+a.times.firstSeen/n
	}
	t.x.mu.Lock()
	defer t.x.mu.Unlock()
	t.x.o.Learned.ObservePace(placeOf(a), p)
}

// choices is how many answers are generated side by side.
func (t *turn) choices() sluice.Tokens { return sluice.Tokens(max(t.r.Head.Choices, 1)) }

func placeOf(a *attempt) estimate.Place {
	return estimate.Place{Backend: string(a.place.Backend.ID), Model: a.place.Backend.Model}
}
