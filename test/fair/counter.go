package fair

import (
	"time"

	"sluice"
	"sluice/internal/fleet"
)

// RunCounter plays a world of one backend by the published virtual token counter
// in place of the engine, as its authors' code has it: the client with the least
// counter is next, its head waits until the memory fits it; the counter takes the
// input at dispatch and two for each token as it comes; who has nothing waiting is
// lifted, when it asks again, to the least counter of those who wait. The lengths
// are known, as they were to the published server. It is what the published
// differences are read beside.
func RunCounter(w *World) *Log {
	b := w.Pools[0].Backends[0]
	c := &counters{
		run: &run{w: w, log: &Log{Cost: costOf(w.Pools[0]), Clients: w.Clients, Length: w.Length}, rows: make([]int, len(w.Clients))},
		m:   w.Machine(b.ID).(*fleet.Replica), queues: make([][]int, len(w.Clients)), served: make([]int64, len(w.Clients)),
		on: map[fleet.JobID]int{}, told: map[fleet.JobID]sluice.Tokens{}, capacity: b.Capacity.KVTokens, backend: b.ID,
	}
	for i := range w.Clients {
		c.run.arrival(i, -1)
	}
	for c.step() {
	}
	c.run.log.Ended = c.run.now
	return c.run.log
}

type counters struct {
	run      *run // for its clock, timers and log
	m        *fleet.Replica
	queues   [][]int
	served   []int64
	on       map[fleet.JobID]int
	told     map[fleet.JobID]sluice.Tokens
	used     sluice.Tokens
	capacity sluice.Tokens
	backend  sluice.BackendID
}

func (c *counters) step() bool {
	r := c.run
	at, ok := time.Duration(0), false
	if len(r.timers) > 0 {
		at, ok = r.timers[0].at, true
	}
	if t, busy := c.m.NextWake(); busy && (!ok || t.Sub(epoch) < at) {
		at, ok = t.Sub(epoch), true
	}
	if !ok {
		return false
	}
	r.now = max(r.now, at)
	for _, p := range c.m.Advance(r.time()) {
		id := c.on[p.ID]
		if c.told[p.ID] == 0 {
			r.emit(Event{Kind: First, Req: id, Backend: c.backend, Seen: p.Tokens})
		}
		c.count(p.ID, p.Tokens)
		if p.Done {
			q := &r.log.Requests[id]
			c.used -= q.True.In + q.True.Out
			r.emit(Event{Kind: End, Req: id, Backend: c.backend, Seen: p.Tokens})
			delete(c.on, p.ID)
			delete(c.told, p.ID)
		}
	}
	for len(r.timers) > 0 && r.timers[0].at <= r.now {
		client := r.timers[0].index
		r.timers.pop()
		c.arrive(client)
		r.arrival(client, r.now)
	}
	c.serve()
	return true
}

// count charges a client for the tokens of a job that it has not been charged for.
func (c *counters) count(id fleet.JobID, n sluice.Tokens) {
	if n > c.told[id] {
		c.served[c.run.log.Requests[c.on[id]].Client] += 2 * int64(n-c.told[id])
		c.told[id] = n
	}
}

func (c *counters) arrive(client int) {
	r := c.run
	row := r.w.Clients[client].Rows[r.rows[client]]
	r.rows[client]++
	id := len(r.log.Requests)
	r.log.Requests = append(r.log.Requests, Request{
		Client: client, Tenant: r.w.Clients[client].Tenant, Project: sluice.DefaultProject, Pool: r.w.Pools[0].ID, True: row.Size, At: r.now,
		Work: sluice.Work{Input: row.In, Output: row.Out, OutputHold: row.Out, OutputBound: row.Out},
	})
	r.emit(Event{Kind: Arrive, Req: id})
	r.emit(Event{Kind: Enqueue, Req: id})
	c.queues[client] = append(c.queues[client], id)
	if len(c.queues[client]) > 1 {
		return
	}
	least := int64(-1)
	for other, q := range c.queues {
		if other != client && len(q) > 0 && (least < 0 || c.served[other] < least) {
			least = c.served[other]
		}
	}
	c.served[client] = max(c.served[client], least)
}

func (c *counters) serve() {
	r := c.run
	for id := range c.on { // in any order: sums
		n, _ := c.m.Tokens(id)
		c.count(id, n)
	}
	for {
		next := -1
		for client, q := range c.queues {
			if len(q) > 0 && (next < 0 || c.served[client] < c.served[next]) {
				next = client
			}
		}
		if next < 0 {
			return
		}
		id := c.queues[next][0]
		q := &r.log.Requests[id]
		if c.used+q.True.In+q.True.Out > c.capacity {
			return
		}
		c.queues[next] = c.queues[next][1:]
		c.used += q.True.In + q.True.Out
		c.served[next] += int64(q.True.In)
		job, err := c.m.Submit(r.time(), fleet.Job{Input: q.True.In, Output: q.True.Out})
		if err != nil {
			panic(err)
		}
		c.on[job] = id
		r.emit(Event{Kind: Dispatch, Req: id, Backend: c.backend, Cost: r.log.Cost.Of(q.True.In, q.True.Out)})
	}
}
