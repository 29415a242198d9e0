package config

import (
	"sluice"
	"sluice/internal/price"
)

// Rates is a price list in dollars per million tokens. Cache and audio input
// left out cost what input costs, reasoning and audio output what output costs.
type Rates struct {
	Input        Money  `json:"input" jsonschema:"price of uncached input"`
	Output       Money  `json:"output" jsonschema:"price of output"`
	CacheRead    *Money `json:"cache_read,omitempty" jsonschema:"input served from the provider's prompt cache; as input if left out"`
	CacheWrite   *Money `json:"cache_write,omitempty" jsonschema:"input written to the cache for minutes; as input if left out"`
	CacheWrite1h *Money `json:"cache_write_1h,omitempty" jsonschema:"input written to the cache for an hour; as cache_write if left out"`
	AudioInput   *Money `json:"audio_input,omitempty" jsonschema:"audio input; as input if left out"`
	Reasoning    *Money `json:"reasoning,omitempty" jsonschema:"hidden reasoning; as output if left out"`
	AudioOutput  *Money `json:"audio_output,omitempty" jsonschema:"audio output; as output if left out"`
	WebSearch    *Money `json:"web_search,omitempty" jsonschema:"price of a million calls of the provider's web search; free if left out"`
	// Batch is of the others.
	Batch *Percent `json:"batch,omitempty" jsonschema:"what the provider's own batch API costs, of each of the prices of tokens; unknown if left out, and then nothing is handed over to it"`
}

// UnitPrice is what a model costs that is not billed by tokens: one of them.
type UnitPrice struct {
	Image     *Money `json:"image,omitempty" jsonschema:"price of an image"`
	Second    *Money `json:"second,omitempty" jsonschema:"price of a second of audio that is transcribed or translated"`
	Character *Money `json:"character,omitempty" jsonschema:"price of a character that is spoken"`
	Search    *Money `json:"search,omitempty" jsonschema:"price of a search of a reranker"`
}

// mostEach is the most that one may cost.
const mostEach = Money(1000_000_000_000)

// by is the unit and its price.
func (u *UnitPrice) by() (price.Unit, *Money) {
	for unit, m := range [...]*Money{price.Image: u.Image, price.Second: u.Second, price.Character: u.Character, price.Search: u.Search} {
		if m != nil {
			return price.Unit(unit), m
		}
	}
	return price.NoUnit, nil
}

// Price is Rates, a UnitPrice, or the word free.
type Price struct {
	Free bool
	Rates
	unit *UnitPrice // in the place of Rates
}

func (p *Price) decodeNode(d *decoder, n node, path string) {
	if list, ok := d.asMapping(n); ok {
		unit := ""
		for _, v := range list {
			switch key := v.Key.String(); key {
			case "image", "second", "character", "search":
				unit = key
			}
		}
		if unit == "" {
			d.into(n, &p.Rates, path)
			return
		}
		p.unit = new(UnitPrice)
		d.into(n, p.unit, path)
		by, each := p.unit.by()
		if each != nil && *each > mostEach {
			d.report(nodePos(n), path, "the price is that of one: $0.04", "is more than $1000 for one")
		}
		if by == price.NoUnit || len(list) > 1 {
			d.report(nodePos(n), path, "write {"+unit+": $0.04} alone; a model that is billed by tokens has {input: $5, output: $40}", "is no price by the %s alone", unit)
		}
		return
	}
	if text, ok := d.scalar(n, path); ok {
		if text == "free" {
			p.Free = true
			return
		}
		d.report(nodePos(n), path, "write {input: $0.10, output: $0.40}, in dollars per million tokens, {image: $0.04} or the like, or free", "%q is not a price list", text)
	}
}

// MarshalJSON writes what is read.
func (p Price) MarshalJSON() ([]byte, error) {
	if p.Free {
		return []byte(`"free"`), nil
	}
	if p.unit != nil {
		return marshal(p.unit)
	}
	return marshal(p.Rates)
}

// row makes the price row. An explicit price of $0 is free.
func (p *Price) row(provider, model, version string) *price.Row {
	if p == nil {
		return nil
	}
	given := func(m *Money) sluice.Price {
		switch {
		case m == nil:
			return 0
		case *m == 0:
			return price.Free
		}
		return sluice.Price(*m)
	}
	r := p.Rates
	if p.Free || p.unit != nil {
		r = Rates{}
	}
	out := &price.Row{Provider: provider, Model: model, Version: version, WebSearch: given(r.WebSearch), Rates: price.Rates{
		Input: given(&r.Input), Output: given(&r.Output),
		CacheRead: given(r.CacheRead), CacheWrite: given(r.CacheWrite), CacheWrite1h: given(r.CacheWrite1h),
		AudioInput: given(r.AudioInput), Reasoning: given(r.Reasoning), AudioOutput: given(r.AudioOutput),
	}}
	if r.Batch != nil {
		out.Variants = map[string][]price.Tier{price.BatchTier: {{Rates: part(out.Rates, *r.Batch)}}}
	}
	if p.unit != nil {
		var each *Money
		if out.Per, each = p.unit.by(); each == nil {
			return nil // reported
		}
		if out.Unit = given(each); out.Unit > 0 {
			out.Unit *= 1_000_000
		}
	}
	return out
}

// part is a share of prices: what is free, and what is left out, stays so. Nothing of them is
// free.
func part(r price.Rates, share Percent) price.Rates {
	for _, p := range [...]*sluice.Price{&r.Input, &r.CacheRead, &r.CacheWrite, &r.CacheWrite1h, &r.AudioInput, &r.Output, &r.Reasoning, &r.AudioOutput} {
		if *p > 0 {
			if *p = (*p*sluice.Price(share) + 50) / 100; *p == 0 {
				*p = price.Free
			}
		}
	}
	return r
}

// UnknownPrice says what happens to a request whose backend has no price: the
// word refuse, or {ceiling: RATES} to charge those. It is never free.
type UnknownPrice struct {
	Ceiling *Rates // nil refuses
}

func (u *UnknownPrice) decodeNode(d *decoder, n node, path string) {
	const fix = "write refuse, or {ceiling: {input: $15, output: $75}}"
	if _, ok := d.asMapping(n); ok {
		var m struct {
			Ceiling *Rates `json:"ceiling"`
		}
		d.into(n, &m, path)
		if m.Ceiling == nil {
			return // reported as missing
		}
		at := join(path, "ceiling")
		if m.Ceiling.Input == 0 || m.Ceiling.Output == 0 {
			d.report(d.posOf(at), at, fix, "a ceiling needs an input and an output price above $0: what is unknown is never free")
		}
		u.Ceiling = m.Ceiling
		return
	}
	if text, ok := d.scalar(n, path); ok && text != "refuse" {
		d.report(nodePos(n), path, fix, "%q is not a policy for unknown prices", text)
	}
}

// MarshalJSON writes what is read.
func (u UnknownPrice) MarshalJSON() ([]byte, error) {
	if u.Ceiling == nil {
		return []byte(`"refuse"`), nil
	}
	return marshal(map[string]*Rates{"ceiling": u.Ceiling})
}
