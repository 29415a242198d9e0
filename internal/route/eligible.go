package route

import (
	"math"

	"sluice"
)

// Left is why a backend was left out of a choice; empty for the one chosen. The
// words are shown by `sluice explain`.
type Left string

// Why a backend was left out.
const (
	Chosen        Left = ""
	LeftDialect   Left = "dialect"      // it speaks another than the client
	LeftDrained   Left = "drained"      // weight 0
	LeftContext   Left = "context"      // the input is longer than its context or its KV memory
	LeftUnpriced  Left = "unpriced"     // neither price nor ceiling
	LeftTried     Left = "tried"        // an attempt of this request failed there
	LeftUnhealthy Left = "unhealthy"    // cooling down, paused, or being probed
	LeftKept      Left = "kept"         // what becomes free there is kept for a larger request
	LeftFull      Left = "full"         // no slot, KV memory or prefill for it now
	LeftPaced     Left = "rate_paced"   // the provider's rates are used up for now
	LeftDearer    Left = "dearer"       // it became dearer than what the request holds
	LeftRetries   Left = "retry_budget" // it has had as many retries as it may
	LeftOther     Left = "other"        // it could have served; another was chosen
)

// Ask is what a request asks of a backend.
type Ask struct {
	Dialect string
	Work    sluice.Work
	Free    bool // nothing is billed
}

// LongestInput is the largest input that the backend takes: that of its context and
// its KV memory.
func (b *Backend) LongestInput() sluice.Tokens {
	n := sluice.Tokens(math.MaxInt64)
	for _, bound := range [...]sluice.Tokens{b.Context, b.Capacity.KVTokens} {
		if bound > 0 {
			n = min(n, bound)
		}
	}
	return n
}

// Eligible tells why a backend may not serve a request at all, Chosen if it may.
func Eligible(b *Backend, a *Ask) Left {
	switch {
	case b.Dialect != a.Dialect:
		return LeftDialect
	case b.Weight <= 0:
		return LeftDrained
	case a.Work.Input > b.LongestInput():
		return LeftContext
	case !a.Free && b.Row() == nil:
		return LeftUnpriced
	}
	return Chosen
}
