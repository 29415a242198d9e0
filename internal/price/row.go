// Package price prices holds and usage: a pure function of a versioned row.
package price

import (
	"time"

	"sluice"
)

// Rates are the prices of the token classes of sluice.Usage.
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
	WebSearch sluice.Price      // per million calls
}
