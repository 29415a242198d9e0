package scrape

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice"
	"sluice/internal/engine"
)

// Engine is one backend that tells of its load.
type Engine struct {
	Backend sluice.BackendID
	Model   string        // the engine's name of it
	Every   time.Duration // how often it is asked
}

// Options is what a Poller works with. All are needed.
type Options struct {
	Engines func() []Engine                                               // those in force, at each round
	Fetch   func(ctx context.Context, b sluice.BackendID) ([]byte, error) // an engine's metrics, at most MaxBody of them
	Observe func(engine.Signal)                                           // takes what it said
	Failed  func(b sluice.BackendID, err error, since time.Time)          // it said nothing; may be nil. since is zero if it never did
}

// How a Poller paces itself.
const (
	MinEvery = 100 * time.Millisecond
	atOnce   = 8 // engines asked at a time
	patience = 2 * time.Second
)

// Poller asks engines for their load.
type Poller struct {
	o      Options
	cancel context.CancelFunc
	wg     sync.WaitGroup

	last map[sluice.BackendID]asked // of the goroutine of run
}

// asked is when an engine was asked, and when it last said something.
type asked struct{ at, heard time.Time }

// Start makes a Poller that asks at once and then in its engines' intervals. Close
// ends it.
func Start(o Options) *Poller {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Poller{o: o, cancel: cancel, last: make(map[sluice.BackendID]asked)}
	p.wg.Go(func() { p.run(ctx) })
	return p
}

// Close ends the poller and joins its goroutines.
func (p *Poller) Close() {
	p.cancel()
	p.wg.Wait()
}

func (p *Poller) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(p.round(ctx))
	}
}

// round asks those that are due and returns when the next ones are.
func (p *Poller) round(ctx context.Context) time.Duration {
	engines := p.o.Engines()
	now, next := time.Now(), time.Second // a reload is seen within this
	var due []Engine
	known := make(map[sluice.BackendID]asked, len(engines))
	for _, e := range engines {
		e.Every = max(e.Every, MinEvery)
		a := p.last[e.Backend]
		if wait := e.Every - now.Sub(a.at); a.at.IsZero() || wait <= 0 {
			due, a.at = append(due, e), now
			next = min(next, e.Every)
		} else {
			next = min(next, wait)
		}
		known[e.Backend] = a
	}
	p.last = known
	var wg sync.WaitGroup
	heard, slots := make([]time.Time, len(due)), make(chan struct{}, atOnce)
	for i, e := range due {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			heard[i] = p.ask(ctx, e, known[e.Backend].heard)
		})
	}
	wg.Wait()
	for i, e := range due {
		a := known[e.Backend]
		a.heard = heard[i]
		known[e.Backend] = a
	}
	return max(next-time.Since(now), time.Millisecond)
}

// ask asks one engine and returns when it last said something. The driver of
// the gate is woken though it said nothing: what it said before has aged.
func (p *Poller) ask(parent context.Context, e Engine, heard time.Time) time.Time {
	ctx, cancel := context.WithTimeout(parent, min(max(e.Every, MinEvery), patience))
	defer cancel()
	at := time.Now()
	text, err := p.o.Fetch(ctx, e.Backend)
	if err == nil {
		if l, ok := Parse(text, e.Model); ok {
			l.At, l.Every = at, e.Every
			p.o.Observe(engine.Signal{Backend: e.Backend, Load: &l})
			return at
		}
		err = errNothing
	}
	if parent.Err() != nil { // it was not given the time
		return heard
	}
	p.o.Observe(engine.Signal{Backend: e.Backend})
	if p.o.Failed != nil {
		p.o.Failed(e.Backend, err, heard)
	}
	return heard
}

var errNothing = errors.New("it tells nothing of its load")
