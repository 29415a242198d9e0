package route

import (
	"time"

	"sluice"
)

// Health is a backend's breaker: whether its attempts show it fit to be used. The
// zero value is closed, with the default policy.
type Health struct {
	policy BreakerPolicy
	set    bool // policy has its defaults
	off    bool // nothing keeps it out

	phase   phase
	ailing  bool      // opened by a share of failures: it still answers some
	held    bool      // kept in use in spite of such a share, being the last of its pool
	trips   uint32    // how often it has opened: attempts of before count no more
	fails   int64     // in a row
	cool    time.Time // open: no probe before
	paused  time.Time // it asked for nothing before
	probing bool      // one request finds out
	ramp    time.Time // of ramping: since when
	base    time.Time // of parts of windows
	recent  outcomes
}

type phase uint8

const (
	closed phase = iota
	open
	ramping
)

// Configure puts a policy into force. With off the backend is usable whatever
// happens to it. What was learnt stays.
func (h *Health) Configure(p BreakerPolicy, off bool) {
	before := h.policy.Window
	h.policy, h.set = p.WithDefaults(), true
	if h.policy.Window != before { // parts of another length
		h.recent = outcomes{at: h.part(h.base)}
	}
	h.off = off
	h.probing = h.probing && !off
}

func (h *Health) rules() *BreakerPolicy {
	if !h.set {
		h.policy, h.set = h.policy.WithDefaults(), true
	}
	return &h.policy
}

// Usable reports whether the backend may be given a request.
func (h *Health) Usable(now time.Time) bool {
	switch {
	case h.off:
		return true
	case now.Before(h.paused):
		return false
	case h.phase == open:
		return !h.probing && !now.Before(h.cool)
	}
	return true
}

// sound reports whether the backend is usable whatever the time.
func (h *Health) sound() bool { return h.phase != open && h.paused.IsZero() }

// Cooling reports whether the backend is kept out, and until when. A probe that
// runs has no end: its own end decides.
func (h *Health) Cooling(now time.Time) (until time.Time, cooling bool) {
	until = h.paused
	if h.phase == open && h.cool.After(until) {
		until = h.cool
	}
	return until, !h.off && now.Before(until)
}

// Open reports whether the breaker is open: nothing has completed since it opened.
// One real request is its probe.
func (h *Health) Open() bool { return !h.off && h.phase == open }

// Held reports whether the backend fails so much that it would be out, were it not
// the last of its pool.
func (h *Health) Held() bool { return h.held && !h.off }

// due reports whether the next request is the probe.
func (h *Health) due(now time.Time) bool { return h.Open() && h.Usable(now) }

// Share is the part of its share that the backend may have, in thousandths: from
// RampStart after a probe's success, in a straight line over the ramp, to 1000.
func (h *Health) Share(now time.Time) int64 {
	if h.phase != ramping || h.off {
		return 1000
	}
	return ramp(now.Sub(h.ramp), h.rules().Ramp)
}

// started notes an attempt: on an open backend it is the probe. What it returns is
// to be told of its end.
func (h *Health) started(now time.Time) (trip uint32, probe bool) {
	if h.phase == ramping && h.Share(now) >= 1000 {
		h.phase = closed
	}
	if h.due(now) {
		h.probing, probe = true, true
	}
	return h.trips, probe
}

// Ending is how an attempt ended, for the breaker.
type Ending struct {
	Why        sluice.Reason
	RetryAfter time.Duration // what was asked for, 0 if nothing: it only lengthens
	Overload   bool          // of an UpstreamLimited: by a backend short of capacity (529), and not for a rate of its credential (429)
	Credential bool          // of an UpstreamLimited: for a rate of its credential (429)
	Last       bool          // no other backend of its pool is fit to be used

	slow  bool
	late  bool // of one that lost a race: its first content should have come
	trip  uint32
	probe bool
}

// ended learns from an attempt's end. It reports whether what the backend may be
// given has changed.
func (h *Health) ended(now time.Time, e Ending) (changed bool) {
	v := verdictOn(e.Why)
	if e.RetryAfter > 0 && (e.Why == sluice.UpstreamLimited || v == failed && e.RetryAfter > h.rules().Cooldown) {
		changed = h.pause(now, e.RetryAfter)
	}
	if e.probe && h.probing {
		h.probing, changed = false, true
		switch v {
		case alive:
			h.restore(now)
		case failed:
			h.fails++
			h.trip(now, h.ailing)
		}
		return changed
	}
	if h.phase == open && h.ailing && e.trip == h.trips-1 {
		h.dies(v)
	}
	if e.trip != h.trips || h.phase == open || v == silent && !e.late {
		return changed // it began before the breaker opened, and is no news
	}
	bad := v == failed || e.slow || e.late
	switch v {
	case failed:
		h.fails++
	case alive:
		h.fails = 0
	}
	return h.judge(now, bad, e.Last) || changed
}

