package wire

import (
	"bytes"
	"crypto/sha256"
)

// messages writes what messages say in another way: the ids of tool calls, and what the
// model reasoned.
func (q *Quirks) messages(l *lexer, p []patch) []patch {
	for a := l.arrayIfAny(); l.element(&a); {
		all := l.fields(func(name string) bool {
			switch {
			case q.ShortIDs && name == "tool_call_id":
				p = shortID(l, p)
			case q.ShortIDs && name == "tool_calls":
				p = callIDs(l, p)
			default:
				return false
			}
			return true
		})
		p = q.reasoning(p, all, l.b)
	}
	return p
}

// reasoned are the members that have what the model reasoned, the one that counts first.
var reasoned = [...]string{"reasoning_content", "reasoning"}

// reasoning puts what the model reasoned where the provider takes it.
func (q *Quirks) reasoning(p []patch, all []placed, body []byte) []patch {
	if q.Reasoning == ReasoningContent {
		return p
	}
	var said *placed
	var gone []removable
	for _, name := range reasoned {
		f := find(all, name)
		if f == nil {
			continue
		}
		if said == nil && body[f.value.start] == '"' && f.value.len() > len(`""`) {
			said = f
		} else {
			gone = append(gone, f.at)
		}
	}
	switch {
	case said == nil:
	case q.Reasoning == ReasoningMember:
		p = append(p, patch{said.key, []byte(`"reasoning"`)})
	default:
		part := append(append([]byte(`{"type":"thinking","thinking":[{"type":"text","text":`), body[said.value.start:said.value.end]...), `}],"closed":true}`...)
		content := find(all, "content")
		if content == nil {
			p = append(p, patch{span{said.key.start, said.value.end}, append(append([]byte(`"content":[`), part...), ']')})
			break
		}
		p, gone = append(p, patch{content.value, behind(part, body[content.value.start:content.value.end])}), append(gone, said.at)
	}
	return without(p, gone)
}

// behind is a list of parts: one, and behind it those of a content.
func behind(part, content []byte) []byte {
	b := append([]byte{'['}, part...)
	switch content[0] {
	case '"':
		if string(content) != `""` {
			b = append(append(append(b, `,{"type":"text","text":`...), content...), '}')
		}
	case '[':
		if rest := bytes.TrimSpace(content[1 : len(content)-1]); len(rest) > 0 {
			b = append(append(b, ','), rest...)
		}
	}
	return append(b, ']')
}

func callIDs(l *lexer, p []patch) []patch {
	for a := l.arrayIfAny(); l.element(&a); {
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
