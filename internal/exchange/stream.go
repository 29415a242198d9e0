package exchange

import (
	"context"
	"errors"
	"io"
	"time"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// The pace at which a stream tells how far it is, and the bounds of what waits.
const (
	progressTokens   sluice.Tokens = 64
	progressEvery                  = 250 * time.Millisecond
	checkpointTokens sluice.Tokens = 1000
	checkpointEvery                = 2 * time.Second
	maxPreamble                    = 64 << 10 // bytes held back before content
	drainWait                      = 100 * time.Millisecond
)

// pace remembers what was told of a stream, and when.
type pace struct {
	told, kept     sluice.Tokens
	toldAt, keptAt time.Time
}

// pump moves a stream's events through the tap to the client. Every way out has
// settled the request or set the attempt's failure.
func (t *turn) pump(ctx context.Context, a *attempt, ans *upstream.Answer) {
	events := wire.NewEvents(ans, t.x.o.EventLimit)
	var preamble []byte
	p := pace{told: -progressTokens, toldAt: a.began, keptAt: a.began} // the first content is told at once
	for {
		ev, err := events.Next()
		var step wire.Step
		if err == nil {
			step = a.tap.Event(ev)
		} else if step = t.ended(ctx, a, err); a.failure != nil {
			return
		}
		switch {
		case step.Err != nil:
			a.failure, a.again = step.Err, !a.content
			return
		case err != nil || step.Terminal:
			t.conclude(ctx, a, append(preamble, step.Out...))
			if err == nil {
				ans.Drain(drainWait)
			}
			return
		case !a.content && !step.Content && len(preamble)+len(step.Out) <= maxPreamble:
			if ev.Data != nil { // comments say nothing to a client that has its own
				preamble = append(preamble, step.Out...)
			}
			continue
		}
		out := step.Out
		if len(preamble) > 0 {
			out, preamble = append(preamble, step.Out...), nil
		}
		if step.Content {
			ans.Progress(a.tap.Delivered())
		}
		if !t.forward(ctx, a, out) || step.Content && !t.advance(a, &p) {
			return
		}
	}
}

// forward writes events to the client. It reports whether the stream goes on.
func (t *turn) forward(ctx context.Context, a *attempt, out []byte) bool {
	if !a.content {
		a.content = true
		t.first = since(t.r.Arrived)
		if t.x.o.Hooks.FirstToken != nil {
			t.x.o.Hooks.FirstToken(a.place, t.first)
		}
	}
	if len(out) == 0 {
		return true
	}
	if err := t.client.Events(t.head, out); err != nil {
		a.failure = t.undelivered(ctx, err)
		return false
	}
	return true
}

// conclude settles a stream that is complete and writes its last events.
func (t *turn) conclude(ctx context.Context, a *attempt, out []byte) {
	if !a.content {
		a.content, t.first = true, since(t.r.Arrived)
	}
	t.finish(a, nil)
	if err := t.client.Events(t.head, out); err != nil {
		t.result.Err = t.undelivered(ctx, err)
	}
}

// ended says what the end of the events means. It sets the attempt's failure, or
// returns the step that completes the stream.
func (t *turn) ended(ctx context.Context, a *attempt, err error) wire.Step {
	if err != io.EOF && !errors.Is(err, wire.ErrUnterminated) && !errors.Is(err, wire.ErrEventTooLarge) {
		t.lost(ctx, a, err)
		return wire.Step{}
	}
	step := a.tap.End(err)
	if step.Err != nil {
		a.failure, a.again = step.Err, !a.content
	}
	return step
}

// advance tells engine and journal how far the stream is, when it is time. It
// reports whether the stream may go on.
func (t *turn) advance(a *attempt, p *pace) bool {
	n, now := a.tap.Delivered(), time.Now()
	if n-p.told >= progressTokens || now.Sub(p.toldAt) >= progressEvery {
		p.told, p.toldAt = n, now
		if d := t.grant.Progress(t.seen(a)); d.Stop {
			a.failure = &sluice.Error{Kind: sluice.KindInternal, Reason: sluice.HoldExpired, Msg: "the reservation of this request has expired"}
			return false
		}
	}
	if n-p.kept >= checkpointTokens || now.Sub(p.keptAt) >= checkpointEvery {
		p.kept, p.keptAt = n, now
		u := t.seen(a)
		cost, high := t.price(a, u)
		err := t.x.o.Journal.Checkpoint(ledger.Checkpoint{Request: t.r.ID, Attempt: a.place.Attempt, At: now, Usage: u, Cost: cost, CostHigh: high})
		if err != nil {
			t.journalFailed("checkpoint", err)
		}
	}
	return true
}
