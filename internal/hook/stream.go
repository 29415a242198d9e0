package hook

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// Stream is the hooks of one stream, on its way to the client. It belongs to one
// goroutine.
type Stream struct {
	run   *Run
	plan  *plan
	hooks []*entry // in order
	cuts  bool     // something redacts: what repeats texts in another form is cut

	lanes    []*lane
	said     map[string][]byte // what was delivered of texts that services looked into, by what they were; nil where none does
	at       int64             // number of the event that is read, or comes next, where they have one
	added    int64             // events of our own, by which the numbers are higher
	after    int64             // events up to that number are left out; negative leaves out none
	doc      document
	envelope []byte
	out      []byte
	edits    []Edit
	spliced  []byte
}

// lane is one text of a stream: a delta's, of one index.
type lane struct {
	index index
	flush int
	pipes pipes
	with  []byte // members that an event of its own has
	was   []byte // the text so far, and what was delivered of it, where that is kept
	is    []byte
}

func newStream(run *Run, hooks []*entry) *Stream {
	s := &Stream{run: run, plan: run.plan, hooks: hooks, after: -1}
	s.doc.indexes = run.plan.index
	for _, h := range hooks {
		s.cuts = s.cuts || h.caller == nil
		if h.caller != nil && s.plan.again {
			s.said, s.doc.paths = map[string][]byte{}, true
		}
	}
	return s
}

// Events takes whole events and returns those that may be delivered by now, valid until
// the next call. The error is a *sluice.Error, and ends the stream.
func (s *Stream) Events(ctx context.Context, p []byte) ([]byte, error) {
	s.out = s.out[:0]
	events := wire.NewEvents(bytes.NewReader(p), len(p)+1)
	for {
		ev, err := events.Next()
		if len(ev.Raw) == 0 && err != nil {
			return s.out, nil
		}
		if failure := s.event(ctx, &ev); failure != nil {
			return nil, failure
		}
		if err != nil {
			return s.out, nil
		}
	}
}

// End is what is held still: nothing follows the events of the last call of Events, whose
// result it goes on with. It is as Events is.
func (s *Stream) End(ctx context.Context) ([]byte, error) {
	if err := s.endAll(ctx, index{}, nil); err != nil {
		return nil, err
	}
	return s.out, nil
}

func (s *Stream) event(ctx context.Context, ev *wire.Event) error {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case len(data) == 0:
		s.out = append(s.out, ev.Raw...)
		return nil
	case string(data) == "[DONE]":
		if err := s.endAll(ctx, index{}, nil); err != nil {
			return err
		}
		s.out = append(s.out, ev.Raw...)
		return nil
	case !s.doc.find(data, s.plan.stream):
		return s.run.unread(AtEvent)
	}
	s.keepEnvelope(data)
	counted := s.count(data)
	s.edits = s.edits[:0]
	var touched []*lane
	for i := range s.doc.texts {
		t := &s.doc.texts[i]
		switch {
		case t.rule.treat == asEnd:
		case t.rule.flush < 0:
		default:
			l, err := s.delta(ctx, t, data)
			if err != nil {
				return err
			}
			touched = append(touched, l)
		}
	}
	for i := range s.doc.texts {
		if t := &s.doc.texts[i]; t.rule.treat == asEnd {
			if err := s.endAll(ctx, t.index, touched); err != nil {
				return err
			}
		}
	}
	for i := range s.doc.texts {
		if t := &s.doc.texts[i]; t.rule.treat != asEnd && t.rule.flush < 0 {
			if err := s.repeated(ctx, t, data); err != nil {
				return err
			}
		}
	}
	s.deliver(ev, data, counted)
	return nil
}

// deliver writes the event that is read, with the edits that were made of it.
func (s *Stream) deliver(ev *wire.Event, data []byte, counted span) {
	left := false
	if counted.end > 0 {
		if s.added > 0 {
			s.edits = append(s.edits, Edit{counted.start, counted.end, strconv.AppendInt(nil, s.at+s.added, 10)})
		}
		left = s.at+s.added <= s.after
		s.at++
	}
	switch {
	case left:
	case len(s.edits) == 0:
		s.out = append(s.out, ev.Raw...)
	default:
		slices.SortFunc(s.edits, func(a, b Edit) int { return a.Start - b.Start })
		s.out = wire.AppendEvent(s.out, string(ev.Name), spliced(data, s.edits))
	}
}

// delta takes a part of a text through its lane and writes what comes out in its place:
// with all that is held where the text ends in this very event.
func (s *Stream) delta(ctx context.Context, t *text, data []byte) (*lane, error) {
	if !t.str {
		return nil, nil
	}
	raw := data[t.at.start:t.at.end]
	part := raw
	if !plain(raw) {
		part = unquote(nil, raw)
	}
	l := s.lane(t)
	if len(part) > 0 {
		if err := s.endEarly(ctx, l); err != nil {
			return nil, err
		}
	}
	if err := s.keepWith(l, data, part); err != nil {
		return nil, err
	}
	out, err := l.pipes.push(ctx, part)
	if err != nil {
		return nil, err
	}
	if s.ends(l) {
		rest, err := l.pipes.end(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, rest...)
	}
	s.spoke(l, out)
	if !bytes.Equal(out, part) {
		s.edits = append(s.edits, Edit{t.at.start, t.at.end, escape(nil, out)})
	}
	return l, nil
}

// ends reports whether the event that is read ends a lane.
func (s *Stream) ends(l *lane) bool {
	for i := range s.doc.texts {
		if t := &s.doc.texts[i]; t.rule.treat == asEnd && l.index.within(t.index) {
			return true
		}
	}
	return false
}

