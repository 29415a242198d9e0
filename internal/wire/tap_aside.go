package wire

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"sluice"
	"sluice/internal/price"
)

// asideReading is how answers beside text are read. A stream ends where the upstream
// ends it, after an event that says that something is complete.
var asideReading = reading{
	event: (*Tap).asideEvent, body: (*Tap).asideBody,
	whole: func(t *Tap) bool { return t.finish != "" },
}

// asideFigures is what an answer or an event tells.
type asideFigures struct {
	kind   string // type of an event
	tokens openaiFigures
	told   bool // tokens are told
	units  int64
	data   int64 // elements of data: images
	err    *sluice.Error
}

// asideEvent takes one event that has data.
func (t *Tap) asideEvent(e Event) Step {
	if string(bytes.TrimSpace(e.Data)) == "[DONE]" {
		t.finish, t.final = "done", t.reported
		return Step{Out: e.Raw, Content: true, Terminal: true}
	}
	l := lexer{b: e.Data, lax: true}
	var f asideFigures
	t.asideObject(&l, &f)
	l.end()
	switch {
	case l.err != nil:
		return Step{Err: malformed(l.err)}
	case f.err != nil:
		return Step{Err: f.err}
	}
	if strings.HasSuffix(f.kind, ".completed") || strings.HasSuffix(f.kind, ".done") {
		t.finish, t.final = "done", true
		if asides[t.op].unit == price.Image {
			f.units = t.usage.Units + 1
		}
	}
	t.asideReport(&f)
	return Step{Out: e.Raw, Content: true}
}

// asideBody takes a whole answer.
func (t *Tap) asideBody(l *lexer) *sluice.Error {
	var f asideFigures
	t.asideObject(l, &f)
	if f.err == nil && l.err == nil {
		if asides[t.op].unit == price.Image {
			f.units = f.data
		}
		t.asideReport(&f)
	}
	return f.err
}

// asideRaw takes a whole answer that is no JSON: sound, or text.
func (t *Tap) asideRaw(b []byte) bool {
	if !t.op.Aside() || !asides[t.op].raw {
		return false
	}
	if t.op != Speech && len(b) > 0 && b[0] == '{' {
		l := lexer{b: b, lax: true}
		l.skip()
		l.end()
		return l.err != nil // a text that begins so
	}
	return true
}

// asideObject reads an event or an answer.
func (t *Tap) asideObject(l *lexer, f *asideFigures) {
	for o := l.objectIfAny(); l.member(&o); {
		switch string(l.key(&o)) {
		case "type":
			f.kind = l.scalar(maxWord)
		case "error":
			if !l.null() {
				f.err = l.errorObject()
			}
		case "model":
			l.keepWord(&t.model)
		case "data":
			for a := l.arrayIfAny(); l.element(&a); f.data++ {
				l.skip()
			}
		case "usage":
			f.usage(l)
		case "duration": // of what was heard, in a verbose transcription
			f.units = max(f.units, l.seconds())
		case "meta":
			f.meta(l)
		default:
			l.skip()
		}
	}
}

// usage reads tokens, or what stands in their place.
func (f *asideFigures) usage(l *lexer) {
	if l.ws() != '{' {
		l.skip()
		return
	}
	for o := l.object(); l.member(&o); {
		switch key := l.key(&o); string(key) {
		case "input_tokens", "prompt_tokens":
			f.told = true
			f.tokens.prompt, _ = l.figure()
		case "output_tokens", "completion_tokens":
			f.told = true
			f.tokens.completion, _ = l.figure()
		case "total_tokens":
			f.told = true
			f.tokens.total, _ = l.figure()
		case "input_tokens_details", "input_token_details", "prompt_tokens_details":
			f.tokens.details(l, true)
		case "output_tokens_details", "output_token_details", "completion_tokens_details":
			f.tokens.details(l, false)
		case "seconds":
			f.units = l.seconds()
		default:
			l.skip()
		}
	}
	if f.tokens.prompt == 0 && f.tokens.completion == 0 { // a reranker tells the sum alone
		f.tokens.prompt = f.tokens.total
	}
}

// meta reads what a reranker bills: meta.billed_units.search_units.
func (f *asideFigures) meta(l *lexer) {
	l.within("billed_units", func() {
		l.within("search_units", func() { f.units, _ = l.figure() })
	})
}

// within calls read at a member of an object; all else is skipped.
func (l *lexer) within(name string, read func()) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) == name {
			read()
		} else {
			l.skip()
		}
	}
}

// seconds reads a number of seconds, rounded up.
func (l *lexer) seconds() int64 {
	v, _ := strconv.ParseFloat(l.scalar(maxWord), 64) // some write it as a string
	return int64(math.Ceil(min(max(v, 0), 1<<40)))
}

// asideReport takes what was told.
func (t *Tap) asideReport(f *asideFigures) {
	if !f.told && f.units <= 0 {
		return
	}
	u := f.tokens.usage(t.o.Ceiling)
	if !f.told {
		u = sluice.Usage{}
	}
	u.Units = max(t.usage.Units, min(max(f.units, 0), int64(t.o.Ceiling)))
	t.report(u)
}
