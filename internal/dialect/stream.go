package dialect

import (
	"cmp"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sluice"
	"sluice/internal/wire"
)

// StreamOptions is what an answer's translation must know beside it.
type StreamOptions struct {
	// Usage is what the answer has taken so far. It is asked once, at the end.
	Usage func() sluice.Usage
	// Told says that the client wants usage in the stream, where its dialect lets
	// it choose.
	Told bool
	Now  time.Time // for dialects that tell when an answer was made, where the other does not
	// ID and Model are what the answer says of itself where the backend says nothing.
	ID, Model string
	Echo      []byte // of the request: see Translation
	// Warn lets an answer pass that has what the client's dialect has no place for, and
	// tells Lost of it, by its name in the backend's answer. Without it such an answer is
	// an error. Lost may be nil, and is told of the same more than once.
	Warn bool
	Lost func(what string)
}

// lose notes what an answer has and the client's dialect has no place for.
func (o *StreamOptions) lose(what string) error {
	if !o.Warn {
		return uncarried(what)
	}
	o.tell(what)
	return nil
}

// tell notes a hint that is lost, which is none of what an answer says: it refuses none.
func (o *StreamOptions) tell(what string) {
	if o.Lost != nil {
		o.Lost(what)
	}
}

// asksNothing reports a value that says as much as none.
func asksNothing(v jsontext.Value) bool {
	return null(v) || is(v, "[]", "{}", `""`, "false")
}

// reader turns a backend's events into those of no dialect.
type reader interface {
	// read appends what the data of one event tells. Errors are *sluice.Error,
	// or those of JSON that is none.
	read(out []Event, data []byte) ([]Event, error)
	// end appends what closes the answer when the terminal marker has been seen.
	end(out []Event) []Event
}

// closing is a reader of a dialect whose terminal marker tells more than that.
type closing interface {
	last(out []Event, data []byte) ([]Event, error)
}

// writer turns events of no dialect into those of a client's.
type writer interface {
	write(b []byte, e *Event) ([]byte, error)
	// passed notes a text that reaches the client as the one before did, as it
	// stands in JSON: see likeness.
	passed(k EventKind, text []byte) error
}

// Stream translates one stream, event by event. It belongs to one goroutine. It
// expects events that a wire.Tap has let through: errors and truncated streams are
// the tap's to find.
type Stream struct {
	from   *codec
	to     *codec
	r      reader
	w      writer
	o      StreamOptions
	events []Event
	out    []byte
	like   likeness
	alike  int       // events that were like the one before
	number numbering // nil where the client's events have no numbers
	begun  bool      // the client has the beginning of its stream
	ended  bool
}

// Room for what most events of a stream become, in bytes, where they have numbers (the
// last then repeats all of them) and where they do not, and in events.
const (
	firstOut      = 1 << 10
	firstNumbered = 4 << 10
	firstEvents   = 4
	maxKept       = 1 << 20 // of the room, after a large event
)

// NewStream translates from a backend's dialect to the client's.
func NewStream(from, to wire.Operation, o StreamOptions) *Stream {
	c := codecOf(from)
	s := &Stream{o: o, like: likeness{unread: c.unread}, events: make([]Event, 0, firstEvents)}
	s.from, s.to = c, codecOf(to)
	s.r, s.w = c.newReader(&s.o), s.to.newWriter(&s.o)
	room := firstOut
	if s.number, _ = s.w.(numbering); s.number != nil {
		room = firstNumbered
	}
	s.out = make([]byte, 0, room)
	return s
}

// numbering is a writer whose events have numbers.
type numbering interface{ sequence() int64 }

// Sequence is the number that the client's next event has; 0 where they have none.
func (s *Stream) Sequence() int64 {
	if s.number == nil {
		return 0
	}
	return s.number.sequence()
}

