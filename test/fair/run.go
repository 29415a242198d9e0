package fair

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Machine is what serves a backend: fleet.Replica or fleet.Hosted.
type Machine interface {
	Submit(now time.Time, j fleet.Job) (fleet.JobID, error)
	Expect(now time.Time, id fleet.JobID, n sluice.Tokens)
	Advance(now time.Time) []fleet.Progress
	NextWake() (time.Time, bool)
	Cancel(now time.Time, id fleet.JobID) (sluice.Tokens, bool)
}

// Policy is how a run is scheduled.
type Policy uint8

// The policies.
const (
	Fair  Policy = iota // the engine as it is
	FIFO                // the control: the engine's own queue in order of arrival
	Naive               // a limit of requests per minute for each client, then FIFO
)

func (p Policy) String() string { return [...]string{"fair", "fifo", "naive"}[p] }

// World is what a run is made from. The same World gives the same Log.
type World struct {
	Pools   []*route.Pool // the first serves clients that name none
	Machine func(sluice.BackendID) Machine
	Clients []Client
	Policy  Policy
	Predict Predictor // nil: Exact
	Seed    uint64
	Length  time.Duration // arrivals end
	Drain   bool          // what waits then is served; else the run ends there
	Faults  []Fault
	Swaps   []Swap
	Gauges  bool // the engine's own figures after every event
	Options engine.Options
}

// Fault is a backend that dies and comes back.
type Fault struct {
	Backend  sluice.BackendID
	From, To time.Duration
}

// Swap puts other pools into force.
type Swap struct {
	At    time.Duration
	Pools []*route.Pool
}

// costOf is what a pool's tokens count for. All pools of a run have the same.
func costOf(p *route.Pool) Cost {
	c := p.Cost.WithDefaults()
	return Cost{c.Input, c.Output}
}

// epoch is when a run starts. Nothing depends on it.
var epoch = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// step is how many tokens of output lie between two reports to the engine.
const step sluice.Tokens = 64

// Run plays a world.
func Run(w *World) *Log {
	r := &run{
		w: w, log: &Log{Cost: costOf(w.Pools[0]), Clients: w.Clients, Length: w.Length},
		machines: map[sluice.BackendID]*machine{}, rands: make([]*rand.Rand, len(w.Clients)),
		rows: make([]int, len(w.Clients)), minutes: make([]bucket, len(w.Clients)), predict: w.Predict,
	}
	if r.predict == nil {
		r.predict = Exact{}
	}
	t := r.table(w.Pools)
	r.eng = engine.New(engine.Config{Table: t, Options: w.Options})
	r.capacity(t)
	for i := range w.Clients {
		r.rands[i] = rand.New(rand.NewPCG(w.Seed, uint64(i)))
		r.arrival(i, -1)
	}
	for i, f := range w.Faults {
		r.at(f.From, timerDown, i)
		r.at(f.To, timerUp, i)
	}
	for i, s := range w.Swaps {
		r.at(s.At, timerSwap, i)
	}
	r.loop()
	r.log.Ended = r.now
	return r.log
}

// run is a World under way.
type run struct {
	w        *World
	log      *Log
	eng      *engine.Engine
	now      time.Duration
	order    []*machine // by backend
	machines map[sluice.BackendID]*machine
	timers   timers
	seq      int
	requests []live // by request
	open     int
	rands    []*rand.Rand
	rows     []int
	minutes  []bucket
	predict  Predictor
}

type machine struct {
	Machine
	id   sluice.BackendID
	jobs map[fleet.JobID]int
	down bool
}

// live is what the driver knows of a request under way.
type live struct {
	on      *machine // nil while it waits
	job     fleet.JobID
	charged int64 // cost of this attempt so far
	seen    sluice.Tokens
	done    bool
}

func (r *run) time() time.Time { return epoch.Add(r.now) }

func (r *run) emit(e Event) {
	e.At = r.now
	r.log.Events = append(r.log.Events, e)
}

func (r *run) table(pools []*route.Pool) *route.Table {
	if r.w.Policy != Fair {
		pools = inOrder(pools)
	}
	t := &route.Table{Version: strconv.Itoa(len(r.log.Tables)), Models: map[sluice.ModelID]*route.Model{}, Pools: map[sluice.PoolID]*route.Pool{}}
	for _, p := range pools {
		t.Pools[p.ID] = p
		t.Models[sluice.ModelID(p.ID)] = &route.Model{ID: sluice.ModelID(p.ID), Pools: []sluice.PoolID{p.ID}}
		for _, b := range p.Backends {
			if r.machines[b.ID] == nil {
				m := &machine{Machine: r.w.Machine(b.ID), id: b.ID, jobs: map[fleet.JobID]int{}}
				r.machines[b.ID] = m
				r.order = append(r.order, m)
			}
		}
	}
	slices.SortFunc(r.order, func(a, b *machine) int { return cmp.Compare(a.id, b.id) })
	return t
}

