package jobs

import (
	"net/http"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/wire"
)

// Told is what is told of an answer beside its body, as who asks at once has it in
// headers. Rates, which are of a moment, are not among it.
type Told struct {
	Backend sluice.BackendID `json:"backend,omitempty"`  // that answered; empty if none did
	Policy  string           `json:"policy,omitempty"`   // version of the routing table
	Queued  int64            `json:"queue_ms,omitempty"` // milliseconds that it waited for its places
	Dropped string           `json:"dropped,omitempty"`  // what of the request was changed, or had no effect
	Cache   string           `json:"cache,omitempty"`    // what the output cache had to do with it
	Tier    int              `json:"tier,omitempty"`     // of the pool's ladder; 0 is the ground
	Reason  string           `json:"reason,omitempty"`   // of a refusal, and of an answer that the ladder took something from
	// Header is what else its client would have had: the provider's own, and of a refusal
	// whether to send it again. It is kept of an Async alone.
	Header http.Header `json:"header,omitempty"`
}

// toldOf is what is told of an answer with a head. Its header is copied.
func toldOf(k Kind, h *exchange.Head) (t Told) {
	t = Told{Policy: h.Grant.Policy, Queued: h.Queued.Milliseconds(), Dropped: h.Dropped, Cache: h.Cache, Tier: int(h.Tier)}
	if b := h.Grant.Backend; b != nil {
		t.Backend = b.ID
	}
	if h.Lesser {
		t.Reason = sluice.Degraded.String()
	}
	if k == Async && len(h.Upstream) > 0 {
		own := make(http.Header)
		wire.AnswerHeader(own, h.Upstream)
		t.keep(own)
	}
	return t
}

// keep keeps headers, unless they are more than are kept with a job.
func (t *Told) keep(h http.Header) {
	if sizeOf(h) <= maxHeaderBytes && len(h) > 0 {
		t.Header = h.Clone()
	}
}

// sizeOf is the bytes of names and values.
func sizeOf(h http.Header) (n int) {
	for name, values := range h {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// refusedBy adds what is told of a refusal: the head of the attempt that it came of, where
// there was one.
func (t *Told) refusedBy(k Kind, e *sluice.Error, res *exchange.Result, header http.Header) {
	if res.Head != nil {
		*t = toldOf(k, res.Head)
	} else {
		t.Tier = int(res.Final.Tier)
	}
	if e.Reason != sluice.ReasonNone {
		t.Reason = e.Reason.String()
	}
	if v := header["X-Should-Retry"]; k == Async && v != nil {
		if t.Header == nil {
			t.Header = make(http.Header)
		}
		t.Header["X-Should-Retry"] = v
	}
}
