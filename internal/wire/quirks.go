package wire

import (
	"bytes"
	"slices"
)

// Quirks is what a provider that speaks the OpenAI dialect wants of a request in
// another way than OpenAI does. The zero value wants nothing.
type Quirks struct {
	// Rename gives members the name that the provider has for the same. Where both
	// stand in a body the provider's own is sent.
	Rename []Rename
	// Drop lists members that it refuses and that it does without: what they ask for
	// it does unasked.
	Drop []Dropped
	// Labels lists members that it refuses and that are labels: they go into metadata,
	// each under its own name. What stands there under that name already stays.
	Labels []string
	// Reasoning is how it takes back what the model reasoned earlier, where that is not
	// in the member reasoning_content of a message.
	Reasoning Reasoning
	// ShortIDs says that ids of tool calls have nine letters or digits: others are
	// replaced by their hash, the same in a call and in its result.
	ShortIDs bool
}

// Rename is a member of a body under two names.
type Rename struct{ From, To string }

// Dropped is a member that is not sent: if it has one of the literals, or whatever it has
// where there are none.
type Dropped struct {
	Name   string
	Values []string
}

// Reasoning is where the messages of the assistant have what the model reasoned.
type Reasoning uint8

// The places.
const (
	ReasoningContent Reasoning = iota // the member reasoning_content, which is the usual
	ReasoningMember                   // the member reasoning
	ReasoningPart                     // a part of the content of type thinking, the first
)

// None reports whether there is nothing to do.
func (q *Quirks) None() bool {
	return len(q.Rename) == 0 && len(q.Drop) == 0 && len(q.Labels) == 0 && q.Reasoning == ReasoningContent && !q.ShortIDs
}

// Apply returns a body as the provider wants it: the body itself where nothing
// differs. REQUIRES: Scan has accepted the body.
func (q *Quirks) Apply(body []byte) []byte {
	l := lexer{b: body, lax: true}
	var p []patch
	all := l.fields(func(name string) bool {
		if name != "messages" || !q.ShortIDs && q.Reasoning == ReasoningContent {
			return false
		}
		p = q.messages(&l, p)
		return true
	})
	var gone []removable
	for i := range all {
		f := &all[i]
		switch to, ok := q.member(f, all, body); {
		case !ok:
			gone = append(gone, f.at)
		case to != f.name:
			p = append(p, patch{f.key, quoted(to)})
		}
	}
	p, gone = q.labels(p, gone, all, body)
	if p = without(p, gone); l.err != nil || len(p) == 0 {
		return body
	}
	return bytes.Join(patched(body, p), nil)
}

// member is what a member is called, not ok if it is not sent.
func (q *Quirks) member(f *placed, all []placed, body []byte) (to string, ok bool) {
	for _, d := range q.Drop {
		if d.Name == f.name && (len(d.Values) == 0 || slices.Contains(d.Values, string(body[f.value.start:f.value.end]))) {
			return "", false
		}
	}
	for _, r := range q.Rename {
		if r.From != f.name {
			continue
		}
		return r.To, find(all, r.To) == nil
	}
	return f.name, true
}

// labels moves labels into metadata. Where there is none the first label becomes it.
func (q *Quirks) labels(p []patch, gone []removable, all []placed, body []byte) ([]patch, []removable) {
	meta := find(all, "metadata")
	var there []placed
	if meta != nil && body[meta.value.start] == '{' {
		l := lexer{b: body[:meta.value.end], i: meta.value.start, lax: true}
		there = l.fields(nil)
	}
	var first *placed
	var moved []byte
	for _, name := range q.Labels {
		f := find(all, name)
		if f == nil {
			continue
		}
		if find(there, name) == nil && body[f.value.start] == '"' {
			moved = append(append(append(append(moved, ','), quoted(name)...), ':'), body[f.value.start:f.value.end]...)
			if first == nil && meta == nil {
				first = f
				continue
			}
		}
		gone = append(gone, f.at)
	}
	if len(moved) == 0 {
		return p, gone
	}
	moved = moved[1:]
	switch {
	case meta == nil:
		p = append(p, patch{span{first.key.start, first.value.end}, append(append([]byte(`"metadata":{`), moved...), '}')})
	case len(there) > 0:
		p = append(p, patch{span{meta.value.start + 1, meta.value.start + 1}, append(moved, ',')})
	default:
		p = append(p, patch{meta.value, append(append([]byte{'{'}, moved...), '}')})
	}
	return p, gone
}

// placed is a member of an object and where it stands.
type placed struct {
	name       string
	key, value span
	at         removable
}

// find is the member of a name, nil if there is none.
func find(list []placed, name string) *placed {
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}

// fields reads an object; what is none has no fields. Values are passed over but those that read has read, which may
// be nil.
func (l *lexer) fields(read func(name string) bool) (all []placed) {
	for o := l.objectIfAny(); l.member(&o); {
		f := placed{name: string(l.key(&o)), key: o.key, at: removable{start: o.key.start, comma: o.comma}}
		if n := len(all); n > 0 {
			all[n-1].at.next = o.key.start
		}
		l.ws()
		f.value.start = l.i
		if read == nil || !read(f.name) {
			l.skip()
		}
		f.value.end, f.at.end = l.i, l.i
		all = append(all, f)
	}
	return all
}
