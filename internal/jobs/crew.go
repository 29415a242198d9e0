package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sluice"
)

// What is bounded of the lines in flight whatever the configuration says.
const (
	flightBytes = 64 << 20 // of their bodies
	claimGroup  = 64       // lines that are claimed at a time
	mostPause   = 15 * time.Second
	holdPause   = time.Minute // where a limit is spent: that it is raised is seen after it

	yieldAbove = 5 * time.Millisecond // of waiting for capacity
	yieldEach  = time.Second
)

// work is one job that this process works at.
type work struct {
	id     JobID
	kind   Kind
	ctx    context.Context // of its lines
	cancel context.CancelCauseFunc

	unwanted chan struct{} // closed once the job is being cancelled, for what providers have
	recalled bool          // it has been; the foreman's

	reading sync.Mutex
	reader  *Reader // guarded by reading; nil until it is needed

	look time.Time // when lines of lost workers are looked for; the foreman's

	// The rest is guarded by crew.mu.
	job     Job
	claimed []Line // that have not begun, by number
	running int    // lines that have begun and are not posted
	parked  int    // of lines that have begun, those that a provider has
	allow   int    // lines that may run at a time, as refusals have it
	pause   time.Time
	dry     time.Time // nothing is to be claimed before
	served  int64     // when a line of it began last, as a count
	pace    pace
	step    bool      // a step of it is under way
	waits   int       // refusals in a row
	well    int       // lines that ended well since allow grew
	yielded time.Time // when it may yield again
	held    *held     // nil if the store knows
}

// team is the lines of one tenant.
type team struct {
	running int
	weight  int64
	served  int64
}

// crew is what this process works at, and whose turn it is.
type crew struct {
	mu      sync.Mutex
	jobs    map[JobID]*work
	tenants map[sluice.TenantID]*team
	running int
	bytes   int64
	turn    int64 // counts lines that began
	held    bool  // no line begins any more
}

// limit is how many lines of a job may run at a time here. REQUIRES: crew.mu is held.
func (w *work) limit(b *Bounds) int {
	most := b.Lines << w.pace.urgency
	if w.allow > 0 {
		most = min(most, w.allow)
	}
	return most
}

// ready reports whether a line of the job may begin. REQUIRES: mu is held.
func (c *crew) ready(w *work, b *Bounds, now time.Time) bool {
	return w.job.State == InProgress && w.running < w.limit(b) && !now.Before(w.pause) && now.Before(w.job.Deadline) &&
		(len(w.claimed) > 0 || !now.Before(w.dry))
}

// pick is the job whose turn it is: of the tenant that has the fewest lines in flight for
// its weight, and was served longest ago; of its jobs the one that has the fewest, and
// ends first. nil if none may begin a line. REQUIRES: mu is held.
func (c *crew) pick(b *Bounds, now time.Time) *work {
	if c.held || c.running >= b.Total {
		return nil
	}
	var best *work
	for _, w := range c.jobs {
		t := c.team(w.job.Caller.Tenant)
		if t.running >= b.PerTenant || !c.ready(w, b, now) {
			continue
		}
		if best == nil || c.before(w, t, best, c.team(best.job.Caller.Tenant)) {
			best = w
		}
	}
	return best
}

func (c *crew) before(a *work, at *team, b *work, bt *team) bool {
	if at != bt {
		if d := cmp.Compare(int64(at.running)*bt.weight, int64(bt.running)*at.weight); d != 0 {
			return d < 0
		}
		if at.served != bt.served {
			return at.served < bt.served
		}
	}
	return cmp.Or(cmp.Compare(a.running, b.running), a.job.Deadline.Compare(b.job.Deadline), cmp.Compare(a.job.ID, b.job.ID)) < 0
}

// team is that of a tenant. REQUIRES: mu is held.
func (c *crew) team(t sluice.TenantID) *team {
	v := c.tenants[t]
	if v == nil {
		v = &team{weight: 1}
		c.tenants[t] = v
	}
	return v
}

