package rounds

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice"
)

// Target is a backend that is asked, and how often it wishes to be: more often than
// [MinEvery] it is not.
type Target interface {
	Asked() (sluice.BackendID, time.Duration)
}

// Options is what is asked, and how. All are needed.
type Options[T Target, S any] struct {
	Targets  func() []T    // those in force, at each round
	AtOnce   int           // how many are asked at a time
	Patience time.Duration // the longest wait for an answer, if the interval is not shorter

	// Ask asks one backend, given what it returned when it asked last, and is called
	// from several goroutines at a time, for one backend from one. Its context ends
	// with its time, or early, when [Interrupted].
	Ask func(ctx context.Context, t T, last S) S
}

// MinEvery is the shortest interval.
const MinEvery = 100 * time.Millisecond

// lookup is how soon a change of the targets is seen.
const lookup = time.Second

// Rounds asks until it is closed.
type Rounds[T Target, S any] struct {
	o      Options[T, S]
	cancel context.CancelFunc
	wg     sync.WaitGroup

	last map[sluice.BackendID]asked[S] // of the goroutine of run
}

// asked is when a backend was asked, and what came of it.
type asked[S any] struct {
	at  time.Time
	was S
}

// Start asks at once and then in the targets' intervals.
func Start[T Target, S any](o Options[T, S]) *Rounds[T, S] {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Rounds[T, S]{o: o, cancel: cancel}
	r.wg.Go(func() { r.run(ctx) })
	return r
}

// Close ends the rounds and joins their goroutines.
func (r *Rounds[T, S]) Close() {
	r.cancel()
	r.wg.Wait()
}

// Interrupted says that an ask was ended by Close: that it has no answer says
// nothing of the backend.
func Interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

func (r *Rounds[T, S]) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(r.round(ctx))
	}
}

// round asks those that are due and returns when the next ones are.
func (r *Rounds[T, S]) round(ctx context.Context) time.Duration {
	now, next := time.Now(), lookup
	var due []T
	known := make(map[sluice.BackendID]asked[S])
	for _, t := range r.o.Targets() {
		id, every := interval(t)
		a := r.last[id]
		if wait := every - now.Sub(a.at); a.at.IsZero() || wait <= 0 {
			due, a.at = append(due, t), now
			next = min(next, every)
		} else {
			next = min(next, wait)
		}
		known[id] = a
	}
	r.last = known
	answers := r.ask(ctx, due)
	for i, t := range due {
		id, _ := interval(t)
		known[id] = asked[S]{at: known[id].at, was: answers[i]}
	}
	return max(next-time.Since(now), time.Millisecond)
}

// ask asks those that are due, a few at a time, and returns what came of each.
func (r *Rounds[T, S]) ask(parent context.Context, due []T) []S {
	var wg sync.WaitGroup
	answers, slots := make([]S, len(due)), make(chan struct{}, r.o.AtOnce)
	for i, t := range due {
		id, every := interval(t)
		last := r.last[id].was
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(parent, min(every, r.o.Patience))
			defer cancel()
			answers[i] = r.o.Ask(ctx, t, last)
		})
	}
	wg.Wait()
	return answers
}

func interval(t Target) (sluice.BackendID, time.Duration) {
	id, every := t.Asked()
	return id, max(every, MinEvery)
}
