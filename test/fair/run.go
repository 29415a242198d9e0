package fair

import (
	"cmp"
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
