package demand

import "time"

// Dimension is what can be scarce of a pool.
type Dimension uint8

// The dimensions.
const (
	Slots Dimension = iota
	KVTokens
	Prefill
	Decode
	Engine // prefill and decode together
	RequestsPerMinute
	InputPerMinute
	OutputPerMinute
	TokensPerMinute

	NumDimensions = 9
)

var dimensionWords = [NumDimensions]string{
	"slots", "kv_tokens", "prefill", "decode", "engine",
	"requests_per_minute", "input_tokens_per_minute", "output_tokens_per_minute", "tokens_per_minute",
}

// String is the word of metrics and of the API.
func (d Dimension) String() string { return dimensionWords[d] }

// Supply is what backends hold, or do. Zero is not known.
type Supply struct {
	Slots     int64 // attempts at a time
	KV        int64 // tokens
	Prefill   int64 // input tokens per second
	Decode    int64 // output tokens per second
	PerMinute [4]int64

	// Found says that Slots is found from answers, and may grow.
	Found bool
}

// Share is what one of n equal backends has of the supply.
func (s *Supply) Share(n int64) {
	n = max(n, 1)
	s.Slots, s.KV, s.Prefill, s.Decode = s.Slots/n, s.KV/n, s.Prefill/n, s.Decode/n
	for i := range s.PerMinute {
		s.PerMinute[i] /= n
	}
}

// Use is what is held of it now.
type Use struct{ Slots, KV int64 }

// Ratios is what is asked for ÷ what there is, in millionths; -1 where that is not
// known.
type Ratios [NumDimensions]int64

// Of is the ratios of rates to a supply, of which so much is in use and is held for a
// mean time, 0 if that is not known.
func Of(r Rates, held time.Duration, u Use, s *Supply) (out Ratios) {
	for d := range out {
		out[d] = -1
	}
	const one = int64(1_000_000)
	level := func(d Dimension, rate, used, most int64) {
		if most > 0 {
			little := mulDiv(rate, int64(held), int64(time.Second)) // millionths of what would be held
			out[d] = max(little, mulDiv(used, one, 1)) / most
		}
	}
	level(Slots, r[Requests], u.Slots, s.Slots)
	level(KVTokens, r[KV], u.KV, s.KV)
	if s.Prefill > 0 {
		out[Prefill] = r[Uncached] / s.Prefill
	}
	if s.Decode > 0 {
		out[Decode] = r[Output] / s.Decode
	}
	if s.Prefill > 0 && s.Decode > 0 {
		out[Engine] = saturating(out[Prefill], out[Decode])
	}
	for i, rate := range [...]int64{r[Requests], r[Input], r[Output], saturating(r[Input], r[Output])} {
		if most := s.PerMinute[i]; most > 0 {
			out[RequestsPerMinute+Dimension(i)] = mulDiv(rate, 60, most)
		}
	}
	return out
}

// Most is the largest ratio, the first of equals; false if none is known.
func (r *Ratios) Most() (d Dimension, ratio int64, ok bool) {
	ratio = -1
	for i, n := range r {
		if n > ratio {
			d, ratio = Dimension(i), n
		}
	}
	return d, ratio, ratio >= 0
}
