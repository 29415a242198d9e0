package quota

import (
	"time"

	"sluice"
)

// calendar knows the fixed UTC windows in force. A window is identified by the hour
// of its start, counted from 1970; a run's, which has no place in the calendar, by 1.
//
// Invariant: it never moves to an earlier window. A wall clock that goes back
// stays in the window it had reached.
type calendar struct {
	window [sluice.NumWindows]int64 // their numbers; only fixed windows and a run's are used
	ends   *windowEnds
	next   int64 // the first of them to end
	turn   int32 // how often a window has begun: an account that has seen it need not look
}

// windowEnds are when the fixed windows in force end, in Unix seconds. They do not change:
// another turn of the calendar has others.
type windowEnds [sluice.NumWindows]int64

// theRun is the number of a run's only window.
const theRun = 1

// advance moves to the windows that now is in.
func (c *calendar) advance(now time.Time) {
	unix := now.Unix()
	if unix < c.next {
		return
	}
	c.turn++
	c.window[sluice.PerRun] = theRun
	ends := &windowEnds{}
	if c.ends != nil {
		*ends = *c.ends
	}
	for w := sluice.PerHour; w <= sluice.PerMonth; w++ {
		if unix >= ends[w] {
			c.window[w], ends[w] = windowAt(w, unix)
		}
	}
	c.ends, c.next = ends, min(ends[sluice.PerHour], ends[sluice.PerDay], ends[sluice.PerMonth])
}

// until is how long a window still lasts.
func (e *windowEnds) until(w sluice.Window, now time.Time) time.Duration {
	return time.Unix(e[w], 0).Sub(now.Round(0))
}

const hour = 3600 // seconds

// windowAt is the number of the fixed window that contains a Unix second, and when
// it ends.
func windowAt(w sluice.Window, unix int64) (window, end int64) {
	switch w {
	case sluice.PerHour:
		start := unix - unix%hour
		return start / hour, start + hour
	case sluice.PerDay:
		start := unix - unix%(24*hour)
		return start / hour, start + 24*hour
	default:
		y, m, _ := time.Unix(unix, 0).UTC().Date()
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC).Unix() / hour, time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
}
