package dialect

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"sluice/internal/wire"
)

// maxLike bounds the event that a likeness remembers, in bytes.
const maxLike = 4 << 10

// likeness is the last event that carried one text and nothing else, and what it
// became. Nearly all of a stream's events differ from the one before in that text
// alone: then what they become does too.
type likeness struct {
	raw, out         []byte // raw is empty if there is none to go by
	start, end       int    // of the text, in raw
	outStart, outEnd int    // in out
	kind             EventKind
	quoted           []byte
}

// again is what an event becomes that is like the last in all but its text, appended
// to b, and that text as it stands in JSON; nil if it is not, or its text may not stand
// elsewhere as it does here.
func (l *likeness) again(e *wire.Event, b []byte) (out, text []byte) {
	n := len(e.Raw) - len(l.raw) + l.end - l.start
	if len(l.raw) == 0 || n <= 0 || e.Unterminated ||
		string(e.Raw[:l.start]) != string(l.raw[:l.start]) || string(e.Raw[l.start+n:]) != string(l.raw[l.end:]) {
		return b, nil
	}
	text = e.Raw[l.start : l.start+n]
	if !plain(text) {
		return b, nil
	}
	b = append(b, l.out[:l.outStart]...)
	b = append(b, text...)
	return append(b, l.out[l.outEnd:]...), text
}

// plain reports whether text is the inside of a string as text() writes it: valid
// UTF-8, with none but the short escapes.
func plain(text []byte) bool {
	ascii := true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i++; i == len(text) || strings.IndexByte(`nt"\rbf`, text[i]) < 0 {
				return false
			}
		case c < ' ' || c == '"' || c == 0x7f:
			return false
		default:
			ascii = ascii && c < utf8.RuneSelf
		}
	}
	return ascii || utf8.Valid(text)
}

// remember keeps an event to go by, if it told one text and nothing else, and that
// text stands in it and in what it became exactly once. The one before stays while
// what follows goes on with the same kind of text.
func (l *likeness) remember(e *wire.Event, events []Event, out []byte) {
	if len(events) != 1 || bytes.Count(out, endOfEvent) != 1 || events[0].Kind != l.kind { // it began or ended something
		l.raw = l.raw[:0]
	}
	if len(events) != 1 || bytes.Count(out, endOfEvent) != 1 || e.Unterminated || len(e.Raw) > maxLike || len(out) > maxLike {
		return
	}
	l.kind = events[0].Kind
	if l.kind != EventText && l.kind != EventReasoning || events[0].Text == "" {
		return
	}
	l.quoted = text(l.quoted[:0], events[0].Text)
	at, to := once(e.Raw, l.quoted), once(out, l.quoted)
	if n := len(l.quoted) - 1; at >= 0 && to >= 0 && plain(l.quoted[1:n]) {
		l.raw, l.out = append(l.raw[:0], e.Raw...), append(l.out[:0], out...)
		l.start, l.end = at+1, at+n
		l.outStart, l.outEnd = to+1, to+n
	}
}

var endOfEvent = []byte("\n\n")

// once is where what stands in b, -1 if that is nowhere or twice.
func once(b, what []byte) int {
	at := bytes.Index(b, what)
	if at >= 0 && bytes.Contains(b[at+1:], what) {
		return -1
	}
	return at
}
