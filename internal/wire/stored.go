package wire

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"sluice"
	"sluice/internal/route"
)

// What is asked of an answer that the provider has stored names it in the path and has no
// body that counts. Nothing is generated for it, so that nothing is billed.

// maxStoredQuery bounds, in bytes, what stands behind the path.
const maxStoredQuery = 4 << 10

// Stored reports whether the operation asks something of a stored answer.
func (o Operation) Stored() bool { return o >= firstStored && o < NumOperations }

// Method is the method of a request.
func (o Operation) Method() string {
	switch o {
	case Models, ResponseGet, ResponseItems:
		return http.MethodGet
	case ResponseDelete:
		return http.MethodDelete
	}
	return http.MethodPost
}

// ScanStored is the head of a request of a stored answer. Which model it is of nobody has
// said. The query goes on as it is written, so that what this gateway has not heard of
// does too.
func ScanStored(op Operation, id, query string) (*Head, error) {
	h := &Head{Op: op, Refs: []route.State{{Kind: route.StateResponse, ID: id}}, Query: query, After: -1}
	if id == "" || len(id) > maxStateID || strings.Trim(id, ".") == "" {
		return nil, sluice.Invalid("response_id", "is no id of a response: write it as it was given")
	}
	if len(query) > maxStoredQuery {
		return nil, sluice.Invalid("", "what stands behind the path is longer than 4096 bytes")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, sluice.Invalid("", "what stands behind the path cannot be read: escape it")
	}
	if _, ok := values["api-version"]; ok {
		return nil, sluice.Invalid("api-version", "is the operator's to choose: leave it out")
	}
	switch stream := values["stream"]; {
	case len(stream) > 1:
		return nil, sluice.Invalid("stream", "is given twice")
	case len(stream) == 0 || op != ResponseGet || stream[0] == "false":
	case stream[0] == "true":
		h.Stream = true
		if after := values.Get("starting_after"); after != "" {
			if h.After, err = strconv.ParseInt(after, 10, 63); err != nil || h.After < 0 {
				return nil, sluice.Invalid("starting_after", "must be the number of an event")
			}
		}
	default:
		return nil, sluice.Invalid("stream", "must be true or false")
	}
	return h, nil
}

// FromStart is the head of a request for a stream from its first event on.
func (h *Head) FromStart() *Head {
	values, err := url.ParseQuery(h.Query)
	if err != nil || h.After < 0 {
		return h
	}
	values.Del("starting_after")
	all := *h
	all.Query, all.After = values.Encode(), -1
	return &all
}

// StoredPath is where a backend has what is asked of, below the path of its Responses,
// which may have a query of its own.
func (h *Head) StoredPath(responses string) string {
	path, own, _ := strings.Cut(responses, "?")
	_, below, _ := strings.Cut(h.Op.Path(), "{id}")
	path += "/" + url.PathEscape(h.Refs[0].ID) + below
	switch {
	case own != "" && h.Query != "":
		return path + "?" + own + "&" + h.Query
	case own != "" || h.Query != "":
		return path + "?" + own + h.Query
	}
	return path
}

// Pending reports whether a response that came in one piece is still made: what it takes
// is told when it is whole.
func (t *Tap) Pending() bool { return t.finish == "queued" || t.finish == "in_progress" }

// ResponseID is the id of the response that is answered, empty while none has come.
func (t *Tap) ResponseID() string { return t.id }

// storedReading reads what is told of a stored answer: one that has failed is told as
// that, and is no failure of what asks for it.
var storedReading = reading{
	event: (*Tap).responsesEvent, body: (*Tap).storedBody,
	whole: func(*Tap) bool { return false },
}

func (t *Tap) storedBody(l *lexer) *sluice.Error {
	if t.op == ResponseItems || t.op == ResponseDelete {
		l.skip()
		return nil
	}
	_ = t.responsesBody(l) // that it has failed is its state
	return nil
}
