package dialect

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice/internal/wire"
)

// maxLike bounds the event that a likeness remembers, in bytes, and maxGaps the places
// in which another may differ from it.
const (
	maxLike = 4 << 10
	maxGaps = 16
)

// likeness is the last event that carried one text and nothing else, and what it
// became. Nearly all of a stream's events differ from the one before in that text, and
// in members that are not read, alone: then what they become differs in the text, and
// in its number where the client's events have any.
type likeness struct {
	unread [][]byte // such members, as they stand before their value: "name":

	raw, out         []byte // raw is empty if there is none to go by
	gaps             []gap  // in raw, in their order
	outStart, outEnd int    // of the text, in out
	numStart, numEnd int    // of the number, before it; both 0 if there is none
	kind             EventKind
	quoted           []byte
}

// gap is a place in which events that are alike may differ: the inside of a string, or
// the digits of a figure.
type gap struct {
	start, end int
	digits     bool
	text       bool // it is the text
}

// again is what an event becomes that is like the last in all but its gaps, appended to
// b, and its text as it stands in JSON; nil if it is not, or its text may not stand
// elsewhere as it does here. number is the one of the client's next event.
func (l *likeness) again(e *wire.Event, b []byte, number int64) (out, text []byte) {
	if len(l.raw) == 0 || e.Unterminated {
		return b, nil
	}
	if text = l.match(e.Raw); text == nil {
		return b, nil
	}
	if l.numEnd > 0 {
		b = append(b, l.out[:l.numStart]...)
		b = strconv.AppendInt(b, number, 10)
	}
	b = append(b, l.out[l.numEnd:l.outStart]...)
	b = append(b, text...)
	return append(b, l.out[l.outEnd:]...), text
}

// match is the text of an event that is like the last, nil if it is not.
func (l *likeness) match(raw []byte) (text []byte) {
	at, from := 0, 0
	for i := range l.gaps {
		g := &l.gaps[i]
		n := g.start - from
		if len(raw)-at < n || string(raw[at:at+n]) != string(l.raw[from:g.start]) {
			return nil
		}
		at, from = at+n, g.end
		switch {
		case g.digits:
			n = digits(raw[at:])
		case i == len(l.gaps)-1: // all that is left but what follows
			n = len(raw) - at - (len(l.raw) - g.end)
		default:
			n = quotedLen(raw[at:])
		}
		if n <= 0 || !g.digits && !plain(raw[at:at+n]) {
			return nil
		}
		if g.text {
			text = raw[at : at+n]
		}
		at += n
	}
	if string(raw[at:]) != string(l.raw[from:]) {
		return nil
	}
	return text
}

// digits is how many digits b begins with.
func digits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return n
}

// quotedLen is how long a string is of which b begins with the inside; -1 if it does
// not end.
func quotedLen(b []byte) int {
	for n := 0; ; n++ {
		at := bytes.IndexByte(b[n:], '"')
		if at < 0 {
			return -1
		}
		n += at
		slashes := 0
		for slashes < n && b[n-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return n
		}
	}
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
// what follows goes on with the same kind of text. number is that of the client's
// event, negative if it has none.
func (l *likeness) remember(e *wire.Event, events []Event, out []byte, number int64) {
	one := len(events) == 1 && (events[0].Kind == EventText || events[0].Kind == EventReasoning) && len(events[0].Logprobs) == 0 && bytes.Count(out, endOfEvent) == 1
	if !one || events[0].Kind != l.kind { // it began or ended something
		l.raw = l.raw[:0]
	}
	if !one || e.Unterminated || events[0].Text == "" || len(e.Raw) > maxLike || len(out) > maxLike {
		return
	}
	l.kind = events[0].Kind
	l.quoted = text(l.quoted[:0], events[0].Text)
	at, to := once(e.Raw, l.quoted), once(out, l.quoted)
	n := len(l.quoted) - 1
	if at < 0 || to < 0 || !plain(l.quoted[1:n]) {
		return
	}
	numStart, numEnd := 0, 0
	if number >= 0 {
		figure := strconv.AppendInt([]byte(numbered), number, 10)
		if numEnd = once(out[:to], figure) + len(figure); numEnd < len(figure) {
			return
		}
		numStart = numEnd - len(figure) + len(numbered)
	}
	if !l.mark(e.Raw, gap{start: at + 1, end: at + n, text: true}) {
		l.raw = l.raw[:0]
		return
	}
	l.raw, l.out = append(l.raw[:0], e.Raw...), append(l.out[:0], out...)
	l.outStart, l.outEnd = to+1, to+n
	l.numStart, l.numEnd = numStart, numEnd
}

// numbered stands before an event's number.
const numbered = `"sequence_number":`

// mark notes where an event that is like raw may differ from it, and reports whether
// it can be told.
func (l *likeness) mark(raw []byte, text gap) bool {
	l.gaps = append(l.gaps[:0], text)
	for _, name := range l.unread {
		for at := 0; ; {
			i := bytes.Index(raw[at:], name)
			if i < 0 {
				break
			}
			at += i + len(name)
			if raw[at-len(name)-1] == '\\' { // within a string
				continue
			}
			for at < len(raw) && raw[at] == ' ' {
				at++
			}
			g := gap{start: at}
			if at < len(raw) && raw[at] == '"' {
				g.start++
				g.end = g.start + quotedLen(raw[g.start:])
			} else {
				g.digits = true
				g.end = at + digits(raw[at:])
			}
			if g.end > g.start {
				l.gaps = append(l.gaps, g)
			}
		}
	}
	slices.SortFunc(l.gaps, func(a, b gap) int { return a.start - b.start })
	for i := 1; i < len(l.gaps); i++ {
		if l.gaps[i].start <= l.gaps[i-1].end {
			return false
		}
	}
	return len(l.gaps) <= maxGaps
}

// asUnread are members of a backend's events that its reader does not read.
func asUnread(names ...string) (out [][]byte) {
	for _, n := range names {
		out = append(out, []byte(`"`+n+`":`))
	}
	return out
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
