package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"sluice/internal/catalog"
)

// prices is a set of prices by name, with what else stands between them.
type prices struct {
	byName map[string]json.Number
	Above  int64
	Tiers  []prices
}

// UnmarshalJSON tells prices from the threshold and the nested tiers.
func (p *prices) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	p.byName = map[string]json.Number{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var err error
		switch name {
		case "above_input_tokens":
			err = json.Unmarshal(raw[name], &p.Above)
		case "tiers":
			err = json.Unmarshal(raw[name], &p.Tiers)
		default:
			var n json.Number
			err = json.Unmarshal([]byte(strings.Trim(string(raw[name]), `"`)), &n)
			p.byName[name] = n
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// unpriced says why a row's prices cannot be trusted, empty if they can.
func unpriced(m *model) string {
	in, out := amount(m.Prices["input"]), amount(m.Prices["output"])
	_, hasOutput := m.Prices["output"]
	switch {
	case in.Sign() == 0 && !strings.HasSuffix(m.ID, ":free"):
		return "an input price of zero that nothing says is meant"
	case !hasOutput && !embeds(m.ID):
		return "no output price"
	case amount(m.Prices["cache_read"]).Cmp(in) > 0:
		return "reading the cache is dearer than not reading it"
	case amount(m.Prices["input_image"]).Cmp(in) > 0, amount(m.Prices["output_image"]).Cmp(out) > 0:
		return "image tokens have prices of their own"
	case speaks(m.ID) && amount(m.Prices["input_audio"]).Sign() == 0:
		return "audio tokens have prices of their own, which are not listed"
	}
	return ""
}

// embeds reports an embedding model, or one so old that it produced none but
// scores: the source has no output price because there is no output.
func embeds(id string) bool { return strings.Contains(id, "embed") }

// speaks reports a model for audio: text prices say nothing about most of what
// it bills.
func speaks(id string) bool {
	for _, w := range []string{"audio", "-tts", "realtime"} {
		if strings.Contains(id, w) {
			return true
		}
	}
	return false
}

// rates converts one set of prices. Cache prices that cannot be are left out,
// and inherit.
func rates(p map[string]json.Number) (catalog.RecordRates, error) {
	var r catalog.RecordRates
	in := amount(p["input"])
	for _, name := range slices.Sorted(maps.Keys(p)) {
		v := amount(p[name])
		s, err := decimal(v)
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		switch name {
		case "input":
			r.Input = s
		case "output":
			r.Output = s
		case "cache_read":
			if in.Sign() == 0 || new(big.Rat).Add(v, v).Cmp(in) <= 0 {
				r.CacheRead = s
			}
		case "cache_write":
			if v.Cmp(in) >= 0 {
				r.CacheWrite = s
			}
		case "cache_write_1h":
			if v.Cmp(in) >= 0 {
				r.CacheWrite1h = s
			}
		case "reasoning":
			r.Reasoning = s
		case "input_audio":
			r.AudioInput = s
		case "output_audio":
			r.AudioOutput = s
		case "cache_read_audio", "input_image", "output_image":
		default:
			return r, fmt.Errorf("unknown price %q", name)
		}
	}
	return r, nil
}

func addTier(tiers *[]catalog.RecordTier, p prices) error {
	r, err := rates(p.byName)
	if err != nil {
		return err
	}
	above := p.Above
	if above%1000 == 999 { // "272k" told as the last token below it
		above++
	}
	*tiers = append(*tiers, catalog.RecordTier{Above: above, Rates: r})
	return nil
}

// longWrites fills in the price of an hour's cache where a source that knows
// five minutes' (1.25 of input) does not list it: 2 of input.
func longWrites(r *catalog.Record) {
	if !strings.Contains(r.Model, "claude") {
		return
	}
	fill := func(x *catalog.RecordRates) {
		in := amount(json.Number(x.Input))
		if x.CacheWrite != "" && x.CacheWrite1h == "" && amount(json.Number(x.CacheWrite)).Cmp(new(big.Rat).Mul(in, big.NewRat(5, 4))) == 0 {
			x.CacheWrite1h, _ = decimal(new(big.Rat).Add(in, in))
		}
	}
	fill(&r.Rates)
	for i := range r.Tiers {
		fill(&r.Tiers[i].Rates)
	}
	for _, tiers := range r.Variants {
		for i := range tiers {
			fill(&tiers[i].Rates)
		}
	}
}

func amount(n json.Number) *big.Rat {
	if v, ok := new(big.Rat).SetString(n.String()); ok {
		return v
	}
	return new(big.Rat)
}

// decimal writes a price exactly; one that is no whole number of nano-dollars
// is an error.
func decimal(v *big.Rat) (string, error) {
	s := v.FloatString(9)
	if back, _ := new(big.Rat).SetString(s); back.Cmp(v) != 0 {
		return "", fmt.Errorf("%s is no whole number of nano-dollars", v.RatString())
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), "."), nil
}