// Event is what the client gets for a backend's event, empty for nothing. It is
// valid until the next call. terminal says that it was the stream's terminal marker.
// The error is a *sluice.Error.
func (s *Stream) Event(e *wire.Event, terminal bool) ([]byte, error) {
	if s.ended || len(e.Data) == 0 {
		return nil, nil
	}
	if terminal {
		s.events = s.events[:0]
		if r, ok := s.r.(closing); ok {
			var err error
			if s.events, err = r.last(s.events, e.Data); err != nil {
				return nil, malformed(err)
			}
		}
		return s.finish()
	}
	if out, text := s.like.again(e, s.out[:0], s.Sequence()); text != nil {
		s.out = out
		s.alike++
		if err := s.w.passed(s.like.kind, text); err != nil {
			return nil, malformed(err)
		}
		return out, nil
	}
	var err error
	if s.events, err = s.r.read(s.events[:0], e.Data); err != nil {
		return nil, malformed(err)
	}
	if err := s.write(); err != nil {
		return nil, err
	}
	last := int64(-1)
	if s.number != nil {
		last = s.number.sequence() - 1
	}
	s.like.remember(e, s.events, s.out, last)
	return s.out, nil
}

// End is what ends the client's stream. Only its first call has any.
func (s *Stream) End() ([]byte, error) {
	if s.ended {
		return nil, nil
	}
	s.events = s.events[:0]
	return s.finish()
}

// finish writes what closes the answer, after the events that are there.
func (s *Stream) finish() ([]byte, error) {
	s.ended = true
	s.events = append(s.r.end(s.events), Event{Kind: EventEnd})
	err := s.write()
	return s.out, err
}

// write writes the events. A stream begins once, also where the backend did not say
// so, or said it twice.
func (s *Stream) write() (err error) {
	if s.out = s.out[:0]; cap(s.out) > maxKept {
		s.out = nil
	}
	if !s.begun && len(s.events) > 0 && s.events[0].Kind != EventStart {
		s.begun = true
		if s.out, err = s.w.write(s.out, &Event{Kind: EventStart, ID: s.o.ID, Name: s.o.Model}); err != nil {
			return malformed(err)
		}
	}
	for i := range s.events {
		e := &s.events[i]
		if e.Nth > 0 && !s.to.several {
			return malformed(uncarried("several answers"))
		}
		if e.Kind == EventStart && s.begun {
			continue
		}
		s.begun = true
		switch e.Kind {
		case EventStart:
			e.ID, e.Name = cmp.Or(e.ID, s.o.ID), cmp.Or(e.Name, s.o.Model)
		case EventSignature, EventRedacted:
			e.Text = handed(s.from, s.to, e.Text)
		}
		if s.out, err = s.w.write(s.out, e); err != nil {
			return malformed(err)
		}
	}
	return nil
}

// Whole translates an answer in one piece. Its usage is that of the options.
func Whole(from, to wire.Operation, body []byte, o StreamOptions) ([]byte, error) {
	a, err := codecOf(from).parseAnswer(body, &o)
	if err != nil {
		return nil, malformed(err)
	}
	if len(a.Others) > 0 && !codecOf(to).several {
		return nil, malformed(uncarried(fmt.Sprintf("%d answers", 1+len(a.Others))))
	}
	a.Usage, a.ID, a.Model, a.Echo = o.Usage(), cmp.Or(a.ID, o.ID), cmp.Or(a.Model, o.Model), o.Echo
	if a.Created == 0 {
		a.Created = o.Now.Unix()
	}
	if err := a.settle(codecOf(to)); err != nil {
		return nil, malformed(err)
	}
	a.each(func(_ int, parts []Part, _ Stop) {
		for i := range parts {
			if p := &parts[i]; p.Kind == ReasoningPart || p.Kind == RedactedPart {
				p.Signature = handed(codecOf(from), codecOf(to), p.Signature)
			}
		}
	})
	return codecOf(to).emitAnswer(make([]byte, 0, len(body)+len(body)/4), a), nil
}

// malformed is an error of an answer as a *sluice.Error.
func malformed(err error) *sluice.Error {
	if e, ok := err.(*sluice.Error); ok {
		return e
	}
	return &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamMalformed, Msg: "the upstream sent something that is not of its dialect", Err: err}
}
