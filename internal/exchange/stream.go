package exchange

import (
	"context"
	"errors"
	"time"

	"sluice"
	"sluice/internal/hook"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// The pace at which a stream tells how far it is, and the bounds of what waits.
const (
	progressTokens   sluice.Tokens = 64
	progressEvery                  = time.Second
	checkpointTokens sluice.Tokens = 1000
	checkpointEvery                = 2 * time.Second
	maxPreamble                    = 64 << 10 // bytes held back before content
	maxCollected                   = 32 << 10 // bytes of content collected before they are written
	maxKept                        = 1 << 20  // bytes of room for them that outlive a large event
	drainWait                      = 100 * time.Millisecond
)

// pace remembers what was told of a stream, and when.
type pace struct {
	told, kept     sluice.Tokens
	toldAt, keptAt time.Time
}

// stream is one attempt's events on their way to the client. What the tap lets
// through is collected until more must be read from the backend, and then
// written at once: nothing that has arrived waits, and events that arrived
// together cost one write. An event that came alone is written from where it was
// read to. Until content has come all of it is held back.
type stream struct {
	ctx    context.Context
	t      *turn
	a      *attempt
	ans    *upstream.Answer
	events wire.Source
	pace   pace
	out    []byte    // collected
	open   bool      // content has come: what is collected is for the client
	came   time.Time // when the backend was last heard of

	looked bool         // the hooks have been asked whether there may be content
	hooks  *hook.Stream // that look into what is collected; nil if none does
}

// errUndelivered ends the reading of a stream whose client takes no more; the
// attempt's failure says why.
var errUndelivered = errors.New("undelivered")

// Read is what the events are read through.
func (s *stream) Read(p []byte) (int, error) {
	if !s.flush() {
		return 0, errUndelivered
	}
	n, err := s.read(p)
	s.came = s.ans.Came()
	s.a.call.read(n)
	return n, err
}

// flush writes what was collected to the client. It reports whether the stream
// goes on.
func (s *stream) flush() bool {
	if !s.open || len(s.out) == 0 {
		return true
	}
	ok := s.write(s.out)
	if s.out = s.out[:0]; cap(s.out) > maxKept {
		s.out = nil
	}
	return ok
}

// write writes content to the client and reports whether the stream goes on.
func (s *stream) write(p []byte) bool {
	if s.a.call.left() != nil {
		return true
	}
	s.t.begun(s.a)
	s.t.keeps(s.a)
	err := s.t.client.Events(s.a.head, p)
	if err == nil {
		return true
	}
	why := s.t.undelivered(s.ctx, err)
	if s.a.call.leaves(why) {
		return true
	}
	s.a.failure = why
	return false
}

// begun notes that content reaches the client.
func (t *turn) begun(a *attempt) {
	if a.content {
		return
	}
	a.content = true
	t.r.Body, a.body = nil, nil // there is no further attempt, and the stream may last
	for _, x := range t.others.made {
		x.Body = nil
	}
	a.times.first, a.times.firstSeen = since(a.times.sent), a.tap.Delivered()
	if t.stored() || t.behind() { // it was generated before, or may be queued at its provider
		return
	}
	t.first = since(t.r.Arrived)
	if t.x.o.Hooks.FirstToken != nil && t.shadow == nil {
		t.x.o.Hooks.FirstToken(a.place, t.first)
	}
}

// stream reads an attempt's events.
func (t *turn) stream(ctx context.Context, a *attempt, ans *upstream.Answer) *stream {
	s := &stream{ctx: ctx, t: t, a: a, ans: ans}
	s.events = wire.NewSource(a.said.Op, ans.Frames, s, t.x.o.EventLimit)
	s.pace = pace{told: -progressTokens, toldAt: a.began, keptAt: a.began} // the first content is told at once
	return s
}

// pump moves a stream's events through the tap to the client. Every way out has
// settled the request or set the attempt's failure.
func (s *stream) pump() {
	for {
		if r, ok := s.next(); !ok || !s.take(&r) {
			return
		}
	}
}

// reading is one event and what the tap makes of it, or the end of the events.
type reading struct {
	ev   wire.Event
	step wire.Step
	err  error
}

// next reads one event. It is false where the attempt has failed.
func (s *stream) next() (r reading, ok bool) {
	a := s.a
	r.ev, r.err = s.events.Next()
	if errors.Is(r.err, wire.ErrUnterminated) { // what it tells counts, if it is whole; the end comes next
		if r.step = a.step(r.ev); r.step.Out != nil || r.step.Err != nil {
			r.err = nil
		}
	}
	switch {
	case r.step.Out != nil || r.step.Err != nil:
	case r.err == nil:
		r.step = a.step(r.ev)
	case a.failure == nil && s.flush():
		r.step = s.t.ended(s.ctx, a, r.err)
	}
	if a.failure != nil {
		return r, false
	}
	if r.step.Err != nil {
		if s.flush() {
			a.failure, a.again = r.step.Err, !a.content
			a.told = r.step.Err.Reason != sluice.UpstreamMalformed
		}
		return r, false
	}
	return r, true
}

// decides reports whether a reading is more than a part of what is held back: content,
// the end, or too much.
func (s *stream) decides(r *reading) bool {
	return r.step.Content || r.step.Terminal || r.err != nil || len(s.out)+len(r.step.Out) > maxPreamble
}

// take hands a reading on. It reports whether the stream goes on.
func (s *stream) take(r *reading) bool {
	t, a := s.t, s.a
	last := r.err != nil || r.step.Terminal
	out := r.step.Out
	if s.hooks != nil && a.call.left() == nil {
		var ok bool
		if out, ok = s.inspected(out, last); !ok {
			return false
		}
	}
	switch {
	case s.open && len(s.out) == 0 && s.events.Buffered() == 0 && !last: // it came alone
		if len(out) > 0 && !s.write(out) {
			return false
		}
	case s.open || r.ev.Data != nil || r.err != nil: // comments say nothing to a client that has its own
		s.out = append(s.out, out...)
	}
	early := s.early()
	if t.hooks != nil && !s.looked && (last || r.step.Content || early || len(s.out) > maxPreamble) && !s.look(last) {
		return false
	}
	if last {
		t.conclude(s)
		if r.err == nil {
			s.ans.Drain(drainWait)
		}
		return false
	}
	if r.step.Content {
		s.open = true
		s.ans.Progress(a.tap.Delivered())
		if !t.advance(a, &s.pace, s.came) {
			s.flush()
			return false
		}
		if !t.afford(a, s.came) {
			t.shorten(s, r.ev)
			return false
		}
	}
	s.open = s.open || early || len(s.out) > maxPreamble
	return len(s.out) <= maxCollected || s.flush()
}

// early reports whether a stream is delivered before its first content: of a response that
// is made in the background the client needs the id at once, and no other backend is
// tried once there is one.
func (s *stream) early() bool {
	t := s.t
	return t.behind() && s.a.tap.ResponseID() != "" && (t.hooks == nil || !t.hooks.Commits())
}

// conclude settles a stream that is complete and writes its last events.
func (t *turn) conclude(s *stream) {
	if !s.a.call.hangUp() {
		s.a.drained = true
		return
	}
	t.begun(s.a)
	t.keeps(s.a)
	if t.stored() {
		t.x.background.hurry(responseOf{t.r.Principal.Tenant, t.r.Head.Refs[0].ID})
	}
	t.finish(s.a, nil)
	if err := t.client.Events(s.a.head, s.out); err != nil {
		t.result.Err = t.undelivered(s.ctx, err)
	}
	t.taught(s.a)
}

// ended says what the end of the events means. It sets the attempt's failure, or
// returns the step that completes the stream.
func (t *turn) ended(ctx context.Context, a *attempt, err error) wire.Step {
	if !wire.Framing(err) {
		t.lost(ctx, a, err)
		return wire.Step{}
	}
	step := a.tap.End(err)
	if step.Err != nil {
		a.failure, a.again = step.Err, !a.content
		return step
	}
	if len(step.Out) > 0 && t.x.o.Hooks.Unmarked != nil {
		t.x.o.Hooks.Unmarked(a.place.Backend.ID)
	}
	step.Out = a.closing(step.Out)
	return step
}

// advance tells engine and journal how far the stream is, when it is time at now. It
// reports whether the stream may go on.
func (t *turn) advance(a *attempt, p *pace, now time.Time) bool {
	n := a.tap.Output()
	if n-p.told >= progressTokens || now.Sub(p.toldAt) >= progressEvery {
		p.told, p.toldAt = n, now
		if d := t.grant.Progress(t.seen(a)); d.Stop {
			a.failure = &sluice.Error{Kind: sluice.KindInternal, Reason: sluice.HoldExpired, Msg: "the reservation of this request has expired"}
			return false
		}
	}
	if n-p.kept >= checkpointTokens || now.Sub(p.keptAt) >= checkpointEvery {
		p.kept, p.keptAt = n, now
		t.checkpoint(a, now)
	}
	return true
}
