package wire

import "unicode/utf8"

// maxShape bounds the event that a Tap remembers, in bytes.
const maxShape = 4 << 10

// shape is the last event that carried one text and told nothing else. Nearly all
// of a stream's events differ from the one before in that text alone; what was read
// of the one then holds for the other, since the bytes around the text are the same
// and the text is a string without escapes.
type shape struct {
	raw        []byte // the event; empty if there is none to go by
	start, end int    // of its text, in raw
	dataAt     int
	kind       outputKind
	choice     int64
	chunk      openaiChunk // what is to be cut; nothing in the other dialect
}

// noted is what was seen while one event was read.
type noted struct {
	texts   int
	text    span // of the last text, in the event's data; absent if it was no string
	kind    outputKind
	choice  int64
	reports int
	calls   int64 // tool calls before
	chunk   openaiChunk
}

// again takes an event that is like the last one in all but its text. It reports
// whether it is.
func (t *Tap) again(e *Event) (Step, bool) {
	p := &t.shape
	n := len(e.Raw) - len(p.raw) + p.end - p.start
	if len(p.raw) == 0 || n <= 0 || e.dataAt != p.dataAt || e.Unterminated ||
		string(e.Raw[:p.start]) != string(p.raw[:p.start]) || string(e.Raw[p.start+n:]) != string(p.raw[p.end:]) {
		return Step{}, false
	}
	text := e.Raw[p.start : p.start+n]
	if !unescaped(text) {
		return Step{}, false
	}
	t.count(p.kind, p.choice, text, false)
	if p.chunk.numCuts == 0 {
		return Step{Out: e.Raw, Content: true}, true
	}
	c := p.chunk
	for i := range c.cuts[:c.numCuts] {
		if k := &c.cuts[i]; k.start >= p.end-p.dataAt {
			by := n - (p.end - p.start)
			k.comma, k.start, k.end = k.comma+by, k.start+by, k.end+by
		}
	}
	return Step{Out: t.spliced(*e, &c), Content: true}, true
}

// unescaped reports whether text, which stands between quotes, is the whole inside
// of a string, without escapes, and valid UTF-8.
func unescaped(text []byte) bool {
	for i := plain(text, 0); i < len(text); i = plain(text, i+1) {
		if text[i] < utf8.RuneSelf {
			return false
		}
	}
	return utf8.Valid(text)
}

// remember keeps an event to go by, if it carried one text and told nothing else.
func (t *Tap) remember(e *Event, s *Step) {
	p, was := &t.shape, &t.seen
	p.raw = p.raw[:0]
	if !s.Content || s.Terminal || s.Err != nil || was.texts != 1 || !was.text.ok() || was.reports > 0 || was.calls != t.toolCalls ||
		e.dataAt < 0 || e.Unterminated || len(e.Raw) > maxShape {
		return
	}
	p.raw = append(p.raw, e.Raw...)
	p.start, p.end, p.dataAt = e.dataAt+was.text.start, e.dataAt+was.text.end, e.dataAt
	p.kind, p.choice, p.chunk = was.kind, was.choice, was.chunk
}