// inOrder is the same pools, served in order of arrival.
func inOrder(pools []*route.Pool) (out []*route.Pool) {
	for _, p := range pools {
		q := *p
		q.Sharing = sched.Policy{FIFO: true}
		out = append(out, &q)
	}
	return out
}

func (r *run) capacity(t *route.Table) {
	r.log.Tables = append(r.log.Tables, t)
	r.emit(Event{Kind: Capacity, Tables: len(r.log.Tables) - 1})
}

func (r *run) loop() {
	for {
		next, ok := r.next()
		if !ok || !r.w.Drain && next > r.w.Length {
			return
		}
		r.now = max(r.now, next)
		for _, m := range r.order {
			for _, p := range slices.Clone(m.Advance(r.time())) {
				r.progress(m, p)
			}
		}
		for len(r.timers) > 0 && r.timers[0].at <= r.now {
			r.fire(r.timers.pop())
			r.advance()
		}
		r.advance()
	}
}

// next is the next moment at which anything happens.
func (r *run) next() (at time.Duration, ok bool) {
	sooner := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if len(r.timers) > 0 {
		sooner(r.timers[0].at)
	}
	for _, m := range r.order {
		if t, busy := m.NextWake(); busy {
			sooner(t.Sub(epoch))
		}
	}
	if r.open > 0 {
		if t, wake := r.eng.NextWake(); wake {
			sooner(t.Sub(epoch))
		}
	}
	return at, ok
}

func (r *run) arrival(client int, prev time.Duration) {
	c := &r.w.Clients[client]
	var at time.Duration
	if c.Rows != nil {
		if r.rows[client] == len(c.Rows) {
			return
		}
		at = c.Rows[r.rows[client]].At
	} else {
		at = c.Arrivals(r.rands[client], prev)
	}
	if at <= r.w.Length {
		r.at(at, timerArrive, client)
	}
}

func (r *run) fire(t timer) {
	switch t.what {
	case timerArrive:
		r.arrive(t.index)
		r.arrival(t.index, t.at)
	case timerLeave:
		r.leave(t.index)
	case timerDown:
		r.down(r.w.Faults[t.index].Backend)
	case timerUp:
		m := r.machines[r.w.Faults[t.index].Backend]
		m.down = false
		r.eng.Observe(r.time(), engine.Signal{Backend: m.id, Healthy: true})
		r.emit(Event{Kind: Up, Backend: m.id})
	case timerSwap:
		table := r.table(r.w.Swaps[t.index].Pools)
		plan, err := r.eng.Prepare(table)
		if err != nil {
			panic(err)
		}
		r.eng.Swap(r.time(), plan)
		r.capacity(table)
	}
}

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

func (r *run) gauge() {
	v := r.eng.Dump(r.time(), engine.Zoom{Levels: true}, 16)
	s := &State{Open: v.Open, Running: v.Running, Waiting: map[sluice.PoolID]int{}, Gathers: map[sluice.PoolID]Gather{}, Backends: map[sluice.BackendID]route.Capacity{}}
	for _, p := range v.Pools {
		if p.Gathering != nil {
			g := Gather{Req: requestIndex(p.Gathering.Request), Backend: p.Gathering.Backend}
			for c, id := range p.Gathering.Overtaken {
				if g.Overtaken[c] = -1; id != "" {
					g.Overtaken[c] = requestIndex(id)
				}
			}
			s.Gathers[p.ID] = g
		}
		s.Waiting[p.ID] = p.Waiting
		for _, b := range p.Backends {
			s.Backends[b.ID] = route.Capacity{Concurrency: b.Running, KVTokens: b.KVTokens, PrefillTokens: b.Prefill}
		}
	}
	r.emit(Event{Kind: Gauge, State: s})
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

type what uint8

const (
	timerArrive what = iota
	timerLeave
	timerDown
	timerUp
	timerSwap
)

type timer struct {
	at    time.Duration
	seq   int
	what  what
	index int
}

func (r *run) at(at time.Duration, w what, index int) {
	r.seq++
	heap.Push(&r.timers, timer{at, r.seq, w, index})
}

// timers is a heap by time, then by when they were set.
type timers []timer

func (t *timers) pop() timer { return heap.Pop(t).(timer) }

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, k int) bool {
	if t[i].at != t[k].at {
		return t[i].at < t[k].at
	}
	return t[i].seq < t[k].seq
}
func (t timers) Swap(i, k int) { t[i], t[k] = t[k], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	x := old[len(old)-1]
	*t = old[:len(old)-1]
	return x
}
