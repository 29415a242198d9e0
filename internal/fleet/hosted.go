package fleet

import (
	"container/heap"
	"time"

	"sluice"
)

// Service is the speed and the rate limits of one account at a hosted provider.
type Service struct {
	Latency     time.Duration // until the first token of an empty prompt
	PrefillRate int64         // uncached input tokens per second of one job; at least 1
	TokenTime   time.Duration // between two output tokens of one job
	HitPermille int64         // share of the input that hits the prefix cache when a job names none, 0 to 1000

	Concurrency       int           // most jobs in flight; 0 does not bound them
	RequestsPerMinute int64         // 0 does not bound them
	TokensPerMinute   sluice.Tokens // input and output together, taken when the job is submitted; at most 100 million; 0 does not bound them
}

// Times is the same account n times as fast, its rates included. n below 2
// changes nothing.
func (s Service) Times(n int64) Service {
	if n < 2 {
		return s
	}
	s.Latency /= time.Duration(n)
	s.PrefillRate *= n
	s.TokenTime /= time.Duration(n)
	s.RequestsPerMinute *= n
	s.TokensPerMinute *= sluice.Tokens(n)
	return s
}

func (s Service) withDefaults() Service {
	s.PrefillRate = max(s.PrefillRate, 1)
	s.TokenTime = max(s.TokenTime, 0)
	s.RequestsPerMinute = min(s.RequestsPerMinute, mostPerMinute)
	s.TokensPerMinute = min(s.TokensPerMinute, mostPerMinute)
	s.HitPermille = min(max(s.HitPermille, 0), 1000)
	return s
}

// Hosted is a provider's account: jobs do not slow each other down, rates are
// limited. Make it with [NewHosted].
type Hosted struct {
	service  Service
	now      time.Time
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
	first  time.Time // of its first token
	wake   time.Time // when it next has something to report
	expect sluice.Tokens
	begun  bool // the first token has been reported
}

// NewHosted makes an idle account with full rate buckets.
func NewHosted(s Service) *Hosted {
	s = s.withDefaults()
	return &Hosted{
		service: s, jobs: map[JobID]*call{},
		requests: bucket{perMinute: s.RequestsPerMinute, level: s.RequestsPerMinute * minuteUnits},
		tokens:   bucket{perMinute: int64(s.TokensPerMinute), level: int64(s.TokensPerMinute) * minuteUnits},
	}
}

// Submit starts a job. It fails with ErrQueueFull when as many as the account
// allows are in flight and with a *LimitError when a rate is used up.
func (h *Hosted) Submit(now time.Time, spec Job) (JobID, error) {
	h.run(now)
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
	fill := int64(spec.Input-spec.Cached) * int64(time.Second) / h.service.PrefillRate
	c := &call{id: h.next, spec: spec, first: h.now.Add(h.service.Latency + time.Duration(fill))}
	h.jobs[c.id] = c
	h.used += spec.Input
	h.totals.Submitted++
	h.totals.CacheHits += spec.Cached
	h.plan(c)
	return c.id, nil
}

