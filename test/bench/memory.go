package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The streams that are open while memory is measured.
const (
	openStreams  = 1000
	openRamp     = 2 * time.Second
	memoryTarget = 75 // KB of resident memory for one open stream, at most
)

// measureMemory starts both gateways anew, opens streams and takes the difference
// in resident memory and in Go heap.
func (s *stage) measureMemory(ctx context.Context, r *report) error {
	s.say("memory of %d open streams", openStreams)
	pair, err := s.startPair(ctx)
	if err != nil {
		return err
	}
	defer pair.stop()
	for _, g := range []*gateway{pair.plain, pair.sluice} {
		rss, heap, err := s.memoryOf(ctx, g)
		if err != nil {
			return err
		}
		r.note(g, "rss", rss)
		r.note(g, "heap", heap)
	}
	return nil
}

// memoryOf is what one open stream takes of a gateway, in KB.
func (s *stage) memoryOf(ctx context.Context, g *gateway) (rss, heap float64, err error) {
	o := s.o
	o.span = 100 * time.Millisecond
	warm := newRequest(modelWhole, g.key, 1<<10)
	if res := closedLoop(ctx, o, g.data, &warm); res.wrong > 0 {
		return 0, 0, fmt.Errorf("%s: %w", g.name, res.first)
	}
	if err := g.settled(ctx); err != nil {
		return 0, 0, err
	}
	heap0, err := g.heap(ctx)
	if err != nil {
		return 0, 0, err
	}
	before, err := g.usage()
	if err != nil {
		return 0, 0, err
	}
	streams, err := open(ctx, g)
	defer streams.close()
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(time.Second) // each stream has had a chunk or more since
	after, err := g.usage()
	if err != nil {
		return 0, 0, err
	}
	heap1, err := g.heap(ctx)
	per := func(d int64) float64 { return float64(d) / 1024 / openStreams }
	return per(after.rss - before.rss), per(heap1 - heap0), err
}

// streams are open streams whose events are read and thrown away.
type streams struct {
	conns []*conn
	wg    sync.WaitGroup
}

// open opens the streams one after the other and waits until each has begun.
func open(ctx context.Context, g *gateway) (*streams, error) {
	s := &streams{}
	req := newRequest(modelOpen, g.key, 1<<10)
	var begun sync.WaitGroup
	var n counter
	begin := time.Now()
	for i := range openStreams {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * openRamp / openStreams)))
		c, err := dial(g.data)
		if err != nil {
			return s, err
		}
		s.conns = append(s.conns, c)
		if err := c.send(&req); err != nil {
			return s, err
		}
		begun.Add(1)
		s.wg.Go(func() {
			once := sync.OnceFunc(begun.Done)
			defer once()
			started := false
			_, err := c.receive(&req, func() { started = true; once() })
			if !started {
				n.fail(err)
			}
		})
	}
	begun.Wait()
	if n.first != nil {
		return s, fmt.Errorf("%s: %w", g.name, n.first)
	}
	return s, ctx.Err()
}

// close leaves all streams.
func (s *streams) close() {
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.wg.Wait()
}
