package probe

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice"
)

// Outcome is what a probe showed.
type Outcome uint8

// The outcomes.
const (
	Unknown Outcome = iota
	Up
	Down
)

// Target is one backend that is probed.
type Target struct {
	Backend sluice.BackendID
	Path    string
	Every   time.Duration
}

// Options is what a Prober works with. All but Odd are needed.
type Options struct {
	Targets func() []Target                                   // those in force, at each round
	Ask     func(ctx context.Context, t Target) (int, error)  // the status of the answer
	Observe func(b sluice.BackendID, up bool)                 // takes Up and Down
	Odd     func(b sluice.BackendID, path string, status int) // an answer that says nothing, once for each status; may be nil
}

// How a Prober paces itself.
const (
	MinEvery = 100 * time.Millisecond
	Patience = 5 * time.Second // the longest wait for an answer
	atOnce   = 16              // backends asked at a time
)

// Prober probes backends.
type Prober struct {
	o      Options
	cancel context.CancelFunc
	wg     sync.WaitGroup

	last map[sluice.BackendID]asked // of the goroutine of run
}

// asked is when a backend was asked, and the odd status that was told of last.
type asked struct {
	at  time.Time
	odd int
}

// Start makes a Prober that asks at once and then in its targets' intervals. Close
// ends it.
func Start(o Options) *Prober {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Prober{o: o, cancel: cancel, last: make(map[sluice.BackendID]asked)}
	p.wg.Go(func() { p.run(ctx) })
	return p
}

// Close ends the prober and joins its goroutines.
func (p *Prober) Close() {
	p.cancel()
	p.wg.Wait()
}

func (p *Prober) run(ctx context.Context) {
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
func (p *Prober) round(ctx context.Context) time.Duration {
	now, next := time.Now(), time.Second // a reload is seen within this
	var due []Target
	known := make(map[sluice.BackendID]asked)
	for _, t := range p.o.Targets() {
		t.Every = max(t.Every, MinEvery)
		a := p.last[t.Backend]
		if wait := t.Every - now.Sub(a.at); a.at.IsZero() || wait <= 0 {
			due, a.at = append(due, t), now
			next = min(next, t.Every)
		} else {
			next = min(next, wait)
		}
		known[t.Backend] = a
	}
	p.last = known
	var wg sync.WaitGroup
	odd, slots := make([]int, len(due)), make(chan struct{}, atOnce)
	for i, t := range due {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			odd[i] = p.ask(ctx, t)
		})
	}
	wg.Wait()
	for i, t := range due {
		a := known[t.Backend]
		if odd[i] != 0 && odd[i] != a.odd && p.o.Odd != nil {
			p.o.Odd(t.Backend, t.Path, odd[i])
		}
		a.odd = odd[i]
		known[t.Backend] = a
	}
	return max(next-time.Since(now), time.Millisecond)
}

// ask probes one backend. It returns the status of an answer that says nothing.
func (p *Prober) ask(parent context.Context, t Target) (odd int) {
	ctx, cancel := context.WithTimeout(parent, min(t.Every, Patience))
	defer cancel()
	status, err := p.o.Ask(ctx, t)
	if parent.Err() != nil { // it was not given the time
		return 0
	}
	switch Judge(status, err) {
	case Up:
		p.o.Observe(t.Backend, true)
	case Down:
		p.o.Observe(t.Backend, false)
	default:
		return status
	}
	return 0
}

// ErrUnasked is a probe that was not sent, for a reason that is not the backend's.
var ErrUnasked = errors.New("not asked")

// Judge says what an answer, or the lack of one, shows.
func Judge(status int, err error) Outcome {
	switch {
	case errors.Is(err, ErrUnasked):
		return Unknown
	case status >= 200 && status < 300 && err == nil:
		return Up
	case status >= 500 || err != nil && status == 0:
		return Down
	}
	return Unknown
}
