package quota

import (
	"time"

	"sluice"
)

// calendar knows the fixed UTC windows in force. A window is identified by the
// Unix second of its start; a run's, which has no place in the calendar, by 1.
//
// Invariant: it never moves to an earlier window. A wall clock that goes back
// stays in the window it had reached.
type calendar struct {
	start, end [sluice.NumWindows]int64 // Unix seconds; only fixed windows are used
}

// advance moves to the windows that now is in.
func (c *calendar) advance(now time.Time) {
	unix := now.Unix()
	c.start[sluice.PerRun] = theRun
	for w := sluice.PerHour; w <= sluice.PerMonth; w++ {
		if unix >= c.end[w] {
			c.start[w], c.end[w] = windowAt(w, unix)
		}
	}
}

// theRun is the identity of a run's only window.
const theRun = 1

// until is how long the window in force still lasts.
func (c *calendar) until(w sluice.Window, now time.Time) time.Duration {
	return time.Unix(c.end[w], 0).Sub(now.Round(0))
}

// windowAt is the fixed window that contains a Unix second.
func windowAt(w sluice.Window, unix int64) (start, end int64) {
	switch w {
	case sluice.PerHour:
		start = unix - unix%3600
		return start, start + 3600
	case sluice.PerDay:
		start = unix - unix%86400
		return start, start + 86400
	default:
		y, m, _ := time.Unix(unix, 0).UTC().Date()
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
}
