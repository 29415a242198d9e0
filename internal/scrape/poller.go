package scrape

import (
	"context"
	"errors"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/rounds"
)

// Engine is one backend that tells of its load.
type Engine struct {
	Backend sluice.BackendID
	Model   string        // the engine's name of it
	Every   time.Duration // how often it is asked
}

// Options is what a Poller works with. All but Failed are needed; all but Engines are
// called from several goroutines at a time.
type Options struct {
	Engines func() []Engine                                               // those in force, at each round
	Fetch   func(ctx context.Context, b sluice.BackendID) ([]byte, error) // an engine's metrics, at most MaxBody of them
	Observe func(engine.Signal)                                           // takes what it said
	Failed  func(b sluice.BackendID, err error, since time.Time)          // it said nothing; may be nil. since is zero if it never did
}

// How a Poller paces itself.
const (
	atOnce   = 8 // engines asked at a time
	patience = 2 * time.Second
)

// Asked implements [rounds.Target].
func (e Engine) Asked() (sluice.BackendID, time.Duration) { return e.Backend, e.Every }

// Poller asks engines for their load. What it knows of each is when it last said
// something.
type Poller struct {
	*rounds.Rounds[Engine, time.Time]
}

// Start makes a Poller that asks at once and then in its engines' intervals. Close
// ends it.
func Start(o Options) *Poller {
	return &Poller{rounds.Start(rounds.Options[Engine, time.Time]{Targets: o.Engines, AtOnce: atOnce, Patience: patience, Ask: o.ask})}
}

// ask asks one engine and returns when it last said something. The driver of
// the gate is woken though it said nothing: what it said before has aged.
func (o Options) ask(ctx context.Context, e Engine, heard time.Time) time.Time {
	at := time.Now()
	text, err := o.Fetch(ctx, e.Backend)
	if err == nil {
		if l, ok := Parse(text, e.Model); ok {
			l.At, l.Every = at, max(e.Every, rounds.MinEvery)
			o.Observe(engine.Signal{Backend: e.Backend, Load: &l})
			return at
		}
		err = errNothing
	}
	if rounds.Interrupted(ctx) {
		return heard
	}
	o.Observe(engine.Signal{Backend: e.Backend})
	if o.Failed != nil {
		o.Failed(e.Backend, err, heard)
	}
	return heard
}

var errNothing = errors.New("it tells nothing of its load")
