package route

import (
	"time"

	"sluice"
)

// Load is what an engine told of itself. It is a hint with an age: what runs by
// our own count is the authority, and a hint only lowers.
type Load struct {
	At         time.Time     // when it was so
	Every      time.Duration // how often it is asked
	Running    int64         // in the batch
	Waiting    int64         // inside the engine
	KVPermille int64         // used share of the memory; -1 if it was not told
	KVCapacity sluice.Tokens // its memory; 0 if it was not told
}

// The age of a hint, in the intervals at which it is asked.
const (
	freshFor = 2 // it counts
	staleAt  = 5 // from here on the backend is known less and less well
)

// busyKV is the used share of the memory, in thousandths, from which on the engine is
// about to preempt.
const busyKV = 950

// Loaded takes an engine's own figures. What waits inside of it lowers an adaptive
// limit by 1/16 for each report, towards the part of what we run that is in its
// batch; so does memory that is about to run out.
func (p *Place) Loaded(now time.Time, l Load) {
	now = p.tick(now)
	if l.KVCapacity <= 0 {
		l.KVCapacity = p.load.KVCapacity
	}
	waited := p.load.crowded() && l.crowded() // twice in a row: what has just come in waits for its first step
	if l.At.After(p.load.At) {
		p.load = l
		p.stir()
	}
	switch {
	case waited && p.running > 0:
		p.limit.Lower(now, max(1, p.running*l.Running/(l.Running+l.Waiting)))
	case l.KVPermille >= busyKV && p.running > 1:
		p.limit.Lower(now, p.running-1)
	}
}

// crowded reports whether more waits in the engine than what is on its way into
// the next step.
func (l *Load) crowded() bool { return l.Waiting > l.Running/8+1 }

// fresh reports whether the hint is young enough to count.
func (l *Load) fresh(now time.Time) bool {
	return !l.At.IsZero() && now.Sub(l.At) <= freshFor*l.Every
}

// kv is the memory in use, 0 where the hint is too old.
func (l *Load) kv(now time.Time, capacity sluice.Tokens) sluice.Tokens {
	if l.KVPermille <= 0 || !l.fresh(now) {
		return 0
	}
	return sluice.Tokens(int64(capacity) / 1000 * min(l.KVPermille, 1000))
}

// slots lowers an adaptive limit while the engine has not told of itself for
// more than staleAt intervals: by 1/16 for each further one, to half at most. It is
// lowered and not stopped, since what it answers is known all the same.
func (l *Load) slots(now time.Time, limit int64, adaptive bool) int64 {
	if !adaptive || l.At.IsZero() || l.Every <= 0 {
		return limit
	}
	late := int64(now.Sub(l.At)/l.Every) - staleAt
	return max(1, limit-limit*min(max(late, 0), 8)/16)
}
