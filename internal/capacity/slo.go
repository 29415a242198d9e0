package capacity

import (
	"time"

	"sluice"
)

// Span is a time in seconds.
type Span struct{ Amount }

// UnmarshalText reads a duration: 50ms, 2s, 3m.
func (s *Span) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil || d < 0 {
		return mistake("write a duration such as 50ms, 2s or 3m", "%q is not a duration", b)
	}
	s.Amount = Ratio(int64(d), nanoseconds)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.Duration().String()), nil }

// Duration is the time, to the nanosecond.
func (s Span) Duration() time.Duration {
	return time.Duration(s.Times(Int(int64(nanoseconds))).Floor())
}

// SLO is what the users of a model are promised. Zero is no promise.
type SLO struct {
	TTFT Span `json:"ttft,omitzero" jsonschema:"until the first token, of nine requests in ten"`
	TPOT Span `json:"tpot,omitzero" jsonschema:"for each further token, on average"`
}

// Latency is what the users of a replica are to expect.
type Latency struct{ TTFT, TPOT Amount } // seconds

// logs are ⌈1000·ln k⌉ for k from 1 to 10.
var logs = [...]int64{0, 694, 1099, 1387, 1610, 1792, 1946, 2080, 2198, 2303}

// latency is what a rate of arrivals leads to on one replica: false where prefill takes
// all of its time. A prompt is prefilled in S = ρ/λ on average, after those before it: in
// a queue of one server that has a mean wait W, a part ρ of all wait, and these as
// exponentially as Kingman's approximation of heavy traffic says (Proc. Cambridge Phil.
// Soc. 57, 1961), so that nine in ten wait at most W/ρ · ln(10ρ). ρ is rounded up to a
// tenth in the logarithm.
func (e engine) latency(d Demand, u Utilisation) (l Latency, ok bool) {
	one := Int(1)
	if u.Prefill.Cmp(one) >= 0 || d.Attempts.Sign() == 0 {
		return l, d.Attempts.Sign() == 0
	}
	x := e.expect(d, u)
	l.TPOT = x.Step
	wait := e.spread(d).Over(Int(2).Times(one.Minus(u.Prefill)))
	if u.Prefill.Sign() > 0 {
		tenths := min(max(u.Prefill.Times(Int(10)).Ceil(), 1), 10)
		wait = wait.Over(u.Prefill).Times(Ratio(logs[tenths-1], 1000))
	}
	l.TTFT = e.busy(d).Over(d.Attempts).Plus(wait).Plus(x.Step)
	return l, true
}

// keeps reports whether a latency is within the promise.
func (s SLO) keeps(l Latency) bool {
	return (s.TTFT.Sign() == 0 || l.TTFT.Cmp(s.TTFT.Amount) <= 0) && (s.TPOT.Sign() == 0 || l.TPOT.Cmp(s.TPOT.Amount) <= 0)
}

// at is a demand scaled to a part of a replica's time, of which it is u as it is.
func (e engine) at(d Demand, u, part Amount) (Demand, Utilisation) {
	one := d.Times(part.Over(u))
	v, _, _ := e.demandOn(one)
	return one, v
}

// bearable is the largest part of its engines' time, in whole thousandths, at which
// the demand is served within the promise, and at most what the headroom leaves. The
// error says what an idle replica does where even that is too slow.
func (r Replica) bearable(d Demand, s SLO, headroom Amount) (Amount, error) {
	most := Int(1).Minus(headroom)
	e := r.engineFor(d)
	u, _, _ := e.demandOn(d)
	if u.Engine.Sign() == 0 || s.TTFT.Sign() == 0 && s.TPOT.Sign() == 0 {
		return most, nil
	}
	fits := func(thousandths int64) bool {
		l, ok := e.latency(e.at(d, u.Engine, Ratio(thousandths, 1000)))
		return ok && s.keeps(l)
	}
	low, high := int64(0), most.Times(Int(1000)).Floor()
	if fits(high) {
		return most, nil
	}
	for low+1 < high { // what fits gets slower with every thousandth
		if mid := (low + high) / 2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	if low == 0 {
		l, _ := e.latency(e.at(d, u.Engine, Ratio(1, 1000)))
		err := sluice.Invalid("slo", "is more than %s can keep: an idle replica takes %s s to the first token and %s s for each further one", r.Name, l.TTFT.Text(3), l.TPOT.Text(4))
		err.Hint = "promise less, or take a profile with more GPUs for a replica"
		return Amount{}, err
	}
	return Ratio(low, 1000), nil
}
