package fleet

import (
	"cmp"
	"slices"
	"time"
)

// Fail stops the replica at once, as a crash does: every job ends with Lost and
// what it had generated, the prefix cache is gone, and nothing is taken until
// Restart. Failing one that is down changes nothing.
func (r *Replica) Fail(now time.Time) {
	r.stop(now)
	r.down, r.ready = true, time.Time{}
}

// Restart starts the replica afresh: it serves after Profile.StartUp, with an
// empty prefix cache. Jobs of one that was serving end as in Fail. The speed
// stays as it was set.
func (r *Replica) Restart(now time.Time) {
	r.stop(now)
	r.down, r.ready = false, time.Time{}
	if r.profile.StartUp > 0 {
		r.ready = r.at.Add(r.profile.StartUp)
	}
}

// SetSpeed makes all that follows the current step take 1000/permille of the
// profile's time: 500 is half as fast. Permille is clamped to 10 … 100,000.
func (r *Replica) SetSpeed(now time.Time, permille int64) {
	r.run(now)
	r.pace = r.profile.pace(permille)
}

func (r *Replica) health() Health {
	switch {
	case r.down:
		return Down
	case !r.ready.IsZero():
		return Starting
	}
	return Serving
}

// stop ends every job, the running ones first, each in its order.
func (r *Replica) stop(now time.Time) {
	r.run(now)
	r.at, r.frac, r.stepping = r.seen(now), 0, false
	for len(r.running) > 0 {
		r.lose(r.running[0])
	}
	for j := r.head(); j != nil; j = r.head() {
		r.lose(j)
	}
	r.cache.reset(r.profile.BlockTokens)
}

func (r *Replica) lose(j *job) {
	got := j.tokens(r.decodes)
	if j.state == Waiting {
		r.waiting = r.waiting[1:]
		delete(r.jobs, j.id)
	} else {
		r.remove(j)
	}
	r.totals.Failed++
	r.events = append(r.events, Progress{ID: j.id, Tokens: got, Cached: j.cached, At: r.at, Done: true, Fault: Lost})
}

// Fail takes the provider down: every job in flight ends with Lost, and Submit
// answers 503 until Restart. Failing one that is down changes nothing.
func (h *Hosted) Fail(now time.Time) {
	h.stop(now)
	h.down, h.ready = true, time.Time{}
}

// Restart brings the provider back: it serves after Service.StartUp. Jobs of one
// that was serving end as in Fail. Rates, speed and faults stay as they are.
func (h *Hosted) Restart(now time.Time) {
	h.stop(now)
	h.down, h.ready = false, time.Time{}
	if h.service.StartUp > 0 {
		h.ready = h.now.Add(h.service.StartUp)
	}
}

// SetSpeed makes all that is still to come, also of jobs in flight, take
// 1000/permille of the service's time. Permille is clamped to 10 … 100,000.
func (h *Hosted) SetSpeed(now time.Time, permille int64) {
	h.run(now)
	permille = min(max(permille, 10), 100_000)
	for _, id := range h.inFlight() {
		c := h.jobs[id]
		next := c.mark // of the next token
		if got := h.generated(c); got >= c.from {
			next = c.mark.Add(time.Duration(got+1-c.from) * c.pace)
			c.from = got + 1
		}
		c.mark = h.now.Add(scaled(next.Sub(h.now), h.speed, permille))
		c.pace = scaled(h.service.TokenTime, wholeSpeed, permille)
		h.plan(c)
	}
	h.speed = permille
}

// SetFaults changes what share of the calls from now on fails, and how.
func (h *Hosted) SetFaults(now time.Time, f Faults) {
	h.run(now)
	h.faults = f
}

func (h *Hosted) health() Health {
	switch {
	case h.down:
		return Down
	case !h.ready.IsZero():
		return Starting
	}
	return Serving
}

// stop ends every job in order of submission.
func (h *Hosted) stop(now time.Time) {
	h.run(now)
	for _, id := range h.inFlight() {
		c := h.jobs[id]
		h.finish(c, Progress{ID: id, Tokens: h.generated(c), Cached: c.spec.Cached, At: h.now, Done: true, Fault: Lost})
	}
}

func (h *Hosted) inFlight() []JobID {
	ids := make([]JobID, 0, len(h.jobs))
	for id := range h.jobs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, cmp.Compare[JobID])
	return ids
}

// scaled is a time at one speed told at another.
func scaled(d time.Duration, from, to int64) time.Duration {
	return time.Duration(int64(d) * from / to)
}
