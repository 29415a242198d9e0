package route

import "sluice"

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
	attempt
	held [NumRates]held // of the provider's rates, if counted
}

// attempt is what every attempt has, and what is known of how it goes. Moments are in
// nanoseconds from the place's first.
type attempt struct {
	KV      sluice.Tokens
	Prefill sluice.Tokens // until it is answered
	lane    *lane         // the credential that it uses

	trip    uint32
	probe   bool
	shared  bool // it is the trial of its credential, of all that use it
	own     bool // likewise, here
	slow    bool
	shown   bool // some output was reported
	counted bool // it holds something of the provider's rates
	known   bool // what it took is
	unseen  bool // it never reached the backend

	in, out sluice.Tokens // taken, if known

	at       int64         // of the dispatch
	expected int64         // that the prefill of what was there takes, as configured
	prefill  sluice.Tokens // uncached input
	running  int64         // attempts there right after the dispatch

	// Of what is shown.

	came   int64         // first
	told   int64         // last
	first  sluice.Tokens // output of one choice, as came
	tokens sluice.Tokens // as of told
}

// Key is the credential that the attempt uses.
func (t *Taken) Key() string {
	if t.lane == nil {
		return ""
	}
	return t.lane.key.ID
}

// Spent notes the tokens that the attempt really took, for Give. Without it all that was held
// counts as used.
func (t *Taken) Spent(input, output sluice.Tokens, why sluice.Reason) {
	t.known, t.in, t.out = true, max(0, input), max(0, output)
	t.unseen = why == sluice.UpstreamConnect || why == sluice.UpstreamTLS
}

// spent is what it took of each rate.
func (t *Taken) spent() [NumRates]int64 {
	n := Need{Input: t.in, Output: t.out}
	took := n.amounts()
	if t.unseen {
		took[RateRequests] = 0
	}
	return took
}
