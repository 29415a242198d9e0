package wire

import (
	"bytes"
	"math/big"
	"strconv"

	"sluice"
)

// Some providers say what an answer has cost: OpenRouter in dollars, in usage.cost, and
// where the operator's own key for the model's provider was used, what that provider
// charges for it beside.

// reportedCost is what a usage object says that the answer has cost.
type reportedCost struct {
	own, upstream      sluice.Nano
	told, upstreamTold bool
	byKey              bool // is_byok: own is the fee alone
}

// read reads a member of a usage object; false if it says nothing of costs.
func (c *reportedCost) read(l *lexer, key string) bool {
	switch key {
	case "cost":
		c.own, c.told = l.dollars()
	case "is_byok":
		c.byKey = l.ws() == 't'
		l.skip()
	case "cost_details":
		if l.ws() != '{' {
			l.skip()
			return true
		}
		for o := l.object(); l.member(&o); {
			if string(l.key(&o)) == "upstream_inference_cost" {
				c.upstream, c.upstreamTold = l.dollars()
			} else {
				l.skip()
			}
		}
	default:
		return false
	}
	return true
}

// total is all that the answer costs; false if that is not told.
func (c *reportedCost) total() (sluice.Nano, bool) {
	switch {
	case !c.told:
		return 0, false
	case !c.byKey:
		return c.own, true
	}
	return c.own + c.upstream, c.upstreamTold
}

// dollars reads an amount, a number or the text of one, to the nano-dollar; false if it
// is none that an answer can cost.
func (l *lexer) dollars() (sluice.Nano, bool) {
	if c := l.ws(); c == '"' {
		return nanos(l.bytesOf())
	} else if c != '-' && (c < '0' || c > '9') {
		l.skip()
		return 0, false
	}
	at := l.number()
	return nanos(l.b[at.start:at.end])
}

// maxReported is the largest cost of an answer that is believed.
const maxReported = 1_000_000 * sluice.Dollar

// nanos is a decimal number of dollars, which may have an exponent, rounded half to
// even. No float comes near it.
func nanos(text []byte) (sluice.Nano, bool) {
	const most, widest = 64, 40 // bytes, and powers of ten
	if len(text) == 0 || len(text) > most || bytes.IndexByte(text, '/') >= 0 {
		return 0, false
	}
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		if n, err := strconv.Atoi(string(text[i+1:])); err != nil || n < -widest || n > widest {
			return 0, false
		}
	}
	r, ok := new(big.Rat).SetString(string(text))
	if !ok || r.Sign() < 0 {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt64(int64(sluice.Dollar)))
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if half := rest.Lsh(rest, 1).Cmp(r.Denom()); half > 0 || half == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() || sluice.Nano(q.Int64()) > maxReported {
		return 0, false
	}
	return sluice.Nano(q.Int64()), true
}

// Cost is what the provider says that the whole answer has cost; false if it has not.
func (t *Tap) Cost() (sluice.Nano, bool) {
	if !t.final {
		return 0, false
	}
	return t.cost.total()
}
