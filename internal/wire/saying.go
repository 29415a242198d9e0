package wire

import "strings"

// maxSayings bounds how many problems of a validation are told.
const maxSayings = 8

// saying reads what an error says: a text, or, of servers that validate field by
// field, a list of what is wrong with each (FastAPI's detail: Mistral, vLLM), which
// may stand under detail. It is bounded as a message.
func (l *lexer) saying() string {
	switch l.ws() {
	case '[':
		var all []string
		for a := l.array(); l.element(&a); {
			if w := l.saying(); w != "" && len(all) < maxSayings {
				all = append(all, w)
			}
		}
		return clip([]byte(strings.Join(all, "; ")), maxMessage)
	case '{':
		return l.problem()
	}
	return l.scalar(maxMessage)
}

// problem reads one problem: where it is and what is wrong.
func (l *lexer) problem() string {
	var at []string
	var what string
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "loc":
			at = l.location()
		case "msg", "message", "detail":
			if w := l.saying(); what == "" {
				what = w
			}
		default:
			l.skip()
		}
	}
	if len(at) > 0 {
		what = strings.Join(at, ".") + ": " + what
	}
	return clip([]byte(what), maxMessage)
}

// location reads the path of a field, without the body that it is in.
func (l *lexer) location() (at []string) {
	if l.ws() != '[' {
		l.skip()
		return nil
	}
	for a := l.array(); l.element(&a); {
		w := l.scalar(maxWord)
		if w != "" && (len(at) > 0 || w != "body") && len(at) < maxSayings {
			at = append(at, w)
		}
	}
	return at
}
