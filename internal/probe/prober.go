package probe

import (
	"context"
	"errors"
	"time"

	"sluice"
	"sluice/internal/rounds"
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

// Options is what a Prober works with. All but Odd are needed; all but Targets are
// called from several goroutines at a time.
type Options struct {
	Targets func() []Target                                   // those in force, at each round
	Ask     func(ctx context.Context, t Target) (int, error)  // the status of the answer
	Observe func(b sluice.BackendID, up bool)                 // takes Up and Down
	Odd     func(b sluice.BackendID, path string, status int) // an answer that says nothing, once for each status; may be nil
}

// How a Prober paces itself.
const (
	Patience = 5 * time.Second // the longest wait for an answer
	atOnce   = 16              // backends asked at a time
)

// Asked implements [rounds.Target].
func (t Target) Asked() (sluice.BackendID, time.Duration) { return t.Backend, t.Every }

// Prober probes backends. What it knows of each is the odd status that was told of
// last, or 0.
type Prober struct{ *rounds.Rounds[Target, int] }

// Start makes a Prober that asks at once and then in its targets' intervals. Close
// ends it.
func Start(o Options) *Prober {
	return &Prober{rounds.Start(rounds.Options[Target, int]{Targets: o.Targets, AtOnce: atOnce, Patience: Patience, Ask: o.probe})}
}

// probe asks one backend, given the odd status that was told of last.
func (o Options) probe(ctx context.Context, t Target, told int) (odd int) {
	status, err := o.Ask(ctx, t)
	if rounds.Interrupted(ctx) {
		return told
	}
	switch Judge(status, err) {
	case Up:
		o.Observe(t.Backend, true)
	case Down:
		o.Observe(t.Backend, false)
	default:
		if status != 0 && status != told && o.Odd != nil {
			o.Odd(t.Backend, t.Path, status)
		}
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