// begin takes the next claimed line of a job, if there is room for it. REQUIRES: mu is
// held.
func (c *crew) begin(w *work) (Line, bool) {
	if len(w.claimed) == 0 {
		return Line{}, false
	}
	l := w.claimed[0]
	if c.running > 0 && c.bytes+int64(l.Bytes) > flightBytes {
		return Line{}, false
	}
	w.claimed = w.claimed[1:]
	t := c.team(w.job.Caller.Tenant)
	c.turn++
	w.running, t.running, c.running = w.running+1, t.running+1, c.running+1
	w.served, t.served = c.turn, c.turn
	c.bytes += int64(l.Bytes)
	return l, true
}

// park gives back what a line had that has been handed over, and is expected back at a
// time.
func (c *crew) park(w *work, l Line, expected time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.team(w.job.Caller.Tenant)
	w.running, t.running, c.running = w.running-1, t.running-1, c.running-1
	w.parked++
	away := &w.pace.away
	if away.lines = max(away.lines, w.parked); expected.After(away.expected) {
		away.expected = expected
	}
	c.bytes -= int64(l.Bytes)
}

// end gives back what a line had, and learns from how it ended.
func (c *crew) end(w *work, l Line, out *outcome, b *Bounds, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if out.handed {
		w.parked--
		w.pace.away.lines = max(w.pace.away.lines-1, w.parked)
		w.dry = time.Time{} // it may be waiting again
		return
	}
	t := c.team(w.job.Caller.Tenant)
	w.running, t.running, c.running = w.running-1, t.running-1, c.running-1
	c.bytes -= int64(l.Bytes)
	t.weight = max(t.weight, 1)
	if out.weight > 0 {
		t.weight = out.weight
	}
	w.meets(out, now)
	switch {
	case out.refused != nil:
		most := mostPause
		if holdOf(out.refused, now, 0) != nil {
			most = holdPause
		}
		w.refused(out.Due, most, b, now)
	case out.Result != nil && out.Result.State == LineSucceeded:
		w.waits = 0
		if out.queued > yieldAbove && w.pace.urgency == Relaxed {
			w.yield(b, now)
			return
		}
		w.grow(b)
	}
}

// grow lets one more line of a job run at a time, once as many as may have ended well.
// REQUIRES: crew.mu is held.
func (w *work) grow(b *Bounds) {
	if w.allow == 0 {
		return
	}
	if w.well++; w.well < w.allow {
		return
	}
	w.well = 0
	if w.allow++; w.allow >= b.Lines<<w.pace.urgency {
		w.allow = 0 // no bound of its own
	}
}

// yield lets fewer lines of a job that has time run at a time, since one had to wait for
// capacity: somebody else wants it. What follows from it is to show before it is done again.
// REQUIRES: crew.mu is held.
func (w *work) yield(b *Bounds, now time.Time) {
	if now.Before(w.yielded) {
		return
	}
	w.allow, w.well, w.yielded = max(w.limit(b)/2, 1), 0, now.Add(yieldEach)
}

// refused makes a job wait of which a line was refused, for most at most, and lets fewer of
// its lines run at a time: half as many for each time that it waits. REQUIRES: crew.mu is
// held.
func (w *work) refused(due time.Time, most time.Duration, b *Bounds, now time.Time) {
	w.dry = now // the line is waiting again
	if now.Before(w.pause) {
		return // by the same cause
	}
	w.waits++
	wait := min(max(due.Sub(now), leastWait<<min(w.waits-1, 4)), most)
	w.pause = now.Add(wait)
	w.allow, w.well = max(w.limit(b)/2, 1), 0
}

// begun is how many lines have begun here and are not posted.
func (c *crew) begun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// next is when something may begin that may not now, zero if nothing is known of.
func (c *crew) next(b *Bounds, now time.Time) (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.jobs {
		for _, t := range [...]time.Time{w.pause, w.dry} {
			if t.After(now) && (at.IsZero() || t.Before(at)) {
				at = t
			}
		}
	}
	return at
}

// list is the jobs in the order of their ids.
func (c *crew) list() []*work {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*work, 0, len(c.jobs))
	for _, w := range c.jobs {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *work) int { return cmp.Compare(a.job.ID, b.job.ID) })
	return out
}