// judge counts an outcome and opens the breaker if that is due. The last backend of
// a pool that answers some of what it is sent stays: to refuse all would be worse.
func (h *Health) judge(now time.Time, bad, last bool) (changed bool) {
	p := h.rules()
	h.recent.add(h.part(now), bad)
	switch {
	case h.fails >= p.Failures:
		h.trip(now, false)
		return true
	case !h.recent.over(p):
		changed = h.held && h.recent.ended >= p.Volume
		h.held = h.held && !changed
		return changed
	case last:
		changed, h.held = !h.held, true
		return changed
	}
	h.trip(now, true)
	return true
}

// dies counts how an attempt ended that ran as the breaker opened by a share: where
// these fail in a row too, the backend answers nothing, and is not taken back for want
// of another.
func (h *Health) dies(v verdict) {
	switch v {
	case failed:
		h.fails++
	case alive:
		h.fails = 0
	}
	h.ailing = h.fails < h.rules().Failures
}

// trip opens the breaker.
func (h *Health) trip(now time.Time, ailing bool) {
	h.phase, h.ailing, h.held = open, ailing, false
	h.trips++
	h.recent = outcomes{at: h.recent.at}
	if until := now.Add(h.rules().Cooldown); until.After(h.cool) {
		h.cool = until
	}
}

// restore takes an open backend back through the ramp.
func (h *Health) restore(now time.Time) {
	h.phase, h.ramp, h.fails, h.ailing = ramping, now, 0, false
	h.cool = time.Time{}
}

// release takes a backend that answers some of what it is sent back at once, since
// its pool has no other. It is as if it had not opened: what ran then is news again.
func (h *Health) release() {
	if h.off || h.phase != open || !h.ailing || h.probing {
		return
	}
	h.phase, h.held, h.ailing = closed, true, false
	h.cool = time.Time{}
	h.trips--
}

// probed takes the outcome of a probe outside of requests. A success takes an open
// backend back through the ramp, though not before it asked for; a failure counts
// in a row, and keeps an open one out for a cool-down more. It reports whether that
// changed anything.
func (h *Health) probed(now time.Time, ok bool) (changed bool) {
	switch {
	case ok && h.phase == open && !h.probing:
		h.restore(now)
		return true
	case ok:
		h.fails = 0
		return false
	case h.phase == open:
		before := h.cool
		if until := now.Add(h.rules().Cooldown); until.After(before) {
			h.cool = until
		}
		return h.cool != before
	}
	if h.fails++; h.fails < h.rules().Failures {
		return false
	}
	h.trip(now, false)
	return true
}

// pause only lengthens.
func (h *Health) pause(now time.Time, d time.Duration) (longer bool) {
	if until := now.Add(min(d, MaxPause)); d > 0 && until.After(h.paused) {
		h.paused, longer = until, true
	}
	return longer
}

// part is the part of the window that a moment is in.
func (h *Health) part(now time.Time) int64 {
	if h.base.IsZero() {
		h.base = now
	}
	return int64(now.Sub(h.base) / max(h.rules().Window/numOutcomes, 1))
}

type verdict uint8

const (
	silent verdict = iota // tells nothing about the backend
	alive
	failed
)

func verdictOn(why sluice.Reason) verdict {
	switch why {
	case sluice.ReasonNone, sluice.UpstreamRefused, sluice.UpstreamLimited, sluice.HookRefused, sluice.HookFailed:
		return alive
	case sluice.UpstreamConnect, sluice.UpstreamTLS, sluice.UpstreamError, sluice.UpstreamTimeout,
		sluice.UpstreamStalled, sluice.UpstreamTruncated, sluice.UpstreamMalformed, sluice.UpstreamTooLarge,
		sluice.UpstreamRedirect:
		return failed
	}
	return silent
}

// Retryable reports whether an attempt that failed before content may be followed
// by another elsewhere. A refusal (4xx) would be refused there too.
func Retryable(why sluice.Reason) bool {
	return why == sluice.UpstreamLimited || verdictOn(why) == failed
}
