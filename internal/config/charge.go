package config

// Charge is what a whole answer is charged.
type Charge string

// The charges.
const (
	ChargePrices   Charge = "prices"
	ChargeReported Charge = "reported"
)

func (Charge) words() []string { return []string{string(ChargePrices), string(ChargeReported)} }

// charge refuses to charge what providers of other dialects never report.
func (v *validator) charge(path string, p *Provider) {
	if p.Charge == ChargeReported && p.Dialect != "openai" {
		v.fail(join(path, "charge"), "remove it", "only providers of the openai dialect, such as OpenRouter, report what an answer costs")
	}
}