// repeated redacts a text that an event has whole.
func (s *Stream) repeated(ctx context.Context, t *text, data []byte) error {
	if t.rule.treat == asCut {
		if s.cuts {
			s.edits = append(s.edits, Edit{t.at.start, t.at.end, t.rule.cut()})
		}
		return nil
	}
	was := data[t.at.start:t.at.end]
	now := was
	if s.said != nil && t.str {
		return s.again(ctx, t, was)
	}
	for _, h := range s.hooks {
		if h.caller != nil {
			continue
		}
		var counts Counts
		var edits []Edit
		switch {
		case !t.str:
			edits = number(h.finder, now, &counts)
		case plain(now):
			edits = matchesOf(h.finder, t, now, &counts)
		default:
			edits = rawEdits(now, matchesOf(h.finder, t, unquote(nil, now), &counts))
		}
		if len(edits) > 0 {
			now = spliced(now, edits)
			s.run.redacted(h, AtEvent, &counts)
		}
	}
	if !bytes.Equal(was, now) {
		s.edits = append(s.edits, Edit{t.at.start, t.at.end, now})
	}
	return nil
}

func (s *Stream) lane(t *text) *lane {
	for _, l := range s.lanes {
		if l.flush == t.rule.flush && l.index == t.index {
			return l
		}
	}
	l := &lane{index: t.index, flush: t.rule.flush}
	path := s.plan.deltas[l.flush].Path
	path, _, _ = strings.Cut(path, ":")
	path, _, _ = strings.Cut(path, "?type=")
	for k := range t.index.n {
		path = strings.Replace(path, "[]", "["+strconv.Itoa(int(t.index.of[k]))+"]", 1)
	}
	json := t.rule.treat == asJSON
	for _, h := range s.hooks {
		switch {
		case h.caller == nil:
			l.pipes = append(l.pipes, newRedacting(s.run, h, json))
		case json:
			l.pipes = append(l.pipes, &holding{run: s.run, hook: h, path: path})
		default:
			l.pipes = append(l.pipes, &window{run: s.run, hook: h, path: path})
		}
	}
	s.lanes = append(s.lanes, l)
	return l
}

// endAll ends the lanes of an index: what they hold comes before the event that is read,
// but for lanes that were touched, which have written theirs.
func (s *Stream) endAll(ctx context.Context, of index, touched []*lane) error {
	kept := s.lanes[:0]
	for i, l := range s.lanes {
		if !l.index.within(of) {
			kept = append(kept, l)
			continue
		}
		if written(touched, l) {
			continue
		}
		if err := s.end(ctx, l); err != nil {
			s.lanes = append(kept, s.lanes[i+1:]...)
			return err
		}
	}
	s.lanes = kept
	return nil
}

func written(touched []*lane, l *lane) bool {
	return slices.Contains(touched, l)
}

// endEarly ends texts that come before the one that begins.
func (s *Stream) endEarly(ctx context.Context, next *lane) error {
	for _, l := range s.lanes {
		if l == next || !s.plan.deltas[l.flush].Early || l.index.n > 0 && !next.index.within(index{of: l.index.of, n: 1}) {
			continue
		}
		if err := s.end(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) end(ctx context.Context, l *lane) error {
	rest, err := l.pipes.end(ctx)
	if err == nil && len(rest) > 0 {
		s.spoke(l, rest)
		s.alone(l, rest)
	}
	if err == nil && s.said != nil && len(l.was) > 0 {
		s.said[string(l.was)] = l.is
	}
	return err
}

// Due is when text that waits must be shown or let go; false while none waits.
func (s *Stream) Due() (at time.Time, ok bool) {
	for _, l := range s.lanes {
		if t, is := l.pipes.due(); is && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

// Tick lets out what was due at now, as events of their own. It is as Events is.
func (s *Stream) Tick(ctx context.Context, now time.Time) ([]byte, error) {
	s.out = s.out[:0]
	for _, l := range s.lanes {
		part, err := l.pipes.tick(ctx, now)
		if err != nil {
			return nil, err
		}
		if len(part) > 0 {
			s.spoke(l, part)
			s.alone(l, part)
		}
	}
	return s.out, nil
}

// firstTexts is the texts that events bring, for a hook that is asked before they are
// delivered.
func firstTexts(p *plan, events []byte) (out []Text, ok bool) {
	d := document{indexes: p.index, paths: true}
	all := wire.NewEvents(bytes.NewReader(events), len(events)+1)
	for {
		ev, err := all.Next()
		if data := bytes.TrimSpace(ev.Data); len(data) > 0 && string(data) != "[DONE]" {
			if !d.find(data, p.stream) {
				return nil, false
			}
			for i := range d.texts {
				t := &d.texts[i]
				if t.rule.treat == asEnd || t.rule.treat == asCut || !t.str || t.at.start == t.at.end {
					continue
				}
				out = append(out, Text{Path: t.path, Text: string(unquote(nil, data[t.at.start:t.at.end])), Fixed: true})
			}
		}
		if err != nil {
			return out, true
		}
	}
}

var errTooLong = fmt.Errorf("the arguments of a tool call are beyond max_body")

// unread is the error of texts that cannot be found, which no hook may let pass.
func (r *Run) unread(at Stage) error {
	for _, h := range r.hooks {
		if h.spec.At.Has(at) || at == AtEvent {
			r.note(h, at, Failed, string(CauseUnread), 0)
			return r.failure(at, &callError{CauseUnread, fmt.Errorf("the texts of %s cannot be found", r.Op)})
		}
	}
	return &sluice.Error{Kind: sluice.KindInternal, Reason: sluice.InternalError, Msg: "internal error"}
}
