package sched

import (
	"time"
)

// fall is a time during which the limit only went down: what ran when it began,
// and the worst that was measured since.
type fall struct {
	n, token, delay int64
	worst           time.Time // when token or delay was last exceeded
	judged          bool      // less has made it better
}

// given is what the backend takes whatever runs there, in ns; 0 is nothing.
type given struct{ token, delay int64 }

// blame finds out whether what the limit is lowered for becomes better by it. Three
// in eight of them that are as slow are not slow because of each other: the
// provider is, and to give it less would only be a second harm. Until that is known
// the limit keeps a quarter of what ran.
func (l *Limit) blame(now time.Time) {
	p := l.recent
	if p.t <= int64(l.Objective()) {
		l.given.token = 0
	}
	if l.delay <= int64(l.queue())*3/8 {
		l.given.delay = 0
	}
	if now.Before(l.pardon) { // what came before was of fewer, and some of it from before
		l.given = given{max(l.given.token, min(p.t, 2*l.given.token)), max(l.given.delay, min(l.delay, 2*l.given.delay))}
	}
	f := &l.fall
	if f.n == 0 || f.judged {
		return
	}
	f.n = max(f.n, p.n)
	if p.t > f.token+f.token/32 || l.delay > f.delay+f.delay/32 {
		f.token, f.delay, f.worst = max(f.token, p.t), max(f.delay, l.delay), now
	}
	if 8*p.n > 3*f.n || now.Sub(f.worst) < blameAfter {
		return
	}
	f.judged = true
	if p.t > l.aim() && p.t >= f.token-f.token/16 {
		l.given.token = p.t
	}
	if l.delay > l.patience() && l.delay >= f.delay-f.delay/8 {
		l.given.delay = l.delay
	}
	if l.given != (given{}) {
		l.set(max(l.value, p.n))
		l.pardon = now.Add(pardonFor)
	}
}

// average takes a window into the mean of the latest ones, or begins it anew when
// two windows in a row say that the backend has become another.
func (l *Limit) average(now time.Time, p point) {
	if l.recent.n == 0 {
		l.recent = p
		return
	}
	expected := l.idle + scaled(l.recent.t-l.idle, p.n, l.recent.n)
	weight, sure := int64(8), int64(3)
	if l.paces.n < fewSamples {
		weight, sure = 16, 4
	}
	switch {
	case p.t > expected+3*expected/8:
		l.off = max(l.off, 0) + 1
	case p.t < expected-3*expected/8:
		l.off = min(l.off, 0) - 1
	default:
		l.off = 0
	}
	if l.off > 0 && p.t > l.aim()+l.aim()/2 { // it matters
		sure--
	}
	if l.off >= sure || l.off <= -sure {
		weight = 2
		l.brisk = now.Add(briskFor)
	} else if now.Before(l.brisk) {
		weight = 3
	}
	l.recent.n += (p.n - l.recent.n) / weight
	l.recent.t += (p.t - l.recent.t) / weight
}

// learn takes a window into the references.
func (l *Limit) learn(p point) {
	switch {
	case l.idle == 0:
		l.idle = p.t
	case p.t < l.idle:
		l.idle -= (l.idle - p.t + 1) / 2
	case p.n <= quiet*unit:
		l.idle += (p.t - l.idle) / 4
	}
	if l.wasIdle = l.wasIdle || p.n <= quiet*unit; !l.wasIdle && !l.lowered { // look back along the line
		l.grown.learn(p.n, p.t/1000)
		if s := l.grown.spread; l.grown.seen >= lineWarm && s > (l.grown.x/4)*(l.grown.x/4) {
			l.idle = min(max(l.grown.at(unit)*1000, l.idle/2), p.t)
		}
	}
	if p.t > l.idle && 2*p.n >= l.value && p.n <= l.value+l.value/8 {
		b := (p.t - l.idle) * unit * unit / p.n
		if l.slope == 0 {
			l.slope = b
		}
		l.slope += (b - l.slope) / 32
	}
}

// estimate is the limit at which the token time would be the one aimed at, in
// 1/unit; 0 if it would be at any.
func (l *Limit) estimate(p point) int64 {
	a, aim := max(l.idle, l.given.token), l.aim()
	switch {
	case p.t <= a+a/16 && p.t <= aim:
		return 0
	case p.t <= aim:
		return scaled(p.n, aim-a, p.t-a)
	case l.slope == 0:
		return max(scaled(p.n, max(aim-a, 0), p.t-a), 1)
	}
	expected := a + scaled(l.slope, p.n, unit*unit)
	rest := scaled(aim, expected, p.t) - a
	if rest <= 0 {
		return 1
	}
	return max(min(scaled(rest, unit*unit, l.slope), p.n), 1)
}
