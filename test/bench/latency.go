package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The open loop: requests come whether or not others have their answers.
const (
	latencyRate  = 300 // per second
	latencySpan  = 1500 * time.Millisecond
	latencyConns = 64
	latencyGrace = 100 * time.Microsecond // that Sluice may add beyond the plain gateway
)

// latencies are the times of one open loop, sorted.
type latencies []time.Duration

func (l latencies) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(q*float64(len(l))), len(l)-1)]
}

// openLoop sends requests at random moments, as many a second as the rate, and
// times each from its send to the end of its answer.
func openLoop(ctx context.Context, address string, r *request, seed uint64) (latencies, result) {
	var n counter
	var mu sync.Mutex
	var all latencies
	conns := make(chan *conn, latencyConns)
	for range latencyConns {
		c, err := dial(address)
		if err != nil {
			n.fail(err)
			return nil, n.result(time.Now())
		}
		conns <- c
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var wg sync.WaitGroup
	begin := time.Now()
	for due := time.Duration(0); due < latencySpan && ctx.Err() == nil; due += time.Duration(random.ExpFloat64() * float64(time.Second) / latencyRate) {
		time.Sleep(time.Until(begin.Add(due)))
		c := <-conns
		wg.Go(func() {
			sent := time.Now()
			next := n.one(address, c, r)
			took := time.Since(sent)
			if next != nil {
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
			conns <- next
		})
	}
	wg.Wait()
	for range latencyConns {
		if c := <-conns; c != nil {
			_ = c.Close()
		}
	}
	slices.Sort(all)
	return all, n.result(begin)
}

// measureLatency asks the upstream itself, and each gateway, and takes what they
// add.
func (s *stage) measureLatency(ctx context.Context, r *report, order []*gateway) error {
	r.round++
	seed := uint64(r.round)
	key := order[0].key
	direct := newRequest(modelWhole, key, 1<<10)
	base, res := openLoop(ctx, s.address, &direct, seed)
	r.took("upstream", load{name: "latency"}, res)
	for _, g := range order {
		req := newRequest(modelWhole, g.key, 1<<10)
		l, res := openLoop(ctx, g.data, &req, seed)
		r.took(g.name, load{name: "latency"}, res)
		p50, p99 := micros(l.at(.5)-base.at(.5)), micros(l.at(.99)-base.at(.99))
		r.note(g, "p50", p50)
		r.note(g, "p99", p99)
		if err := g.settled(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func micros(d time.Duration) float64 { return math.Round(float64(d)/100) / 10 }
