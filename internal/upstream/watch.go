package upstream

import (
	"math"
	"sync/atomic"
	"time"

	"sluice"
)

// stage is what an attempt waits for.
type stage int64

const (
	stageHeaders stage = iota
	stageFirst
	stageIdle
	stageRate
	stageTotal
	stageRest // what follows an answer that is over

	stageBits = 3
)

// expiry is why the watch ended an attempt.
type expiry struct {
	stage stage
	limit time.Duration
}

func (e *expiry) Error() string {
	if e.stage == stageRest {
		return "rest not read in time"
	}
	return map[stage]string{
		stageHeaders: "no headers in ", stageFirst: "no first token in ", stageIdle: "silent for ",
		stageRate: "slower than the least rate over ", stageTotal: "not done in ",
	}[e.stage] + e.limit.String()
}

func (e *expiry) reason() sluice.Reason {
	if e.stage == stageIdle || e.stage == stageRate {
		return sluice.UpstreamStalled
	}
	return sluice.UpstreamTimeout
}

// watch cancels an attempt when its deadline passes. One goroutine moves the
// deadline; the timer reads it when it fires and, where the deadline has moved
// on, fires again then.
type watch struct {
	start  time.Time
	expire func(*expiry)
	limits Timeouts
	stream bool
	timer  *time.Timer

	due atomic.Int64 // nanoseconds after start, shifted, with the stage in the low bits; 0 is none

	// Of the goroutine that reads the stream:
	first    bool          // content has come
	lotStart time.Duration // when the lot that the rate asks for began, after start, waiting time only
	lotBase  sluice.Tokens // tokens that had come by then
	waiting  time.Duration // waited in all for the stream, before the current wait
	since    time.Duration // when the current wait began, after start
	paused   time.Duration // when the last one ended, after start
}

// newWatch starts the clock. REQUIRES: limits have their defaults.
func newWatch(expire func(*expiry), limits Timeouts, stream bool) *watch {
	w := &watch{start: time.Now(), expire: expire, limits: limits, stream: stream}
	at, st := w.beforeContent()
	if stream && limits.Headers > 0 && (at <= 0 || limits.Headers < at) {
		at, st = limits.Headers, stageHeaders
	}
	at, st = w.capped(at, st)
	w.set(at, st)
	w.timer = time.AfterFunc(math.MaxInt64, w.fire) // set before it can fire
	if first := w.soonest(at); first > 0 {
		w.timer.Reset(first)
	}
	return w
}

// beforeContent is the deadline of the first content. An answer in one piece has
// none: its first token comes with its last.
func (w *watch) beforeContent() (time.Duration, stage) {
	if !w.stream {
		return 0, stageTotal
	}
	return w.limits.FirstToken, stageFirst
}

// soonest is when the timer fires first. A later stage may have a shorter
// deadline than the one it starts with, so the timer must not sleep past it:
// the shortest bound is the timer's longest sleep.
func (w *watch) soonest(at time.Duration) time.Duration {
	for _, d := range []time.Duration{w.limits.Idle, w.limits.rateWindow()} {
		if d > 0 && (at <= 0 || d < at) {
			at = d
		}
	}
	return at
}

func (t Timeouts) rateWindow() time.Duration {
	if t.Rate <= 0 {
		return 0
	}
	return t.Window
}

// capped is the earlier of a deadline and the total one.
func (w *watch) capped(at time.Duration, st stage) (time.Duration, stage) {
	if w.limits.Total > 0 && (at <= 0 || w.limits.Total < at) {
		return w.limits.Total, stageTotal
	}
	return at, st
}

func (w *watch) set(at time.Duration, st stage) {
	if at <= 0 {
		w.due.Store(0)
		return
	}
	w.due.Store(int64(at)<<stageBits | int64(st))
}

// fire runs on the timer.
func (w *watch) fire() {
	packed := w.due.Load()
	due, st := time.Duration(packed>>stageBits), stage(packed&(1<<stageBits-1))
	now := time.Since(w.start)
	if due > 0 && due <= now {
		w.expire(&expiry{st, w.limitOf(st)})
		return
	}
	next := w.soonest(0)
	if due > 0 && (next <= 0 || due-now < next) {
		next = due - now
	}
	if next > 0 {
		w.timer.Reset(next)
	}
}

func (w *watch) limitOf(st stage) time.Duration {
	switch st {
	case stageHeaders:
		return w.limits.Headers
	case stageFirst:
		return w.limits.FirstToken
	case stageIdle:
		return w.limits.Idle
	case stageRate:
		return w.limits.Window
	}
	return w.limits.Total
}

// within allows what is left of an answer that is over a short while.
func (w *watch) within(d time.Duration) {
	w.set(w.capped(time.Since(w.start)+d, stageRest))
	w.timer.Reset(d)
}

// wait arms the watch before the goroutine blocks on the backend.
func (w *watch) wait() {
	now := time.Since(w.start)
	w.since = now
	at, st := w.beforeContent()
	if w.first {
		at, st = 0, stageIdle
		if w.limits.Idle > 0 {
			at = now + w.limits.Idle
		}
		if d := w.limits.rateWindow(); d > 0 {
			if end := now + d - (w.waiting - w.lotStart); at <= 0 || end < at {
				at, st = end, stageRate
			}
		}
	}
	w.set(w.capped(at, st))
}

// pause disarms all but the total deadline: what follows is not the backend's
// time.
func (w *watch) pause() {
	w.paused = time.Since(w.start)
	w.waiting += w.paused - w.since
	w.set(w.capped(0, stageTotal))
}

// progress notes content; tokens is the sum so far.
func (w *watch) progress(tokens sluice.Tokens) {
	if !w.first {
		w.first = true
		w.lotStart, w.lotBase = w.waiting, tokens
		return
	}
	if w.limits.Rate > 0 && int64(tokens-w.lotBase) >= w.limits.Rate*int64(w.limits.Window)/int64(time.Second) {
		w.lotStart, w.lotBase = w.waiting, tokens
	}
}

func (w *watch) stop() {
	w.timer.Stop()
}
