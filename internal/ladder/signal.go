package ladder

import "time"

// Signal is what a ladder is moved by, at one moment. Batch is in none of the figures:
// it is there to wait.
type Signal struct {
	Age     time.Duration // how long what waits longest has, what its caller's own limits keep back aside
	Own     time.Duration // the same of class interactive alone
	KV      int64         // of the memory in use, thousandths; 0 where it has no bound
	Waits   bool          // something waits for room
	Refused int64         // of the arrivals of the last seconds those refused for want of room, thousandths
}

// Cause is what moved a ladder.
type Cause uint8

// The causes.
const (
	CauseNone Cause = iota
	CauseAge
	CauseKV
	CauseRefused
	CauseCalm    // all signals were within the bounds for long enough
	CausePin     // an operator said so
	CauseUnpin   // likewise
	CauseExpired // the pin did
	CauseConfig  // the configuration did
)

var causeWords = [...]string{"", "queue_age", "kv", "refused", "calm", "pin", "unpin", "pin_expired", "config"}

func (c Cause) String() string { return causeWords[c] }

// Window counts arrivals and refusals over the last seconds.
type Window struct {
	at    int64 // the second of the newest bucket, since base
	base  time.Time
	count [windowSeconds]counted
}

type counted struct{ arrived, refused int64 }

// The window, and how many arrivals in it say something.
const (
	windowSeconds = 10
	leastArrivals = 10
)

// Arrived counts an arrival.
func (w *Window) Arrived(now time.Time) { w.bucket(now).arrived++ }

// Refused counts a refusal of something that arrived.
func (w *Window) Refused(now time.Time) { w.bucket(now).refused++ }

// Share is the refusals' part of the arrivals, in thousandths, and 0 of few.
func (w *Window) Share(now time.Time) int64 {
	w.bucket(now)
	var all counted
	for _, c := range w.count {
		all.arrived += c.arrived
		all.refused += c.refused
	}
	if n := max(all.arrived, all.refused); n >= leastArrivals {
		return all.refused * whole / n
	}
	return 0
}

func (w *Window) bucket(now time.Time) *counted {
	if w.base.IsZero() {
		w.base = now
	}
	second := max(int64(now.Sub(w.base)/time.Second), w.at)
	if second-w.at >= windowSeconds {
		w.count, w.at = [windowSeconds]counted{}, second
	}
	for w.at < second {
		w.at++
		w.count[w.at%windowSeconds] = counted{}
	}
	return &w.count[w.at%windowSeconds]
}
