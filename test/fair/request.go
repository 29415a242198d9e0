package fair

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
)

// call is what the engine is told of a request.
func (r *run) call(id int, q *Request, c *Client) engine.Call {
	call := engine.Call{
		ID: requestID(id), Model: sluice.ModelID(q.Pool), Dialect: "openai", Class: q.Class, Task: c.Task, Work: q.Work, Bytes: 4 * int64(q.Work.Input),
		MaxWait: c.MaxWait, Streaming: true,
		Principal: sluice.Principal{Tenant: q.Tenant, Project: q.Project, Key: sluice.KeyID(string(q.Tenant) + "/" + string(q.Project))},
	}
	if call.MaxWait == 0 {
		call.MaxWait = 24 * time.Hour
	}
	p := &sluice.Policy{Class: q.Class, Weight: max(c.Weight, 1)}
	if c.Running > 0 {
		p.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: c.Running}}
	}
	call.Principal.Policy = p
	return call
}

func (r *run) arrive(client int) {
	c, rnd := &r.w.Clients[client], r.rands[client]
	var size Size
	if c.Rows != nil {
		size = c.Rows[r.rows[client]].Size
		r.rows[client]++
	} else {
		size = c.Sizes(rnd)
	}
	q := Request{Client: client, Tenant: c.Tenant, Project: c.Project, Class: c.Class, Pool: c.Pool, True: size, At: r.now}
	if q.Project == "" {
		q.Project = sluice.DefaultProject
	}
	if q.Pool == "" {
		q.Pool = r.w.Pools[0].ID
	}
	bound := c.Bound
	if bound == 0 {
		bound = size.Out
	}
	q.True.Out = min(size.Out, bound)
	expected, hold := r.predict.Output(q.Tenant, c.Task, bound, q.True.Out)
	q.Work = sluice.Work{Input: size.In, InputBound: size.In, CachedInput: size.Cached, Output: expected, OutputHold: hold, OutputBound: bound}
	id := len(r.log.Requests)
	r.log.Requests = append(r.log.Requests, q)
	r.requests = append(r.requests, live{})
	r.emit(Event{Kind: Arrive, Req: id})
	if r.w.Policy == Naive && c.PerMinute > 0 && !r.minutes[client].take(r.now, c.PerMinute) {
		r.refuse(id, sluice.RateLimited)
		return
	}
	v := r.eng.Arrive(r.time(), r.call(id, &q, c))
	if v.Err != nil {
		r.refuse(id, v.Err.Reason)
		return
	}
	r.open++
	r.emit(Event{Kind: Enqueue, Req: id, Wait: v.Wait})
	if c.Patience > 0 && rnd.Int64N(1000) < c.LeaveAt {
		r.at(r.now+time.Duration(rnd.Int64N(int64(c.Patience))), timerLeave, id)
	} else if c.Patience > 0 && c.LeaveAt == 0 {
		r.at(r.now+c.Patience, timerLeave, id)
	}
}

func (r *run) refuse(id int, why sluice.Reason) {
	r.requests[id].done = true
	r.emit(Event{Kind: Refuse, Req: id, Reason: why})
}

// advance takes what the engine grants until it grants no more.
func (r *run) advance() {
	for {
		grants := slices.Clone(r.eng.Advance(r.time()))
		again := false
		for _, g := range grants {
			again = r.granted(g) || again
		}
		if !again {
			break
		}
	}
	if r.w.Gauges {
		r.gauge()
	}
}

func (r *run) granted(g engine.Grant) (again bool) {
	id := requestIndex(g.ID)
	l, q := &r.requests[id], &r.log.Requests[id]
	if g.Err != nil {
		if g.Err.Reason == sluice.HoldExpired {
			panic("a hold expired: reports come more often than that")
		}
		r.emit(Event{Kind: Shed, Req: id, Reason: g.Err.Reason})
		if g.Attempt > 0 {
			_ = r.eng.Settle(r.time(), g.ID, engine.Actual{Outcome: sluice.Failed, Reason: g.Err.Reason})
		}
		r.over(id)
		return g.Attempt > 0
	}
	m := r.machines[g.Backend.ID]
	l.on, l.seen = m, 0
	l.charged = r.log.Cost.Estimate(q.Work)
	r.emit(Event{Kind: Dispatch, Req: id, Backend: m.id, Cost: l.charged, Wait: g.Queued})
	if m.down {
		r.fail(id, sluice.UpstreamConnect)
		return true
	}
	job, err := m.Submit(r.time(), fleet.Job{Input: q.True.In, Cached: q.True.Cached, Output: q.True.Out})
	if err != nil {
		r.fail(id, sluice.UpstreamLimited)
		return true
	}
	l.job = job
	m.jobs[job] = id
	return false
}