// Expect asks for a Progress when the job has generated n tokens.
func (h *Hosted) Expect(now time.Time, id JobID, n sluice.Tokens) {
	h.run(now)
	c, ok := h.jobs[id]
	if !ok || n <= 0 {
		return
	}
	if got := h.generated(c); got >= n {
		h.events = append(h.events, Progress{ID: id, Tokens: got, At: h.now})
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
// is in flight.
func (h *Hosted) NextWake() (time.Time, bool) {
	if len(h.events) > 0 {
		return h.now, true
	}
	h.wakes.trim(h.jobs)
	if len(h.wakes) == 0 {
		return time.Time{}, false
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
	if h.now.Before(c.first) {
		return 0, Prefilling
	}
	return h.generated(c), Decoding
}

// Load is the state as of the last call.
func (h *Hosted) Load() Load { return Load{Running: len(h.jobs), KVUsed: h.used} }

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
	for {
		h.wakes.trim(h.jobs)
		if len(h.wakes) == 0 || h.wakes[0].at.After(h.now) {
			return
		}
		w := heap.Pop(&h.wakes).(wake)
		c := h.jobs[w.id]
		got := h.tokensAt(c, w.at)
		done := got >= c.spec.Output
		h.events = append(h.events, Progress{ID: c.id, Tokens: got, At: w.at, Done: done})
		if done {
			h.totals.Done++
			h.end(c, got)
			continue
		}
		c.begun = true
		if c.expect <= got {
			c.expect = 0
		}
		h.plan(c)
	}
}

// plan finds the job's next wake: its first token, its expectation, its end.
func (h *Hosted) plan(c *call) {
	n := c.spec.Output
	if c.expect > 0 {
		n = min(n, c.expect)
	}
	if !c.begun {
		n = min(n, 1)
	}
	c.wake = c.first.Add(time.Duration(max(n-1, 0)) * h.service.TokenTime)
	heap.Push(&h.wakes, wake{at: c.wake, id: c.id})
}

func (h *Hosted) generated(c *call) sluice.Tokens { return h.tokensAt(c, h.now) }

func (h *Hosted) tokensAt(c *call, at time.Time) sluice.Tokens {
	if at.Before(c.first) {
		return 0
	}
	if h.service.TokenTime == 0 {
		return c.spec.Output
	}
	return min(c.spec.Output, 1+sluice.Tokens(at.Sub(c.first)/h.service.TokenTime))
}

func (h *Hosted) end(c *call, got sluice.Tokens) {
	delete(h.jobs, c.id)
	h.used -= c.spec.Input
	h.totals.Prefilled += c.spec.Input - c.spec.Cached
	h.totals.Generated += got
}

type wake struct {
	at time.Time
	id JobID
}

// wakes is a heap by time, then job; entries whose job has ended or moved on
// are dropped when they come to the top.
type wakes []wake

func (w wakes) Len() int { return len(w) }
func (w wakes) Less(i, k int) bool {
	if !w[i].at.Equal(w[k].at) {
		return w[i].at.Before(w[k].at)
	}
	return w[i].id < w[k].id
}
func (w wakes) Swap(i, k int) { w[i], w[k] = w[k], w[i] }
func (w *wakes) Push(x any)   { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	old := *w
	x := old[len(old)-1]
	*w = old[:len(old)-1]
	return x
}

func (w *wakes) trim(jobs map[JobID]*call) {
	for len(*w) > 0 {
		top := (*w)[0]
		if c, ok := jobs[top.id]; ok && c.wake.Equal(top.at) {
			return
		}
		heap.Pop(w)
	}
}

// minuteUnits scales a bucket's level so that a nanosecond refills perMinute
// units exactly.
const minuteUnits = int64(time.Minute)

// mostPerMinute keeps perMinute × minuteUnits within 64 bits.
const mostPerMinute = 100_000_000

// bucket is a rate per minute with a burst of one minute. A job larger than the
// burst is taken from a full bucket and leaves a debt.
type bucket struct {
	perMinute int64
	level     int64 // in amount × minuteUnits
	at        time.Time
}

func (b *bucket) refill(now time.Time) {
	if b.perMinute <= 0 || !now.After(b.at) {
		return
	}
	full := b.perMinute * minuteUnits
	missing := full - b.level
	d := int64(now.Sub(b.at))
	if b.at.IsZero() || d >= missing/b.perMinute {
		b.level = full
	} else {
		b.level += d * b.perMinute
	}
	b.at = now
}

// wait is how long until n fit; 0 if they do.
func (b *bucket) wait(now time.Time, n int64) time.Duration {
	if b.perMinute <= 0 {
		return 0
	}
	b.refill(now)
	missing := min(n, b.perMinute)*minuteUnits - b.level
	if missing <= 0 {
		return 0
	}
	return time.Duration((missing + b.perMinute - 1) / b.perMinute)
}

func (b *bucket) take(n int64) {
	if b.perMinute > 0 {
		b.level -= n * minuteUnits
	}
}

func (b *bucket) state(now time.Time) (int64, time.Duration) {
	if b.perMinute <= 0 {
		return 0, 0
	}
	b.refill(now)
	missing := b.perMinute*minuteUnits - b.level
	return max(b.level/minuteUnits, 0), time.Duration(max(missing, 0) / b.perMinute)
}
