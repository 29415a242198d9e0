package route

import (
	"time"

	"sluice"
)

// The plain health rule.
const (
	FailThreshold = 3                // failures in a row that make a backend unhealthy
	Cooldown      = 10 * time.Second // before it gets a probe
	MaxPause      = 5 * time.Minute  // the longest pause that a backend can ask for
)

// Health is whether a backend may be used. The zero value is healthy.
type Health struct {
	fails   int       // in a row
	until   time.Time // unusable before
	probing bool      // one request finds out
	off     bool      // nothing keeps it out
}

// Usable reports whether the backend may be given a request.
func (h *Health) Usable(now time.Time) bool { return h.off || !h.probing && !now.Before(h.until) }

// Disable makes the backend usable whatever happens to it, or not any more.
func (h *Health) Disable(off bool) {
	h.off = off
	h.probing = h.probing && !off
}

// Cooling reports whether the backend is kept out, and until when. A probe that
// runs has no end: its own end decides.
func (h *Health) Cooling(now time.Time) (until time.Time, cooling bool) {
	return h.until, !h.off && now.Before(h.until)
}

// State is "healthy", "cooling" or "probing".
func (h *Health) State(now time.Time) string {
	switch {
	case h.off:
		return "healthy"
	case h.probing:
		return "probing"
	case now.Before(h.until):
		return "cooling"
	}
	return "healthy"
}

// Open reports whether the breaker is open: it failed so often that it was put
// to rest, and has completed nothing since. One real request is its probe.
func (h *Health) Open() bool { return !h.off && h.fails >= FailThreshold }

// started notes an attempt: on an unhealthy backend whose cool-down is over it is
// the probe.
func (h *Health) started(now time.Time) {
	if h.Open() && !now.Before(h.until) {
		h.probing = true
	}
}

// Ended learns from an attempt's end. It reports whether the backend's state
// changed.
func (h *Health) Ended(now time.Time, why sluice.Reason, retryAfter time.Duration) (changed bool) {
	was := *h
	switch verdictOn(why) {
	case alive:
		h.fails = 0
		if h.probing {
			h.until = time.Time{}
		}
		h.probing = false
	case failed:
		h.probing = false
		if h.fails++; h.fails >= FailThreshold {
			h.pause(now, Cooldown)
		}
	case silent:
		h.probing = false
	}
	if retryAfter > 0 && why == sluice.UpstreamLimited || retryAfter > Cooldown && verdictOn(why) == failed {
		h.pause(now, retryAfter)
	}
	return was != *h
}

// Pause keeps the backend out for a while: it asked for it.
func (h *Health) Pause(now time.Time, d time.Duration) { h.pause(now, d) }

// Restore takes the backend back at once: a probe outside of requests succeeded.
func (h *Health) Restore() { *h = Health{probing: h.probing, off: h.off} }

// pause only lengthens.
func (h *Health) pause(now time.Time, d time.Duration) {
	if until := now.Add(min(d, MaxPause)); until.After(h.until) {
		h.until = until
	}
}

type verdict uint8

const (
	silent verdict = iota // tells nothing about the backend
	alive
	failed
)

func verdictOn(why sluice.Reason) verdict {
	switch why {
	case sluice.ReasonNone, sluice.UpstreamRefused, sluice.UpstreamLimited:
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
