package dialect

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
)

// lenient reads what a provider wrote: bytes that are no UTF-8 become U+FFFD, as
// on the way in the provider's own dialect, and of a key that comes twice the last
// counts.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// member is one member of an object that nobody has a typed place for.
type member struct {
	name  string
	value jsontext.Value
}

// members are the members of an object in their order. rest is what an embedded
// jsontext.Value has collected: an object, or nothing.
func members(rest jsontext.Value) []member {
	if len(rest) == 0 {
		return nil
	}
	var out []member
	d := jsontext.NewDecoder(strings.NewReader(string(rest)), lenient)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return out
		}
		m := member{name: name.String()}
		v, err := d.ReadValue()
		if err != nil {
			return out
		}
		m.value = v.Clone()
		out = append(out, m)
	}
	return out
}

// content is a string or a list of parts. Anything else, which only parts that nobody
// here knows have, is passed over: the part is told of as a whole.
type content[T any] struct {
	given bool // it is neither left out nor null
	plain bool // it is a string
	text  string
	parts []T
}

// UnmarshalJSONFrom reads a string, a list or null.
func (c *content[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case '"':
		c.given, c.plain = true, true
		return json.UnmarshalDecode(d, &c.text)
	case '[':
		c.given = true
		return json.UnmarshalDecode(d, &c.parts)
	}
	return d.SkipValue()
}

// is reports whether a raw value is one of the literals, which have no white space.
func is(v jsontext.Value, literals ...string) bool {
	const longest = 64
	if len(literals) == 0 || len(v) > longest {
		return false
	}
	if slices.Contains(literals, string(v)) {
		return true
	}
	v = v.Clone()
	return v.Compact() == nil && slices.Contains(literals, string(v))
}

// null reports a value that is left out or null.
func null(v jsontext.Value) bool { return len(v) == 0 || v[0] == 'n' }

// number is a raw number's value; NaN-free, 0 for what is no number.
func number(v jsontext.Value) float64 {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0
	}
	return f
}

// bound is a bound on the output: 0 for null, and what no int64 holds is the largest
// that anything is asked for, as for wire.Scan.
func bound(v jsontext.Value) int64 {
	const most = 1 << 40
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil && !null(v) {
		return most
	}
	return min(max(n, 0), most)
}

// object reports whether text is one JSON object, without a key twice.
func object(text string) bool {
	v := jsontext.Value(text)
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && v.IsValid()
}

// misread is the error for a request that its dialect does not allow.
func misread(err error) *sluice.Error {
	path := ""
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		path = pathOf(string(e.JSONPointer))
	}
	e := sluice.Invalid(path, "has a value of another type than its dialect says")
	if path == "" {
		e.Msg = "the request has a value of another type than its dialect says"
	}
	e.Err = err
	return e
}

// pathOf is a JSON pointer as a path: /messages/0/content is messages[0].content.
func pathOf(pointer string) string {
	var b strings.Builder
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if _, err := strconv.Atoi(token); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(clean(token))
	}
	return b.String()
}

// sep appends the comma that a member or an element needs, if it is not the first.
func sep(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] != '{' && b[n-1] != '[' && b[n-1] != ':' {
		return append(b, ',')
	}
	return b
}

// key appends a member's name. Names are of this package and need no escapes.
func key(b []byte, name string) []byte {
	b = append(sep(b), '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// text appends a string.
func text(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // what is no UTF-8 becomes U+FFFD
	return b
}

// unquoted is the text whose inside of a string is given; buf is room for it, and is
// returned. REQUIRES: its escapes are known to be good.
func unquoted(inside, buf []byte) (s, room []byte) {
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, buf
	}
	buf = append(append(append(buf[:0], '"'), inside...), '"')
	n := len(buf)
	buf, _ = jsontext.AppendUnquote(buf, buf)
	return buf[n:], buf
}

// inside appends a text as the inside of a string.
func inside(b []byte, s string) []byte {
	n := len(b)
	b = text(b, s)
	return append(b[:n], b[n+1:len(b)-1]...)
}

// quote appends a member that is a string, of which the inside is given.
func quote(b []byte, name string, inside []byte) []byte {
	return append(append(append(key(b, name), '"'), inside...), '"')
}

// pair appends a member that is a string.
func pair(b []byte, name, value string) []byte { return text(key(b, name), value) }

// figure appends a member that is a whole number.
func figure(b []byte, name string, v int64) []byte { return strconv.AppendInt(key(b, name), v, 10) }
