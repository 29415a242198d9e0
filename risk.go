package sluice

// Risk is the label of what a request carries: how much harm it would do where it does not belong.
type Risk uint8

// The labels, lowest first. RiskNone is no label, and no bound where a bound is meant.
const (
	RiskNone Risk = iota
	RiskLow
	RiskNormal
	RiskHigh
	NumRisks = iota
)

var riskNames = []string{"none", "low", "normal", "high"}

func (r Risk) String() string                { return enumText(riskNames, r) }
func (r Risk) MarshalText() ([]byte, error)  { return []byte(r.String()), nil }
func (r *Risk) UnmarshalText(b []byte) error { return enumParse("risk label", riskNames, b, r) }

// Within reports whether what carries the label may go where at most that one may.
func (r Risk) Within(most Risk) bool { return most == RiskNone || r <= most }

// Raise is the label of a request: what the caller's policy says, or what was asked for if that is higher.
// Whatever labels a request, its client or what has looked into it, comes through here, so that nothing lowers
// what the policy says. The policy may be nil.
func (p *Policy) Raise(asked Risk) Risk {
	if p == nil {
		return asked
	}
	return max(p.Risk, asked)
}
