package hook

import "time"

// How a breaker opens and for how long.
const (
	breakAfter = 5 // failures in a row
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// breaker leaves a hook alone that has failed several times in a row. One call at a
// time then asks whether it is back. It is pure: the time is an argument.
type breaker struct {
	failures int
	pause    time.Duration
	until    time.Time // closed while zero
	probing  bool
}

// allow reports whether a call may be made. One that is allowed is told of to done.
func (b *breaker) allow(now time.Time) bool {
	if b.until.IsZero() {
		return true
	}
	if b.probing || now.Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

// left is how long the hook is left alone still.
func (b *breaker) left(now time.Time) time.Duration { return max(b.until.Sub(now), 0) }

// result is how a call ended.
type result uint8

const (
	answered result = iota
	failed
	abandoned // by its client: it says nothing of the hook
)

func (b *breaker) done(now time.Time, r result) {
	b.probing = false
	switch r {
	case answered:
		*b = breaker{}
	case failed:
		if b.failures++; b.failures < breakAfter {
			return
		}
		b.pause = min(max(2*b.pause, firstPause), maxPause)
		b.until = now.Add(b.pause)
	case abandoned:
	}
}
