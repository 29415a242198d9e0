package answer

import (
	"maps"
	"net/http"

	"sluice/internal/exchange"
	"sluice/internal/wire"
)

// Recorder is a client that keeps a copy of what passes through it to another. Use it for
// one request.
type Recorder struct {
	to    exchange.Client
	limit int

	head   *exchange.Head // of what was delivered; nil while nothing was
	stream bool
	body   []byte
	over   bool // it is more than limit, and nothing is kept
	failed bool // the client did not take all
}

var _ exchange.Client = (*Recorder)(nil)

// NewRecorder passes on to a client and keeps at most limit bytes of an answer; of more
// than that it keeps nothing.
func NewRecorder(to exchange.Client, limit int) *Recorder { return &Recorder{to: to, limit: limit} }

// Events implements exchange.Client.
func (r *Recorder) Events(h *exchange.Head, p []byte) error {
	r.keep(h, true, p)
	err := r.to.Events(h, p)
	r.failed = r.failed || err != nil
	return err
}

// Answer implements exchange.Client.
func (r *Recorder) Answer(h *exchange.Head, body []byte) error {
	r.keep(h, false, body)
	err := r.to.Answer(h, body)
	r.failed = r.failed || err != nil
	return err
}

// Committed implements exchange.Client.
func (r *Recorder) Committed() bool { return r.to.Committed() }

func (r *Recorder) keep(h *exchange.Head, stream bool, p []byte) {
	r.head, r.stream = h, stream
	if r.over || len(p) > r.limit-len(r.body) {
		r.over, r.body = true, nil
		return
	}
	r.body = append(r.body, p...)
}

// Over reports whether the answer is larger than the bound.
func (r *Recorder) Over() bool { return r.over }

// Whole is the answer of a request that ended with res, false if it was not delivered
// whole or is larger than the bound. What of it is worth keeping is the caller's to say.
func (r *Recorder) Whole(res *exchange.Result) (*Answer, bool) {
	if res.Err != nil || r.head == nil || r.over || r.failed {
		return nil, false
	}
	return Of(r.head, r.stream, r.body), true
}

// Of is the answer of which head and body are known. The body becomes the answer's.
func Of(h *exchange.Head, stream bool, body []byte) *Answer {
	a := &Answer{Status: h.Status, Type: h.Type, Stream: stream, Body: body, Policy: h.Grant.Policy, Dropped: h.Dropped}
	if b := h.Grant.Backend; b != nil {
		a.Backend = b.ID
	}
	if len(h.Upstream) > 0 {
		a.Header = make(http.Header, len(h.Upstream))
		wire.AnswerHeader(a.Header, h.Upstream)
		maps.DeleteFunc(a.Header, func(_ string, v []string) bool { return len(v) == 0 })
	}
	if len(a.Header) == 0 {
		a.Header = nil
	}
	return a
}
