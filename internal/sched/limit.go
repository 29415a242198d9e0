package sched

import (
	"time"

	"sluice"
)

// Limit is how many attempts one backend is given at a time, found from how its
// answers come. It is pure: the time comes in, and a clock that steps back is not
// followed.
//
// # Signals
//
// Raw times are of no use: they vary a thousandfold with the tokens. Two that do
// not are taken of each answer ([Sample]):
//
//	queue delay d = time to first token − predicted prefill      (a line in the uncached input, learnt)
//	token time t  = time since the last sample ÷ tokens since    (against a, that of the idle backend, learnt)
//
// What an idle backend takes is learnt where it can be seen: from windows in which
// at most quiet attempts ran, in both directions, and from others downwards alone.
// So load never passes for slowness. A backend that was never seen idle is judged
// by the line that its windows lie on while the limit grows for the first time.
//
// # Model
//
// An engine that batches n answers takes t = a + b·n for a token of each, prefill
// of those that follow included: more at a time is more throughput, and slower
// for each. The objective is t ≤ P, P being LimitBounds.Token, or tolerance × a. A
// window, of half a second if it has samples enough, gives one (n, t), n being what
// really ran; their mean over the latest windows estimates the limit as
//
//	n·(P − a)/(t − a)          while t ≤ P: the line through (0, a) and (n, t)
//	(P·(a + b·n)/t − a)/b      while t > P: the backend is t/(a + b·n) times as slow as it was, in all that it does
//
// Both are n where t = P, so whatever has changed, they settle there. Neither
// depends on the limit itself: one whose attempts have yet to end is not lowered
// again for them. Of those that ran when an answer was dispatched λ·d had to wait
// inside the backend, λ being how many end in a second: λ·(d − D) fewer is the
// second estimate, and the lesser of the two counts.
//
// # Steps
//
// The limit goes half of the way down, or a quarter of the way up and at most
// 1/16 and one in a window. It grows only while it binds: n ≥ limit/2. It turns back
// for no less than 1/20, and 1/10 within ten seconds. The mean looks back on some
// four seconds; on one when windows in a row say that the backend has become
// another. So a change of speed is followed as soon as it is seen, but what was let
// in ends when it ends: the limit settles within 20 seconds for answers that last
// ten, and noise does not move it.
//
// A provider whose answers do not slow each other down is not given less for being
// slow: what does not become better with three eighths of it is taken as given
// ([Limit.blame]), and until that is known a quarter stays.
//
// A refusal for want of capacity ([Limit.Overloaded]) puts the limit at 7/8 of
// what ran, at half of itself at least; near what had been too much it then grows by
// one, or 1/32, in five seconds. Hints of others ([Limit.Lower]) only lower it.
type Limit struct {
	bounds LimitBounds
	now    time.Time
	value  int64 // in 1/unit

	idle  int64 // a, in ns; 0 is unknown
	slope int64 // b, in ns × unit per attempt; 0 is unknown
	begin trend // prefill

	grown            trend // (n, t) of windows until the limit was first lowered, for a backend that was never seen idle
	wasIdle, lowered bool
	up               bool      // the last step was upwards
	moved            time.Time // when it was taken

	recent point     // mean of the latest windows
	delay  int64     // mean of the latest queue delays, in ns
	fall   fall      // what the limit is being lowered for
	given  given     // what lowering it has not mended
	pardon time.Time // until then given grows
	room   int64     // mean of what the latest queue delays say, in 1/unit; 0 while they are short
	ended  int64     // attempts that end in a thousand seconds
	brisk  time.Time // until then recent follows faster: the backend has just become another
	off    int64     // windows in a row that were far from what recent says, with their sign

	opened time.Time // the window
	paces  lot
	delays lot
	ran    int64 // Σ in flight over the samples of paces
	ranAll int64 // and over all
	starts int64 // Σ Start over delays
	done   int64 // attempts that ended whole
	all    int64

	tooMany    int64     // what ran when the backend last refused for want of capacity
	refused    time.Time // when
	nextGrowth time.Time // near tooMany
}

