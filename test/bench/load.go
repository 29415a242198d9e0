package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The shape of the loads.
const (
	clients      = 64 // of a closed loop
	pacedStreams = 500
	pacedRamp    = time.Second
)

// load is one way to ask, measured by the processor time of one unit.
type load struct {
	name, what string
	model      string
	size       int // bytes of a request's body
	chunk      bool
	target     float64 // most that Sluice may take, times the plain gateway's
	run        func(context.Context, options, string, *request) result
}

var loads = []load{
	{"1kb", "requests of 1 KB, closed loop of 64", modelWhole, 1 << 10, false, 1.25, closedLoop},
	{"80kb", "requests of 80 KB, closed loop of 64", modelWhole, 80 << 10, false, 1.5, closedLoop},
	{"burst", "streams of 256 chunks in a burst, closed loop of 64", modelBurst, 1 << 10, true, 1.15, closedLoop},
	{"paced", "5,000 chunks/s over 500 streams", modelPaced, 1 << 10, true, 1.15, pacedLoop},
}

// result is what a load did.
type result struct {
	requests, chunks int64
	took             time.Duration
	wrong            int64
	first            error // of the wrong ones
}

// counter adds up results of many goroutines.
type counter struct {
	requests, chunks, wrong atomic.Int64
	once                    sync.Once
	first                   error
}

func (c *counter) fail(err error) {
	c.wrong.Add(1)
	c.once.Do(func() { c.first = err })
}

func (c *counter) result(since time.Time) result {
	return result{c.requests.Load(), c.chunks.Load(), time.Since(since), c.wrong.Load(), c.first}
}

// one does a request, on a new connection if c is nil, and returns the one to use
// next.
func (n *counter) one(address string, c *conn, r *request) *conn {
	if c == nil {
		var err error
		if c, err = dial(address); err != nil {
			n.fail(err)
			return nil
		}
	}
	events, err := c.do(r, nil)
	if err != nil {
		n.fail(err)
		_ = c.Close()
		return nil
	}
	n.requests.Add(1)
	if events > 0 {
		n.chunks.Add(int64(events))
	}
	return c
}

// closedLoop has so many clients, each of which asks again when it has its answer.
func closedLoop(ctx context.Context, o options, address string, r *request) result {
	var n counter
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Go(func() {
			var c *conn
			for time.Since(begin) < o.span && ctx.Err() == nil && n.wrong.Load() < 10 {
				c = n.one(address, c, r)
			}
			if c != nil {
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	return n.result(begin)
}

// pacedLoop opens its streams over a while, so that their chunks are spread over
// time, and reads each to its end.
func pacedLoop(ctx context.Context, _ options, address string, r *request) result {
	var n counter
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range pacedStreams {
		wg.Go(func() {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * pacedRamp / pacedStreams)))
			if ctx.Err() != nil {
				return
			}
			if c := n.one(address, nil, r); c != nil {
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	return n.result(begin)
}

// measureLoad drives both gateways by turns.
func (s *stage) measureLoad(ctx context.Context, r *report, l load, order []*gateway) error {
	figures := map[*gateway]float64{}
	for _, g := range order {
		req := newRequest(l.model, g.key, l.size)
		before, err := g.cpu()
		if err != nil {
			return err
		}
		res := l.run(ctx, s.o, g.data, &req)
		if err := g.settled(ctx); err != nil {
			return err
		}
		after, err := g.cpu()
		if err != nil {
			return err
		}
		units := res.requests
		if l.chunk {
			units = res.chunks
		}
		r.took(g.name, l, res)
		if units == 0 {
			return fmt.Errorf("%s answered nothing: %w", g.name, res.first)
		}
		figures[g] = float64(after-before) / float64(time.Microsecond) / float64(units)
	}
	for _, g := range order {
		r.note(g, l.name, figures[g])
	}
	return ctx.Err()
}

// warm lets both gateways open their connections and grow their pools.
func (s *stage) warm(ctx context.Context, p *pair) error {
	o := s.o
	o.span = 300 * time.Millisecond
	for _, g := range []*gateway{p.plain, p.sluice} {
		for _, model := range []string{modelWhole, modelBurst} {
			req := newRequest(model, g.key, 1<<10)
			if res := closedLoop(ctx, o, g.data, &req); res.wrong > 0 {
				return fmt.Errorf("%s: %w", g.name, res.first)
			}
		}
		if err := g.settled(ctx); err != nil {
			return err
		}
	}
	return nil
}
