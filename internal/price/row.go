package price

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice"
)

// Free is an explicit price of zero. A zero in Rates is a missing price, which
// inherits.
const Free sluice.Price = -1

// Rates are the prices of the token classes of sluice.Usage, in nano-dollars
// per million tokens. Zero is missing and inherits as the package comment says;
// Free is zero.
type Rates struct {
	Input, CacheRead, CacheWrite, CacheWrite1h, AudioInput sluice.Price
	Output, Reasoning, AudioOutput                         sluice.Price
}

// Tier re-prices a whole request whose total input, cached or not, exceeds
// AboveInput.
type Tier struct {
	AboveInput sluice.Tokens
	Rates      Rates
}

// Row is what one provider asks for one model from one moment on. Rows are
// immutable.
type Row struct {
	Provider  string
	Model     string
	Version   string    // of the price book that it came from, stored with every ledger entry
	From      time.Time // effective from; zero means always
	Rates     Rates
	Tiers     []Tier            // ascending
	Variants  map[string][]Tier // by service tier ("batch", "flex", "priority"); the first has AboveInput 0
	WebSearch sluice.Price      // per million calls; zero and Free cost nothing
	Request   sluice.Price      // per million requests, on top of their tokens; zero and Free cost nothing
	Per       Unit              // what it is billed by beside tokens
	Unit      sluice.Price      // per million of those; zero and Free cost nothing
}

// Validate reports every way in which the row cannot price: no input or output
// price, a negative price other than Free, tiers that do not ascend, a variant
// that does not start at 0.
func (r *Row) Validate() error {
	var errs []error
	if r.Rates.Input == 0 {
		errs = append(errs, errors.New("input price is missing: a free model says so explicitly"))
	}
	if r.Rates.Output == 0 {
		errs = append(errs, errors.New("output price is missing: a free model says so explicitly"))
	}
	if r.WebSearch < Free || r.Request < Free || r.Unit < Free {
		errs = append(errs, errors.New("price per call is negative"))
	}
	if (r.Per == NoUnit) != (r.Unit == 0) {
		errs = append(errs, errors.New("a unit and its price go together"))
	}
	errs = append(errs, r.Rates.validate("rates"))
	errs = append(errs, validateTiers("tiers", r.Tiers, 1)...)
	for _, name := range slices.Sorted(maps.Keys(r.Variants)) {
		tiers := r.Variants[name]
		if len(tiers) == 0 || tiers[0].AboveInput != 0 {
			errs = append(errs, fmt.Errorf("variant %q must start with a tier above 0", name))
			continue
		}
		errs = append(errs, validateTiers("variant "+name, tiers, 0)...)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("price of %s/%s: %w", r.Provider, r.Model, err)
	}
	return nil
}

func validateTiers(what string, tiers []Tier, above sluice.Tokens) []error {
	var errs []error
	for i := range tiers {
		if tiers[i].AboveInput < above {
			errs = append(errs, fmt.Errorf("%s must ascend: tier %d is above %d", what, i, tiers[i].AboveInput))
		}
		above = tiers[i].AboveInput + 1
		errs = append(errs, tiers[i].Rates.validate(what))
	}
	return errs
}

func (r *Rates) validate(what string) error {
	for _, p := range [...]sluice.Price{
		r.Input, r.CacheRead, r.CacheWrite, r.CacheWrite1h, r.AudioInput, r.Output, r.Reasoning, r.AudioOutput,
	} {
		if p < Free {
			return fmt.Errorf("%s have a negative price", what)
		}
	}
	return nil
}

// resolved fills what r leaves out, taking input and output from below.
func (r Rates) resolved(below Rates) Rates {
	r.Input = or(r.Input, below.Input)
	r.Output = or(r.Output, below.Output)
	r.CacheRead = or(r.CacheRead, r.Input)
	r.CacheWrite = or(r.CacheWrite, r.Input)
	r.CacheWrite1h = or(r.CacheWrite1h, r.CacheWrite)
	r.AudioInput = or(r.AudioInput, r.Input)
	r.Reasoning = or(r.Reasoning, r.Output)
	r.AudioOutput = or(r.AudioOutput, r.Output)
	return r
}

func or(p, inherited sluice.Price) sluice.Price {
	if p == 0 {
		return inherited
	}
	return p
}

// RatesFor resolves the rates that a request of that total input is billed at
// in that service tier. No field of the result is missing, if the row is valid;
// free ones are Free.
func (r *Row) RatesFor(serviceTier string, input sluice.Tokens) Rates {
	base := r.Rates
	tiers := r.Tiers
	if v := r.variant(serviceTier); len(v) > 0 {
		base = v[0].Rates.resolved(base)
		tiers = v[1:]
	}
	for i := len(tiers) - 1; i >= 0; i-- {
		if input > tiers[i].AboveInput {
			return tiers[i].Rates.resolved(base)
		}
	}
	return base.resolved(base)
}

// variant finds the tiers of a service tier; nil is the base.
func (r *Row) variant(name string) []Tier {
	if name == "" || len(r.Variants) == 0 {
		return nil
	}
	if v, ok := r.Variants[name]; ok {
		return v
	}
	switch name {
	case "fast":
		return r.Variants["priority"]
	case "priority":
		return r.Variants["fast"]
	}
	return nil
}

// BatchTier is the service tier of what a provider's batch API serves.
const BatchTier = "batch"

// CheaperInBatch reports whether the row has prices for BatchTier, of which none is above
// those of the default tier and one is below.
func (r *Row) CheaperInBatch() bool {
	if len(r.variant(BatchTier)) == 0 {
		return false
	}
	base, batch := r.RatesFor("", 0), r.RatesFor(BatchTier, 0)
	return batch.Input <= base.Input && batch.Output <= base.Output && (batch.Input < base.Input || batch.Output < base.Output)
}