// LimitBounds is what a Limit keeps to.
type LimitBounds struct {
	Start, Min, Max int64         // Min = Max is a fixed limit
	Token           time.Duration // longest time for an output token; 0 is tolerance × that of the idle backend
	Queue           time.Duration // longest wait inside the backend before prefill begins; 0 takes DefaultQueueDelay
}

// Sample is what one answer has shown since its last sample. Parts that are zero
// teach nothing.
type Sample struct {
	InFlight int64 // attempts on the backend now

	First   time.Duration // from the dispatch to the first token
	Start   int64         // attempts on the backend right after the dispatch
	Prefill sluice.Tokens // uncached input before it

	Tokens sluice.Tokens // output since the last sample, of one choice
	Took   time.Duration // and how long it took

	Ended bool // it is whole
}

// Defaults and constants of a Limit.
const (
	DefaultLimit      = 16   // where an adaptive limit starts
	DefaultMaxLimit   = 1024 // what it grows to where nothing else bounds it
	DefaultQueueDelay = 500 * time.Millisecond

	tolerance  = 3 // objective ÷ token time of the idle backend
	unit       = 16
	quiet      = 2
	window     = 500 * time.Millisecond
	longWindow = 4 * time.Second
	least      = 4 // samples in a window
	fewSamples = 16
	turnAfter  = 10 * time.Second
	briskFor   = 20 * time.Second
	blameAfter = 3 * time.Second
	pardonFor  = 10 * time.Second
	nearMemory = 5 * time.Minute
	nearGrowth = 5 * time.Second
	mostNanos  = int64(10 * time.Second) // of one token
)

// point is a window: what ran, in 1/unit, and the token time in ns.
type point struct{ n, t int64 }

// SetBounds puts other bounds into force. What is learnt stays.
func (l *Limit) SetBounds(b LimitBounds) {
	b.Min = max(b.Min, 1)
	b.Max = max(b.Max, b.Min)
	if b == l.bounds {
		return
	}
	fresh := l.bounds == LimitBounds{} || l.bounds.Min == l.bounds.Max
	l.bounds = b
	if fresh {
		l.value = b.Start * unit
	}
	l.set(l.value)
}

// Value is the limit, within its bounds.
func (l *Limit) Value() int64 { return l.value / unit }

// Adaptive reports whether it can move.
func (l *Limit) Adaptive() bool { return l.bounds.Max > l.bounds.Min }

// Objective is the longest time for an output token as it is understood now, 0
// while nothing is known.
func (l *Limit) Objective() time.Duration {
	if l.bounds.Token > 0 {
		return l.bounds.Token
	}
	return time.Duration(l.idle * tolerance)
}

func (l *Limit) set(v int64) { l.value = min(max(v, l.bounds.Min*unit), l.bounds.Max*unit) }

// tick takes the time; an older moment than the latest counts as that one.
func (l *Limit) tick(now time.Time) time.Time {
	if now.Before(l.now) {
		return l.now
	}
	l.now = now
	return now
}

// Observe takes a sample and, at the end of a window, moves the limit.
func (l *Limit) Observe(now time.Time, s Sample) {
	if !l.Adaptive() {
		return
	}
	now = l.tick(now)
	if l.opened.IsZero() || now.Sub(l.opened) > 2*longWindow { // what lies between two busy times is no window
		l.open(now)
	}
	s.InFlight = max(s.InFlight, 1)
	if s.First > 0 {
		l.delays.add(l.begin.delay(s.Prefill, s.First, s.InFlight <= quiet), 1)
		l.starts += max(s.Start, 1)
	}
	if s.Tokens > 0 && s.Took > 0 {
		l.paces.add(min(int64(s.Took)/int64(s.Tokens), mostNanos), int64(s.Tokens))
		l.ran += s.InFlight
	}
	if s.Ended {
		l.done++
	}
	l.ranAll += s.InFlight
	l.all++
	age := now.Sub(l.opened)
	if age >= longWindow || age >= window && max(l.paces.n, l.delays.n) >= least {
		l.close(now)
		l.open(now)
	}
}

func (l *Limit) open(now time.Time) {
	l.opened = now
	l.paces.n, l.delays.n, l.ran, l.ranAll, l.all, l.starts, l.done = 0, 0, 0, 0, 0, 0, 0
}

