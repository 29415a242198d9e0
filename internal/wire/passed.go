package wire

import "net/http"

// Body is the refusal's body as a client of the dialect can read it: its own bytes
// where they have the dialect's form. A code that is a number becomes a string, which
// the typed client libraries want; and of what has another form (a bare string, a
// list of problems, a page) the words are put into the dialect's.
func (r Refusal) Body(d Dialect, body []byte) []byte {
	switch d {
	case OpenAI:
		if code, ok := formed(body); ok {
			return quotedAt(body, code)
		}
		e := openaiError{Message: r.told(), Type: r.Type}
		if e.Type == "" {
			e.Type = "invalid_request_error"
		}
		if r.Code != "" {
			e.Code = &r.Code
		}
		return encode(struct {
			Error openaiError `json:"error"`
		}{e})
	case Anthropic:
		if _, ok := formed(body); ok {
			return body
		}
		kind := r.Type
		if kind == "" {
			kind = rejections[r.Kind].anthropicType
		}
		return encode(struct {
			Type  string         `json:"type"`
			Error anthropicError `json:"error"`
		}{"error", anthropicError{Type: kind, Message: r.told()}})
	case Gemini:
		if r.Code != "" && r.Message != "" {
			return body
		}
		return encode(struct {
			Error geminiRejection `json:"error"`
		}{geminiRejection{Code: r.Status, Message: r.told(), Status: rejections[r.Kind].geminiWord, Details: []any{}}})
	}
	return body
}

// told is the upstream's message, or what its status means.
func (r Refusal) told() string {
	if r.Message != "" {
		return r.Message
	}
	return http.StatusText(r.Status)
}

// formed reports whether a body is an error object with a message, and where its code
// stands if that is a number.
func formed(body []byte) (code span, ok bool) {
	l := lexer{b: body, lax: true}
	if l.ws() != '{' {
		return span{}, false
	}
	for o := l.object(); l.member(&o); {
		if string(l.key(&o)) != "error" || l.ws() != '{' {
			l.skip()
			continue
		}
		for e := l.object(); l.member(&e); {
			key := l.key(&e)
			c := l.ws()
			at := l.skip()
			switch string(key) {
			case "message":
				ok = c == '"'
			case "code":
				if c == '-' || c >= '0' && c <= '9' {
					code = at
				}
			}
		}
	}
	l.end()
	return code, ok && l.err == nil
}

// quotedAt puts quotes around what stands there.
func quotedAt(body []byte, at span) []byte {
	if !at.ok() {
		return body
	}
	out := append(make([]byte, 0, len(body)+2), body[:at.start]...)
	out = append(append(append(out, '"'), body[at.start:at.end]...), '"')
	return append(out, body[at.end:]...)
}
