package fleet

import (
	"container/heap"
	"time"

	"sluice"
)

// Hosted is a provider's account: jobs do not slow each other down, rates are
// limited. Make it with [NewHosted].
type Hosted struct {
	service  Service
	now      time.Time
	down     bool
	ready    time.Time // end of the start-up; zero when there is none to wait for
	speed    int64     // permille
	faults   Faults
	calls    uint64 // submitted or refused, not counting those refused while down
	next     JobID
	jobs     map[JobID]*call
	wakes    wakes
	requests bucket
	tokens   bucket
	totals   Totals
	used     sluice.Tokens // Σ input of the jobs in flight
	events   []Progress
	spare    []Progress
}

type call struct {
	id     JobID
	spec   Job
	from   sluice.Tokens // a token that it will have
	mark   time.Time     // at this moment, the later ones by the pace from here
	pace   time.Duration // between two tokens
	last   sluice.Tokens // it ends with this one
	fault  Fault         // how it will end
	wake   time.Time     // when it next has something to report
	expect sluice.Tokens
	begun  bool // the first token has been reported
}

// NewHosted makes an idle account with full rate buckets.
func NewHosted(s Service) *Hosted {
	s = s.withDefaults()
	return &Hosted{
		service: s, jobs: map[JobID]*call{}, speed: wholeSpeed, faults: s.Faults,
		requests: bucket{perMinute: s.RequestsPerMinute, level: s.RequestsPerMinute * minuteUnits},
		tokens:   bucket{perMinute: int64(s.TokensPerMinute), level: int64(s.TokensPerMinute) * minuteUnits},
	}
}

// Submit starts a job. It fails with a *StatusError while the provider is down
// or when it is overloaded, with ErrQueueFull when as many as the account allows
// are in flight, and with a *LimitError when a rate is used up.
func (h *Hosted) Submit(now time.Time, spec Job) (JobID, error) {
	h.run(now)
	if h.health() != Serving {
		return 0, &StatusError{Status: 503, RetryAfter: h.faults.RetryAfter}
	}
	h.calls++
	if h.drawn(drawOverload, h.faults.OverloadPermille) {
		return 0, &StatusError{Status: 529, RetryAfter: h.faults.RetryAfter}
	}
	if h.service.Concurrency > 0 && len(h.jobs) >= h.service.Concurrency {
		return 0, ErrQueueFull
	}
	need := int64(spec.Input + spec.Output)
	if wait := h.requests.wait(h.now, 1); wait > 0 {
		return 0, &LimitError{RetryAfter: wait}
	}
	if wait := h.tokens.wait(h.now, need); wait > 0 {
		return 0, &LimitError{Tokens: true, RetryAfter: wait}
	}
	h.requests.take(1)
	h.tokens.take(need)
	if spec.Cached == 0 {
		spec.Cached = spec.Input * sluice.Tokens(h.service.HitPermille) / 1000
	}
	spec.Cached = min(max(spec.Cached, 0), spec.Input)
	h.next++
	c := &call{id: h.next, spec: spec, last: spec.Output}
	h.fate(c)
	h.time(c)
	h.jobs[c.id] = c
	h.used += spec.Input
	h.totals.Submitted++
	h.totals.CacheHits += spec.Cached
	h.plan(c)
	return c.id, nil
}

// fate draws how the call ends.
func (h *Hosted) fate(c *call) {
	switch {
	case h.drawn(drawError, h.faults.ErrorPermille):
		c.last, c.fault = 0, ServerError
	case c.spec.Output > 1 && h.drawn(drawBreak, h.faults.BreakPermille):
		u := draw(h.service.Seed, h.calls, drawBreakAt)
		c.last, c.fault = 1+sluice.Tokens(below(u, int64(c.spec.Output-1))), ServerError
	}
}

// time sets when the call's tokens come.
func (h *Hosted) time(c *call) {
	fill := int64(c.spec.Input-c.spec.Cached) * int64(time.Second) / h.service.PrefillRate
	wait := h.service.Latency + time.Duration(fill)
	if h.service.LatencyTail > 0 {
		wait += exponential(draw(h.service.Seed, h.calls, drawLatency), h.service.LatencyTail)
	}
	c.from, c.mark = 1, h.now.Add(scaled(wait, wholeSpeed, h.speed))
	c.pace = scaled(h.service.TokenTime, wholeSpeed, h.speed)
}

// drawn reports whether the present call is one of a share of all calls.
func (h *Hosted) drawn(stream uint64, permille int64) bool {
	return permille > 0 && below(draw(h.service.Seed, h.calls, stream), 1000) < permille
}

