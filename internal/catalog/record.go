package catalog

import (
	"fmt"
	"time"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/route"
)

// Record is one line of the catalogue's file: what one provider offers as one
// model. Money is a decimal string in dollars, so that no price passes through
// a float.
type Record struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Name     string `json:"name,omitempty"`

	// Match are the further names of the model. "=x" is x itself, "^x" what
	// starts with x, "$x" what ends with it, "*x" what contains it, "@x" x and a
	// date, "#x" x and then a digit. What contains Except is not meant.
	Match  []string `json:"match,omitempty"`
	Except string   `json:"except,omitempty"`

	Context      int64    `json:"context,omitempty"`    // tokens
	MaxOutput    int64    `json:"max_output,omitempty"` // tokens
	CacheMinimum int64    `json:"cache_min,omitempty"`  // tokens that a prompt needs to be cached
	Reasoning    *bool    `json:"reasoning,omitempty"`
	Attachments  *bool    `json:"attachments,omitempty"`
	Efforts      []string `json:"efforts,omitempty"`
	Lacks        []string `json:"lacks,omitempty"` // what it is known not to do, in the words of route.Needs

	Rates     RecordRates             `json:"rates,omitzero"` // per million tokens
	Tiers     []RecordTier            `json:"tiers,omitempty"`
	Variants  map[string][]RecordTier `json:"variants,omitempty"`
	WebSearch string                  `json:"web_search,omitempty"` // per call
	Request   string                  `json:"request,omitempty"`    // per request
	Unpriced  string                  `json:"unpriced,omitempty"`   // why the row has no price, if it has none

	AsOf string `json:"asof"` // the day on which a source said so
}

// RecordRates are dollars per million tokens. Empty is missing, "0" is free.
type RecordRates struct {
	Input        string `json:"in,omitempty"`
	CacheRead    string `json:"read,omitempty"`
	CacheWrite   string `json:"write,omitempty"`
	CacheWrite1h string `json:"write1h,omitempty"`
	AudioInput   string `json:"audio_in,omitempty"`
	Output       string `json:"out,omitempty"`
	Reasoning    string `json:"reason,omitempty"`
	AudioOutput  string `json:"audio_out,omitempty"`
}

// RecordTier is a context tier; the first of a variant is above 0.
type RecordTier struct {
	Above int64       `json:"above,omitempty"`
	Rates RecordRates `json:"rates"`
}

// Header is the first line of the file.
type Header struct {
	Version string            `json:"version"` // the day of the newest source
	Sources map[string]string `json:"sources"` // and the day of each
}

// needs is what the record says that the model lacks.
func (r *Record) needs() (out route.Needs, err error) {
	for _, name := range r.Lacks {
		n, ok := route.NeedNamed(name)
		if !ok {
			return 0, fmt.Errorf("%s/%s lacks %q, which is no capability", r.Provider, r.Model, name)
		}
		out |= n
	}
	return out, nil
}

// PriceRow is the record's row of a price book; nil if it is unpriced.
func (r *Record) PriceRow(version string) (*price.Row, error) {
	if r.Unpriced != "" {
		return nil, nil
	}
	p := money{}
	row := &price.Row{
		Provider: r.Provider, Model: r.Model, Version: version, From: time.Time{},
		Rates: p.rates(r.Rates), Tiers: p.tiers(r.Tiers), WebSearch: p.perCall(r.WebSearch), Request: p.perCall(r.Request),
	}
	for name, tiers := range r.Variants {
		if row.Variants == nil {
			row.Variants = make(map[string][]price.Tier, len(r.Variants))
		}
		row.Variants[name] = p.tiers(tiers)
	}
	if p.err != nil {
		return nil, fmt.Errorf("%s/%s: %w", r.Provider, r.Model, p.err)
	}
	return row, row.Validate()
}

// money parses prices and remembers the first error.
type money struct{ err error }

func (m *money) price(s string) sluice.Price {
	if s == "" {
		return 0
	}
	n, err := sluice.ParseMoney(s)
	if err != nil && m.err == nil {
		m.err = err
	}
	if n == 0 {
		return price.Free
	}
	return sluice.Price(n)
}

// perCall is dollars per call as a price per million calls.
func (m *money) perCall(s string) sluice.Price {
	if p := m.price(s); p > 0 {
		return p * 1_000_000
	}
	return 0
}

func (m *money) rates(r RecordRates) price.Rates {
	return price.Rates{
		Input: m.price(r.Input), CacheRead: m.price(r.CacheRead), CacheWrite: m.price(r.CacheWrite),
		CacheWrite1h: m.price(r.CacheWrite1h), AudioInput: m.price(r.AudioInput),
		Output: m.price(r.Output), Reasoning: m.price(r.Reasoning), AudioOutput: m.price(r.AudioOutput),
	}
}

func (m *money) tiers(ts []RecordTier) []price.Tier {
	var out []price.Tier
	for _, t := range ts {
		out = append(out, price.Tier{AboveInput: sluice.Tokens(t.Above), Rates: m.rates(t.Rates)})
	}
	return out
}
