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
}

// Price is Rates, or the word free.
type Price struct {
	Free bool
	Rates
}

func (p *Price) decodeNode(d *decoder, n node, path string) {
	if _, ok := d.asMapping(n); ok {
		d.into(n, &p.Rates, path)
		return
	}
	if text, ok := d.scalar(n, path); ok {
		if text == "free" {
			p.Free = true
			return
		}
		d.report(nodePos(n), path, "write {input: $0.10, output: $0.40}, in dollars per million tokens, or free", "%q is not a price list", text)
	}
}

// MarshalJSON writes what is read.
func (p Price) MarshalJSON() ([]byte, error) {
	if p.Free {
		return []byte(`"free"`), nil
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
	if p.Free {
		r = Rates{}
	}
	return &price.Row{Provider: provider, Model: model, Version: version, WebSearch: given(r.WebSearch), Rates: price.Rates{
		Input: given(&r.Input), Output: given(&r.Output),
		CacheRead: given(r.CacheRead), CacheWrite: given(r.CacheWrite), CacheWrite1h: given(r.CacheWrite1h),
		AudioInput: given(r.AudioInput), Reasoning: given(r.Reasoning), AudioOutput: given(r.AudioOutput),
	}}
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