// close ends a window: it learns, estimates, and moves.
func (l *Limit) close(now time.Time) {
	if l.all == 0 {
		return
	}
	n := l.ranAll * unit / l.all
	want := int64(0) // 0: no objection to more
	if l.paces.n > 0 {
		p := point{l.ran * unit / l.paces.n, l.paces.mean()}
		n = p.n
		l.learn(p)
		l.average(now, p)
		want = l.estimate(l.recent)
	}
	age := max(int64(now.Sub(l.opened)), 1)
	l.ended += (l.done*int64(1000*time.Second)/age - l.ended) / 8
	if l.delays.n > 0 {
		d := l.delays.mean()
		l.delay += (d - l.delay) / 4
		if 2*(d-l.given.delay) > l.patience()-l.given.delay {
			room := l.starts/l.delays.n*unit + (l.patience()-d)/1000*l.ended/int64(time.Second)*unit
			if l.room == 0 {
				l.room = room
			}
			l.room += (room - l.room) / 4
		} else {
			l.room = 0
		}
	}
	if l.room != 0 {
		want = lesser(want, max(l.room, 1))
	}
	l.blame(now)
	l.move(now, n, want)
}

func (l *Limit) queue() time.Duration {
	if l.bounds.Queue > 0 {
		return l.bounds.Queue
	}
	return DefaultQueueDelay
}

// patience is the mean queue delay that is steered to, in ns: most are then within
// the objective.
func (l *Limit) patience() int64 { return int64(l.queue())*3/8 + l.given.delay }

// aim is the token time that the limit is steered to: a little below the
// objective, since answers differ.
func (l *Limit) aim() int64 {
	p := int64(l.Objective())
	return max(p-p/20, l.given.token+l.given.token/8)
}

// move takes the limit towards want, n having run.
func (l *Limit) move(now time.Time, n, want int64) {
	up, down, back := l.value/32, l.value/32, l.value/10 // it turns back for more than it goes on for
	if now.Sub(l.moved) > turnAfter {
		back = l.value / 20
	}
	if l.up {
		down = back
	} else {
		up = back
	}
	switch {
	case want > 0 && want < l.value-down:
		l.lowered, l.up, l.moved = true, false, now
		if l.fall.n == 0 {
			l.fall = fall{n: max(l.recent.n, n), token: l.recent.t, delay: l.delay, worst: now}
		}
		to := l.value - (l.value-want+1)/2
		if !l.fall.judged {
			to = max(to, min(l.value, l.fall.n/4))
		}
		l.set(to)
	case 2*n < l.value || want > 0 && want <= l.value+up:
	case now.Sub(l.refused) < nearMemory && l.value >= l.tooMany-l.tooMany/8 && !l.refused.IsZero():
		if !now.Before(l.nextGrowth) {
			l.nextGrowth = now.Add(nearGrowth)
			l.set(l.value + max(unit, l.value/32))
		}
	default:
		step := l.value/16 + unit
		if want > 0 {
			step = min(step, (want-l.value+3)/4)
		}
		l.up, l.moved, l.fall = true, now, fall{}
		l.set(l.value + step)
	}
}

// Overloaded notes a refusal of the backend for want of capacity, while inFlight
// others ran.
func (l *Limit) Overloaded(now time.Time, inFlight int64) {
	if !l.Adaptive() {
		return
	}
	now = l.tick(now)
	n := max(inFlight, 1) * unit
	to := max(n-n/8, l.value/2) // one refusal of few is more likely the trouble of others
	l.tooMany, l.refused, l.nextGrowth = max(n, to), now, now.Add(nearGrowth)
	if to < l.value {
		l.lowered = true
		l.set(to)
	}
}

// Lower takes a hint that the backend would do better with at most n: the limit
// goes down by 1/16 towards it, never up.
func (l *Limit) Lower(now time.Time, n int64) {
	if !l.Adaptive() || n*unit >= l.value {
		return
	}
	l.tick(now)
	l.lowered = true
	l.set(max(n*unit, l.value-l.value/16-1))
}

// lesser is the smaller of two estimates, of which 0 is none.
func lesser(a, b int64) int64 {
	if a == 0 || b < a {
		return b
	}
	return a
}
