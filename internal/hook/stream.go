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
}

func newStream(run *Run, hooks []*entry) *Stream {
	s := &Stream{run: run, plan: run.plan, hooks: hooks}
	s.doc.indexes = run.plan.index
	for _, h := range hooks {
		s.cuts = s.cuts || h.caller == nil
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
	s.edits = s.edits[:0]
	var touched []*lane
	for i := range s.doc.texts {
		t := &s.doc.texts[i]
		switch {
		case t.rule.treat == asEnd:
		case t.rule.flush < 0:
			s.repeated(t, data)
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
	if len(s.edits) == 0 {
		s.out = append(s.out, ev.Raw...)
		return nil
	}
	s.out = wire.AppendEvent(s.out, string(ev.Name), spliced(data, s.edits))
	return nil
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
func (s *Stream) repeated(t *text, data []byte) {
	if t.rule.treat == asCut {
		if s.cuts {
			s.edits = append(s.edits, Edit{t.at.start, t.at.end, []byte("null")})
		}
		return
	}
	was := data[t.at.start:t.at.end]
	now := was
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
			edits = matches(h.finder, now, &counts)
		default:
			edits = rawEdits(now, matches(h.finder, unquote(nil, now), &counts))
		}
		if len(edits) > 0 {
			now = spliced(now, edits)
			s.run.redacted(h, AtEvent, &counts)
		}
	}
	if !bytes.Equal(was, now) {
		s.edits = append(s.edits, Edit{t.at.start, t.at.end, now})
	}
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
		s.alone(l, rest)
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
			s.alone(l, part)
		}
	}
	return s.out, nil
}

// alone writes a part of a text as an event of its own.
func (s *Stream) alone(l *lane, part []byte) {
	d := &s.plan.deltas[l.flush]
	b := append(s.spliced[:0], '{')
	if len(s.envelope) > 0 {
		b = append(append(b, s.envelope...), ',')
	}
	for form := d.Alone; form != ""; {
		i := strings.IndexByte(form, '$')
		if i < 0 {
			b = append(b, form...)
			break
		}
		b = append(b, form[:i]...)
		if form = form[i+1:]; strings.HasPrefix(form, "text") {
			b = append(escape(append(b, '"'), part), '"')
			form = form[len("text"):]
			continue
		}
		b = strconv.AppendInt(b, int64(l.index.of[form[0]-'0']), 10)
		form = form[1:]
	}
	s.spliced = append(b, '}')
	s.out = wire.AppendEvent(s.out, d.Event, s.spliced)
}

// keepEnvelope keeps the members that an event of our own has too, of the first event
// that has any.
func (s *Stream) keepEnvelope(data []byte) {
	if len(s.envelope) > 0 || len(s.plan.envelope) == 0 {
		return
	}
	d := document{b: data}
	if d.ws() != '{' || !d.enter() {
		return
	}
	for d.ws() == '"' {
		start := d.i
		key := d.str()
		if d.ws() != ':' {
			return
		}
		d.i++
		at := d.skip()
		for _, want := range s.plan.envelope {
			if !d.bad && string(data[key.start:key.end]) == want {
				if len(s.envelope) > 0 {
					s.envelope = append(s.envelope, ',')
				}
				s.envelope = append(s.envelope, data[start:at.end]...)
			}
		}
		if d.ws() != ',' {
			return
		}
		d.i++
	}
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
