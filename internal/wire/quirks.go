package wire

import (
	"bytes"
	"crypto/sha256"
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
	Drop []string
	// ShortIDs says that ids of tool calls have nine letters or digits: others are
	// replaced by their hash, the same in a call and in its result.
	ShortIDs bool
}

// Rename is a member of a body under two names.
type Rename struct{ From, To string }

// None reports whether there is nothing to do.
func (q *Quirks) None() bool { return len(q.Rename) == 0 && len(q.Drop) == 0 && !q.ShortIDs }

// Apply returns a body as the provider wants it: the body itself where nothing
// differs. REQUIRES: Scan has accepted the body.
func (q *Quirks) Apply(body []byte) []byte {
	l := lexer{b: body, lax: true}
	var all []removable
	var names []string
	var keys []span
	var p []patch
	for o := l.object(); l.member(&o); {
		name, at := string(l.key(&o)), removable{start: o.key.start, comma: o.comma}
		keys = append(keys, o.key)
		if n := len(all); n > 0 {
			all[n-1].next = o.key.start
		}
		if name == "messages" && q.ShortIDs {
			p = shortIDs(&l, p)
		} else {
			l.skip()
		}
		at.end = l.i
		all, names = append(all, at), append(names, name)
	}
	var gone []removable
	for i, name := range names {
		to, ok := q.member(name, names)
		switch {
		case !ok:
			gone = append(gone, all[i])
		case to != name:
			p = append(p, patch{keys[i], quoted(to)})
		}
	}
	if p = without(p, gone); l.err != nil || len(p) == 0 {
		return body
	}
	return bytes.Join(patched(body, p), nil)
}

// member is what a member is called, not ok if it is not sent.
func (q *Quirks) member(name string, names []string) (to string, ok bool) {
	if slices.Contains(q.Drop, name) {
		return "", false
	}
	for _, r := range q.Rename {
		if r.From != name {
			continue
		}
		if slices.Contains(names, r.To) {
			return "", false
		}
		return r.To, true
	}
	return name, true
}

// shortIDs replaces the ids of tool calls in messages that have another form.
func shortIDs(l *lexer, p []patch) []patch {
	if l.ws() != '[' {
		l.skip()
		return p
	}
	for a := l.array(); l.element(&a); {
		for o := l.objectIfAny(); l.member(&o); {
			switch string(l.key(&o)) {
			case "tool_call_id":
				p = shortID(l, p)
			case "tool_calls":
				p = callIDs(l, p)
			default:
				l.skip()
			}
		}
	}
	return p
}

func callIDs(l *lexer, p []patch) []patch {
	if l.ws() != '[' {
		l.skip()
		return p
	}
	for a := l.array(); l.element(&a); {
		for o := l.objectIfAny(); l.member(&o); {
			if string(l.key(&o)) == "id" {
				p = shortID(l, p)
			} else {
				l.skip()
			}
		}
	}
	return p
}

// shortID replaces one id.
func shortID(l *lexer, p []patch) []patch {
	if l.ws() != '"' {
		l.skip()
		return p
	}
	in, escaped := l.str()
	id := l.b[in.start:in.end]
	if escaped {
		id = appendUnquoted(nil, id)
	}
	if isShort(id) {
		return p
	}
	return append(p, patch{in, hashed(id)})
}

const shortLen = 9

const shortLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func isShort(id []byte) bool {
	if len(id) != shortLen {
		return false
	}
	for _, c := range id {
		if c >= 0x80 || bytes.IndexByte([]byte(shortLetters), c) < 0 {
			return false
		}
	}
	return true
}

// hashed is the short form of an id: some 53 bits of its hash, so that two of one
// conversation do not meet.
func hashed(id []byte) []byte {
	sum := sha256.Sum256(id)
	out := make([]byte, shortLen)
	for i := range out {
		out[i] = shortLetters[int(sum[i])%len(shortLetters)]
	}
	return out
}
