package fair

import (
	"time"

	"sluice"
	"sluice/internal/route"
)

// phase is where a request is, by the log.
type phase uint8

const (
	unknown phase = iota
	asking
	waits
	runs
	between // an attempt failed; another may follow
	over
)

// Conservation judges that every request goes through its life in order and ends
// once, that after every event
//
//	enqueued = dispatched + shed + left + waiting
//
// for every pool, that what a backend holds is the sum over the requests that run
// there and within its capacity, and that the engine says the same of itself.
func Conservation(l *Log) error {
	c := &conservation{log: l, state: make([]phase, len(l.Requests)), taken: make([]held, len(l.Requests)), pools: map[sluice.PoolID]*counts{}, used: map[sluice.BackendID]route.Capacity{}}
	for i := range l.Events {
		if err := c.event(&l.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

type conservation struct {
	log      *Log
	state    []phase
	taken    []held
	pools    map[sluice.PoolID]*counts
	used     map[sluice.BackendID]route.Capacity
	capacity map[sluice.BackendID]route.Capacity
	open     int
	running  int
}

type counts struct{ enqueued, dispatched, shed, left, waiting int }

type held struct {
	on sluice.BackendID
	of route.Capacity
}

func (c *conservation) fail(e *Event, format string, args ...any) error {
	return violation("conservation", e.At, format, args...)
}

func (c *conservation) event(e *Event) error {
	switch e.Kind {
	case Capacity:
		c.capacity = capacities(c.log.Tables[e.Tables])
		return nil
	case Down, Up:
		return nil
	case Gauge:
		return c.gauge(e)
	}
	from, to := step2(e.Kind)
	at := &c.state[e.Req]
	ok := false
	for _, p := range from {
		ok = ok || *at == p
	}
	if !ok {
		return c.fail(e, "request %d: %v in phase %d", e.Req, e.Kind, *at)
	}
	*at = to
	q := &c.log.Requests[e.Req]
	p := c.pools[q.Pool]
	if p == nil {
		p = &counts{}
		c.pools[q.Pool] = p
	}
	switch e.Kind {
	case Enqueue:
		p.enqueued++
		p.waiting++
		if from := c.taken[e.Req]; from.on != "" {
			return c.fail(e, "request %d waits and holds %+v", e.Req, from)
		}
		if !c.attempted(e.Req) {
			c.open++
		}
	case Dispatch:
		p.dispatched++
		p.waiting--
		c.running++
		if err := c.take(e, q); err != nil {
			return err
		}
	case First:
		c.answered(e.Req)
	case End, Fail:
		c.running--
		c.give(e.Req)
		if e.Kind == End {
			c.open--
		}
	case Shed:
		p.shed++
		p.waiting--
		c.open--
	case Leave:
		p.left++
		p.waiting--
		c.open--
	}
	if p.enqueued != p.dispatched+p.shed+p.left+p.waiting || p.waiting < 0 {
		return c.fail(e, "pool %s: %+v", q.Pool, *p)
	}
	return nil
}

// step2 is the life of a request: the phases in which an event may come, and the
// one that follows.
func step2(k Kind) (from []phase, to phase) {
	switch k {
	case Arrive:
		return []phase{unknown}, asking
	case Refuse:
		return []phase{asking}, over
	case Enqueue:
		return []phase{asking, between}, waits
	case Dispatch:
		return []phase{waits}, runs
	case First, Correct:
		return []phase{runs}, runs
	case End:
		return []phase{runs}, over
	case Fail:
		return []phase{runs}, between
	default: // Shed, Leave
		return []phase{waits}, over
	}
}

// attempted reports whether the request has failed before: then it is open
// already.
func (c *conservation) attempted(req int) bool { return c.taken[req].of.Concurrency < 0 }

func (c *conservation) take(e *Event, q *Request) error {
	capacity, ok := c.capacity[e.Backend]
	if !ok {
		return c.fail(e, "request %d runs on %s, which no table has", e.Req, e.Backend)
	}
	n := need(q, capacity)
	u := c.used[e.Backend]
	u.Concurrency, u.KVTokens, u.PrefillTokens = u.Concurrency+1, u.KVTokens+n.KVTokens, u.PrefillTokens+n.PrefillTokens
	if !fits(capacity, u) {
		return c.fail(e, "backend %s is given %+v of %+v", e.Backend, u, capacity)
	}
	c.used[e.Backend] = u
	c.taken[e.Req] = held{e.Backend, n}
	return nil
}

func (c *conservation) answered(req int) {
	h := &c.taken[req]
	u := c.used[h.on]
	u.PrefillTokens -= h.of.PrefillTokens
	c.used[h.on] = u
	h.of.PrefillTokens = 0
}

func (c *conservation) give(req int) {
	h := c.taken[req]
	u := c.used[h.on]
	c.used[h.on] = route.Capacity{Concurrency: u.Concurrency - 1, KVTokens: u.KVTokens - h.of.KVTokens, PrefillTokens: u.PrefillTokens - h.of.PrefillTokens}
	c.taken[req] = held{of: route.Capacity{Concurrency: -1}}
}

// gauge holds the engine's figures against the log.
func (c *conservation) gauge(e *Event) error {
	s := e.State
	running, waiting := 0, 0
	for b, has := range s.Backends {
		if has != c.used[b] {
			return c.fail(e, "backend %s: the engine says %+v, the log %+v", b, has, c.used[b])
		}
		running += int(has.Concurrency)
	}
	for p, n := range s.Waiting {
		if at := c.pools[p]; at != nil && n != at.waiting || at == nil && n != 0 {
			return c.fail(e, "pool %s: the engine says %d wait, the log %+v", p, n, at)
		}
		waiting += n
	}
	if s.Running != c.running || running > c.running || s.Open != running+waiting {
		return c.fail(e, "the engine says %d open, %d run; the log %d wait, %d run", s.Open, s.Running, waiting, c.running)
	}
	return nil
}

func capacities(t *route.Table) map[sluice.BackendID]route.Capacity {
	out := map[sluice.BackendID]route.Capacity{}
	for _, p := range t.Pools {
		for _, b := range p.Backends {
			c := b.Capacity
			if c.Concurrency == 0 {
				c.Concurrency = route.DefaultConcurrency
			}
			out[b.ID] = c
		}
	}
	return out
}

// need is what a request takes of a backend; what is larger than it runs alone.
func need(q *Request, c route.Capacity) route.Capacity {
	n := route.NeedOf(q.Work.Input, q.Work.CachedInput, q.Work.OutputHold)
	if c.KVTokens > 0 {
		n.KV = min(n.KV, c.KVTokens)
	}
	if c.PrefillTokens > 0 {
		n.Prefill = min(n.Prefill, c.PrefillTokens)
	}
	return route.Capacity{Concurrency: 1, KVTokens: n.KV, PrefillTokens: n.Prefill}
}

func fits(capacity, used route.Capacity) bool {
	return used.Concurrency <= capacity.Concurrency &&
		(capacity.KVTokens == 0 || used.KVTokens <= capacity.KVTokens) &&
		(capacity.PrefillTokens == 0 || used.PrefillTokens <= capacity.PrefillTokens)
}

// Waits are the times from arrival to the first place, and to the first token, of
// a client's requests that arrived from a moment on. What had none when the run
// ended counts as having it then.
func (l *Log) Waits(client int, from time.Duration) (place, token []time.Duration) {
	const never = time.Duration(-1)
	placed, answered := make([]time.Duration, len(l.Requests)), make([]time.Duration, len(l.Requests))
	for i := range l.Requests {
		placed[i], answered[i] = l.Ended, l.Ended
	}
	for _, e := range l.Events {
		switch e.Kind {
		case Dispatch:
			placed[e.Req] = min(placed[e.Req], e.At)
		case First:
			answered[e.Req] = min(answered[e.Req], e.At)
		case Refuse, Shed, Leave:
			placed[e.Req] = never
		}
	}
	for i := range l.Requests {
		if q := &l.Requests[i]; q.Client == client && q.At >= from && placed[i] != never {
			place = append(place, placed[i]-q.At)
			token = append(token, answered[i]-q.At)
		}
	}
	return place, token
}
