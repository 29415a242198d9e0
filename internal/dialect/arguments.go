package dialect

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// cutsOff reports an answer that was cut off where it was: the arguments of its last call
// may end anywhere.
func (s Stop) cutsOff() bool {
	return s.Reason == StopLength || s.Reason == StopContext || s.Reason == StopRefusal
}

// settle makes the arguments of calls objects, for clients whose dialect has them as such.
// Where the answer was cut off in the middle of some, they are what has come whole of
// them, as clients of such a dialect read the fragments of a stream.
func (a *Answer) settle(to *codec) (err error) {
	a.each(func(_ int, parts []Part, s Stop) {
		for i := range parts {
			c := &parts[i].Call
			if parts[i].Kind != CallPart || !to.objects || object(c.Arguments) {
				continue
			}
			args, ok := objectOf(c.Arguments, s)
			if !ok {
				err = uncarried("arguments of a tool call that are no JSON object")
				return
			}
			c.Arguments = args
		}
	})
	return err
}

// objectOf is arguments as an object; not ok if they are none and were not cut off.
func objectOf(args string, s Stop) (string, bool) {
	switch strings.TrimSpace(args) {
	case "", "null":
		return "{}", true
	}
	if object(args) {
		return args, true
	}
	if !s.cutsOff() {
		return "", false
	}
	return wholeOf(args)
}

// wholeOf is what has come whole of an object that is cut off: a text, a number or a name
// at its end may go on, and is left out. Not ok if it is not the beginning of an object.
func wholeOf(args string) (string, bool) {
	var out bytes.Buffer
	d := jsontext.NewDecoder(strings.NewReader(args))
	e := jsontext.NewEncoder(&out)
	if d.PeekKind() != '{' {
		return "", false
	}
	name := ""
	for {
		t, err := d.ReadToken()
		if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && t.Kind() == '0' && d.InputOffset() == int64(len(args)) {
			break
		}
		if err != nil {
			return "", false
		}
		if in, n := d.StackIndex(d.StackDepth()); t.Kind() == '"' && in == '{' && n%2 == 1 {
			name = t.String()
			continue
		}
		if in, _ := e.StackIndex(e.StackDepth()); in == '{' && t.Kind() != '}' {
			_ = e.WriteToken(jsontext.String(name)) // the decoder has found it good, as what follows
		}
		_ = e.WriteToken(t)
	}
	for e.StackDepth() > 0 {
		end := jsontext.EndObject
		if in, _ := e.StackIndex(e.StackDepth()); in == '[' {
			end = jsontext.EndArray
		}
		_ = e.WriteToken(end)
	}
	return strings.TrimSpace(out.String()), true
}

// nesting follows fragments of a JSON object to its end.
type nesting struct {
	depth         int
	begun         bool
	inside, quote bool // of a string, after a backslash in it
}

func (n *nesting) add(fragment string) {
	for i := range len(fragment) {
		switch c := fragment[i]; {
		case n.quote:
			n.quote = false
		case n.inside && c == '\\':
			n.quote = true
		case c == '"':
			n.inside = !n.inside
		case n.inside:
		case c == '{' || c == '[' && n.begun:
			n.depth++
			n.begun = true
		case c == '}' || c == ']':
			n.depth--
		}
	}
}

// whole reports whether the object has ended.
func (n *nesting) whole() bool { return n.begun && n.depth <= 0 }