// progress takes what a machine reports.
func (r *run) progress(m *machine, p fleet.Progress) {
	id, ok := m.jobs[p.ID]
	if !ok {
		return
	}
	l, q := &r.requests[id], &r.log.Requests[id]
	if l.seen == 0 {
		r.emit(Event{Kind: First, Req: id, Backend: m.id, Seen: p.Tokens})
	}
	l.seen = p.Tokens
	if !p.Done {
		r.eng.Progress(r.time(), requestID(id), r.usage(q, p.Tokens))
		if over := r.log.Cost.Of(q.Work.Input-q.Work.CachedInput, p.Tokens) - l.charged; over > 0 {
			l.charged += over
			r.emit(Event{Kind: Correct, Req: id, Backend: m.id, Cost: over, Seen: p.Tokens})
		}
		m.Expect(r.time(), p.ID, (p.Tokens/step+1)*step)
		return
	}
	delete(m.jobs, p.ID)
	r.predict.Observe(q.Tenant, r.w.Clients[q.Client].Task, p.Tokens)
	r.end(id, sluice.Completed, sluice.ReasonNone)
}

func (r *run) usage(q *Request, out sluice.Tokens) sluice.Usage {
	return sluice.Usage{Input: q.True.In - q.True.Cached, CacheRead: q.True.Cached, Output: out, Source: sluice.UsageReported}
}

// took is what an attempt has really taken so far.
func (r *run) took(id int) (sluice.Usage, int64) {
	l, q := &r.requests[id], &r.log.Requests[id]
	if l.seen == 0 {
		return sluice.Usage{}, 0
	}
	u := r.usage(q, l.seen)
	return u, r.log.Cost.Of(u.Input, u.Output)
}

// end settles a running request.
func (r *run) end(id int, o sluice.Outcome, why sluice.Reason) {
	l := &r.requests[id]
	u, cost := r.took(id)
	r.emit(Event{Kind: End, Req: id, Backend: l.on.id, Cost: cost - l.charged, Seen: l.seen, Reason: why})
	if err := r.eng.Settle(r.time(), requestID(id), engine.Actual{Usage: u, Outcome: o, Reason: why}); err != nil {
		panic(err)
	}
	r.over(id)
	r.advance()
}

func (r *run) over(id int) {
	l := &r.requests[id]
	l.done, l.on = true, nil
	r.open--
}

// fail ends an attempt whose backend is gone.
func (r *run) fail(id int, why sluice.Reason) {
	l := &r.requests[id]
	u, cost := r.took(id)
	res := engine.Result{Reason: why, Content: l.seen > 0, Usage: u}
	r.emit(Event{Kind: Fail, Req: id, Backend: l.on.id, Cost: cost - l.charged, Seen: l.seen, Reason: why})
	l.on = nil
	if n := r.eng.AttemptEnded(r.time(), requestID(id), res); n.Step == engine.Queue {
		r.emit(Event{Kind: Enqueue, Req: id})
		return
	}
	if err := r.eng.Settle(r.time(), requestID(id), engine.Actual{Usage: u, Outcome: sluice.Failed, Reason: why}); err != nil {
		panic(err)
	}
	r.over(id)
}

// leave is a client that goes away.
func (r *run) leave(id int) {
	l := &r.requests[id]
	switch {
	case l.done:
	case l.on == nil:
		r.emit(Event{Kind: Leave, Req: id, Reason: sluice.ClientGone})
		r.eng.Cancel(r.time(), requestID(id), sluice.ClientGone)
		r.over(id)
	case r.w.Clients[r.log.Requests[id].Client].LeaveAt == 0 && l.seen > 0:
		// It has begun to answer: its client stays.
	default:
		delete(l.on.jobs, l.job)
		l.seen, _ = l.on.Cancel(r.time(), l.job)
		r.end(id, sluice.Cancelled, sluice.ClientGone)
	}
}

func (r *run) down(b sluice.BackendID) {
	m := r.machines[b]
	m.down = true
	r.emit(Event{Kind: Down, Backend: b})
	var jobs []fleet.JobID
	for j := range m.jobs {
		jobs = append(jobs, j)
	}
	slices.Sort(jobs)
	for _, j := range jobs {
		id := m.jobs[j]
		delete(m.jobs, j)
		m.Cancel(r.time(), j)
		r.fail(id, sluice.UpstreamError)
	}
}

func requestID(i int) sluice.RequestID { return sluice.RequestID(strconv.Itoa(i)) }

func requestIndex(id sluice.RequestID) int {
	i, err := strconv.Atoi(string(id))
	if err != nil {
		panic(fmt.Sprintf("request %q is not one of this run", id))
	}
	return i
}

// bucket is a limit on requests per minute with a burst of one minute.
type bucket struct {
	used float64
	at   time.Duration
}

func (b *bucket) take(now time.Duration, perMinute int64) bool {
	b.used = max(0, b.used-float64(perMinute)*(now-b.at).Minutes())
	b.at = now
	if b.used+1 > float64(perMinute) {
		return false
	}
	b.used++
	return true
}