// Expect asks for a Progress when the job has generated n tokens.
func (h *Hosted) Expect(now time.Time, id JobID, n sluice.Tokens) {
	h.run(now)
	c, ok := h.jobs[id]
	if !ok || n <= 0 {
		return
	}
	if got := h.generated(c); got >= n {
		h.events = append(h.events, Progress{ID: id, Tokens: got, Cached: c.spec.Cached, At: h.now})
		return
	}
	c.expect = n
	h.plan(c)
}

// Advance brings the account to now and returns what has changed since the last
// call, in order of time. The slice is valid until the next call of Advance.
func (h *Hosted) Advance(now time.Time) []Progress {
	h.run(now)
	out := h.events
	h.events, h.spare = h.spare[:0], out
	return out
}

// NextWake is when Advance will next have something to report; false if nothing
// is in flight. A start-up that ends counts.
func (h *Hosted) NextWake() (time.Time, bool) {
	if len(h.events) > 0 {
		return h.now, true
	}
	h.wakes.trim(h.jobs)
	if len(h.wakes) == 0 {
		return h.ready, !h.ready.IsZero()
	}
	return h.wakes[0].at, true
}

// Cancel ends a job at once and returns the tokens that it had generated.
func (h *Hosted) Cancel(now time.Time, id JobID) (sluice.Tokens, bool) {
	h.run(now)
	c, ok := h.jobs[id]
	if !ok {
		return 0, false
	}
	got := h.generated(c)
	h.totals.Cancelled++
	h.end(c, got)
	return got, true
}

// Tokens is how many tokens the job has generated as of the last call.
func (h *Hosted) Tokens(id JobID) (sluice.Tokens, State) {
	c, ok := h.jobs[id]
	if !ok {
		return 0, Unknown
	}
	if h.generated(c) == 0 {
		return 0, Prefilling
	}
	return h.generated(c), Decoding
}

// Load is the state as of the last call.
func (h *Hosted) Load() Load { return Load{Health: h.health(), Running: len(h.jobs), KVUsed: h.used} }

// Totals is what has been done as of the last call; the work of jobs in flight
// is counted when they end.
func (h *Hosted) Totals() Totals { return h.totals }

// Remaining is what the account's rates still have: requests and tokens, and
// the time until each is full. A rate without a bound remains 0.
func (h *Hosted) Remaining(now time.Time) (requests, tokens int64, requestsFull, tokensFull time.Duration) {
	h.run(now)
	requests, requestsFull = h.requests.state(h.now)
	tokens, tokensFull = h.tokens.state(h.now)
	return requests, tokens, requestsFull, tokensFull
}

func (h *Hosted) run(now time.Time) {
	if now.After(h.now) {
		h.now = now
	}
	if !h.ready.IsZero() && !h.ready.After(h.now) {
		h.ready = time.Time{}
	}
	for {
		h.wakes.trim(h.jobs)
		if len(h.wakes) == 0 || h.wakes[0].at.After(h.now) {
			return
		}
		w := heap.Pop(&h.wakes).(wake)
		c := h.jobs[w.id]
		got := h.tokensAt(c, w.at)
		if got >= c.last {
			h.finish(c, Progress{ID: c.id, Tokens: got, Cached: c.spec.Cached, At: w.at, Done: true, Fault: c.fault})
			continue
		}
		h.events = append(h.events, Progress{ID: c.id, Tokens: got, Cached: c.spec.Cached, At: w.at})
		c.begun = true
		if c.expect <= got {
			c.expect = 0
		}
		h.plan(c)
	}
}

// plan finds the job's next wake: its first token, its expectation, its end.
func (h *Hosted) plan(c *call) {
	n := c.last
	if c.expect > 0 {
		n = min(n, c.expect)
	}
	if !c.begun {
		n = min(n, 1)
	}
	c.wake = c.mark.Add(time.Duration(max(n-c.from, 0)) * c.pace)
	heap.Push(&h.wakes, wake{at: c.wake, id: c.id})
}

func (h *Hosted) generated(c *call) sluice.Tokens { return h.tokensAt(c, h.now) }

func (h *Hosted) tokensAt(c *call, at time.Time) sluice.Tokens {
	switch {
	case at.Before(c.mark):
		return min(c.last, c.from-1)
	case c.pace == 0:
		return c.last
	}
	return min(c.last, c.from+sluice.Tokens(at.Sub(c.mark)/c.pace))
}

// finish ends a call by itself.
func (h *Hosted) finish(c *call, p Progress) {
	if p.Fault == NoFault {
		h.totals.Done++
	} else {
		h.totals.Failed++
	}
	h.events = append(h.events, p)
	h.end(c, p.Tokens)
}

func (h *Hosted) end(c *call, got sluice.Tokens) {
	delete(h.jobs, c.id)
	h.used -= c.spec.Input
	if got > 0 || c.fault == NoFault {
		h.totals.Prefilled += c.spec.Input - c.spec.Cached
	}
	h.totals.Generated += got
}
