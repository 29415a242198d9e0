package route

import (
	"time"

	"sluice"
)

// Need is what one attempt asks of a backend.
type Need struct {
	KV      sluice.Tokens
	Prefill sluice.Tokens // until the first token
	Input   sluice.Tokens // of the provider's rates
	Output  sluice.Tokens
	Only    string // the credential that it must go with; empty is any
}

// NeedOf is the need of a request of which so much input is cached, and so much output
// held.
func NeedOf(input, cached, output sluice.Tokens) Need {
	return Need{KV: input + output, Prefill: max(0, input-cached), Input: input, Output: output}
}

// within clamps a need to a backend's memory and prefill: what is larger runs alone.
func (n *Need) within(kv, prefill sluice.Tokens) {
	if kv > 0 {
		n.KV = min(n.KV, kv)
	}
	if prefill > 0 {
		n.Prefill = min(n.Prefill, prefill)
	}
}

// amounts is what a need takes of each rate.
func (n *Need) amounts() [NumRates]int64 {
	return [NumRates]int64{RateRequests: 1, RateInput: int64(n.Input), RateOutput: int64(n.Output), RateTokens: int64(n.Input + n.Output)}
}

// Taken is what one attempt has of a backend, and how it goes.
type Taken struct {
	Need
	held  [NumRates]held
	spent [NumRates]int64
	known bool

	lane  *lane // the credential that it uses
	trial struct{ shared, own bool }
	trip  uint32
	probe bool

	begun attempt
}

// Key is the credential that the attempt uses.
func (t *Taken) Key() string {
	if t.lane == nil {
		return ""
	}
	return t.lane.key.ID
}

// attempt is what is known of how an attempt goes.
type attempt struct {
	at, told time.Time     // of the dispatch, and of the last Progressed
	prefill  sluice.Tokens // uncached input
	running  int64         // attempts there right after the dispatch
	expected int64         // nanoseconds that the prefill of what was there takes, as configured
	tokens   sluice.Tokens // so far, of one choice
	first    sluice.Tokens // of these, those of the first report
	came     time.Time     // of that report
	slow     bool
}

// Spent notes what the attempt really took, for Give. Without it all that was held
// counts as used.
func (t *Taken) Spent(u sluice.Usage, why sluice.Reason) {
	in, out := int64(max(0, u.InputTotal())), int64(max(0, u.OutputTotal()))
	t.known, t.spent = true, [NumRates]int64{RateRequests: 1, RateInput: in, RateOutput: out, RateTokens: in + out}
	if why == sluice.UpstreamConnect || why == sluice.UpstreamTLS { // it never saw the request
		t.spent[RateRequests] = 0
	}
}
