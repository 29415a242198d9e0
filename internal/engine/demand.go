package engine

import (
	"time"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// uncounted is asked of a request that is not counted of what is offered to its pool, or
// has left the queue.
const uncounted sluice.Tokens = -1

// asks is what the request is counted as.
func (r *request) asks() demand.Work {
	w, bound := &r.call.Work, r.asked
	return demand.Work{
		demand.Requests: 1, demand.Input: int64(w.Input), demand.Uncached: int64(max(0, w.Input-w.CachedInput)),
		demand.Output: int64(min(w.Output, bound)), demand.KV: int64(w.Input + min(w.OutputHold, bound)),
	}
}

func (r *request) kind() demand.Kind {
	if r.call.Class == sluice.Batch {
		return demand.Batch
	}
	return demand.Urgent
}

// count adds a request to what is offered to a pool.
func (e *Engine) count(r *request, p *pool) {
	r.asked = r.bound
	w := r.asks()
	p.base().meter.Offer(e.now, r.kind(), &w)
}

// joined counts a request that has joined a queue, unless its flow waits there for a
// limit of its caller: then it is counted when that lets it start.
func (e *Engine) joined(r *request) {
	r.asked = uncounted
	if !r.item.Parked() {
		e.count(r, r.pool)
	}
}

// leaves notes that a request waits no more.
func (e *Engine) leaves(r *request) {
	if r.asked != uncounted {
		w := r.asks()
		r.asked = uncounted
		r.pool.base().meter.Leave(e.now, r.kind(), &w)
	}
}

// retracts takes back what a request was counted as: its caller's own limit is what it
// waits for, or it is counted anew.
func (e *Engine) retracts(r *request) {
	if r.asked != uncounted {
		w := r.asks()
		r.asked = uncounted
		r.pool.base().meter.Retract(e.now, r.kind(), &w)
	}
}

// starts notes that a request has been dispatched.
func (e *Engine) starts(r *request) {
	if r.asked == uncounted {
		e.count(r, r.pool)
	}
	e.leaves(r)
}

// found lowers what was counted by the part of the prompt that turned out to be cached
// where the attempt went.
func (e *Engine) found(r *request) {
	less := demand.Work{demand.Uncached: min(r.asks()[demand.Uncached], int64(max(0, r.cached-r.call.Work.CachedInput)))}
	r.pool.base().meter.Correct(e.now, r.kind(), &less)
}

// scarce reports whether a refusal is for want of room. What a ladder refuses is: it
// gives service up because there is less capacity than demand.
func scarce(why sluice.Reason) bool {
	return why == sluice.Degraded || why == sluice.QueueFull || why == sluice.QueueTimeout || why == sluice.DeadlineUnmet || why == sluice.NoBackend
}

// turnedDown counts what a pool was offered and refused for want of room.
func (e *Engine) turnedDown(r *request, p *pool, why sluice.Reason) {
	if !scarce(why) {
		return
	}
	before := r.pool
	r.pool = p
	e.count(r, p)
	e.leaves(r)
	r.pool = before
}

// DemandView is what a pool is asked for beside what it supplies.
type DemandView struct {
	Ratios demand.Ratios // over the last ten seconds
	// Scaled says that backends of the pool are replicas, which Replicas and Desired are
	// of.
	Scaled   bool
	Replicas demand.Replicas
	Desired  int64
}

// demanded is what the pool is asked for.
func (p *pool) demanded(now time.Time) (v DemandView) {
	var use demand.Use
	all := p.supply(now, func(pl *route.Place) bool { return pl.Serves(now) })
	for _, pl := range p.places {
		use.Slots += pl.Running()
		use.KV += int64(pl.KVUsed(now))
	}
	held := p.queue.Service()
	v.Ratios = demand.Of(p.meter.Rates(now, demand.Short, true), held, use, &all)
	v.Replicas = p.replicas(now)
	if v.Scaled = v.Replicas.Listed > 0; !v.Scaled {
		return v
	}
	s := p.supply(now, func(pl *route.Place) bool { return pl.Backend.Replica && pl.Serves(now) })
	if v.Replicas.Serving == 0 {
		s = p.supply(now, func(pl *route.Place) bool { return pl.Backend.Replica && pl.Backend.Weight > 0 })
		s.Share(v.Replicas.Listed)
	}
	policy := p.spec.Scale
	rates, whole := p.meter.Peak(now, policy.Batch)
	runs := p.queue.Used()
	use = demand.Use{Slots: runs[sched.Slots], KV: runs[sched.KV]}
	if !policy.Batch {
		batch := p.queue.UsedBy(sluice.Batch)
		use.Slots, use.KV = use.Slots-batch[sched.Slots], use.KV-batch[sched.KV]
	}
	ratios := demand.Of(rates, held, use, &s)
	v.Desired = policy.Desire(v.Replicas, &ratios, s.Found, whole)
	return v
}

// replicas counts those of the pool.
func (p *pool) replicas(now time.Time) (r demand.Replicas) {
	out := int64(0)
	for _, pl := range p.places {
		switch {
		case !pl.Backend.Replica || pl.Backend.Weight <= 0:
			continue
		case pl.Serves(now):
			r.Serving, r.Ahead, out = r.Serving+1, r.Ahead+out, 0
		default:
			out++
		}
		r.Listed++
	}
	return r
}

// supply sums what some of the places supply; of what is not known of each of them,
// nothing.
func (p *pool) supply(now time.Time, of func(*route.Place) bool) (s demand.Supply) {
	n := 0
	known := [8]bool{}
	for i := range known {
		known[i] = true
	}
	sums := [8]*int64{&s.Slots, &s.KV, &s.Prefill, &s.Decode, &s.PerMinute[route.RateRequests], &s.PerMinute[route.RateInput], &s.PerMinute[route.RateOutput], &s.PerMinute[route.RateTokens]}
	for _, pl := range p.places {
		if !of(pl) {
			continue
		}
		n++
		c := &pl.Backend.Capacity
		has := [8]int64{pl.Slots(), int64(pl.KVCapacity()), c.PrefillRate, c.DecodeRate}
		for rate := range route.Rate(route.NumRates) {
			if _, all, ok := pl.RateLeft(now, rate); ok {
				has[4+rate] = all
			}
		}
		adaptive, _ := pl.Adaptive()
		s.Found = s.Found || adaptive
		for i, amount := range has {
			known[i] = known[i] && amount > 0
			*sums[i] += amount
		}
	}
	for i := range known {
		if !known[i] || n == 0 {
			*sums[i] = 0
		}
	}
	return s
}
