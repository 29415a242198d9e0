package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/route"
)

// embedded is the catalogue that the program ships with.
//
//go:embed catalog.jsonl
var embedded []byte

// Entry is what is known of one model at one provider.
type Entry struct {
	Provider string // the catalogue's name of the provider
	Model    string // the catalogue's name of the model
	Name     string // for people

	// Price is the row effective at the moment asked for; nil where no source
	// has a price that can be trusted. Unpriced says why.
	Price    *price.Row
	Unpriced string

	Context      sluice.Tokens // context length; 0 is unknown
	MaxOutput    sluice.Tokens // largest output; 0 is unknown
	CacheMinimum sluice.Tokens // shortest prompt that is cached; 0 is unknown
	Reasoning    Support
	Attachments  Support     // images or files in the input
	Lacks        route.Needs // what a source says that it cannot do; the rest it can, or nobody says
	Efforts      []string    // the reasoning efforts it takes; nil is unknown
	AsOf         string      // the day on which a source said so
}

// Support is whether a model can do something, which may be unknown.
type Support uint8

// The answers.
const (
	Unknown Support = iota
	No
	Yes
)

func support(b *bool) Support {
	switch {
	case b == nil:
		return Unknown
	case *b:
		return Yes
	}
	return No
}

// Catalog is the entries of one version. It is immutable and safe for
// concurrent use.
type Catalog struct {
	version   string
	providers map[string]*shelf
	own       map[ownKey]*listing // the operator's, over the catalogue's
}

// ownKey is in lower case.
type ownKey struct{ provider, model string }

// listing is an entry with its prices of all times, the latest last.
type listing struct {
	entry  Entry // its Price is not set
	prices []*price.Row
}

// Load reads the catalogue that the program ships with.
func Load() (*Catalog, error) { return Parse(embedded) }

// Parse reads a catalogue's file: a Header, then a Record per line. Every line
// has to be valid.
func Parse(file []byte) (*Catalog, error) {
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	var h Header
	if err := dec.Decode(&h); err != nil {
		return nil, fmt.Errorf("read catalogue header: %w", err)
	}
	if h.Version == "" {
		return nil, fmt.Errorf("read catalogue header: no version")
	}
	c := &Catalog{version: "catalog-" + h.Version, providers: map[string]*shelf{}}
	for line := 2; dec.More(); line++ {
		var r Record
		if err := dec.Decode(&r); err != nil {
			return nil, fmt.Errorf("read catalogue line %d: %w", line, err)
		}
		if err := c.add(&r); err != nil {
			return nil, fmt.Errorf("read catalogue line %d: %w", line, err)
		}
	}
	return c, nil
}

func (c *Catalog) add(r *Record) error {
	row, err := r.PriceRow(c.version)
	if err != nil {
		return err
	}
	lacks, err := r.needs()
	if err != nil {
		return err
	}
	l := &listing{entry: Entry{
		Provider: r.Provider, Model: r.Model, Name: r.Name, Unpriced: r.Unpriced,
		Context: sluice.Tokens(r.Context), MaxOutput: sluice.Tokens(r.MaxOutput), CacheMinimum: sluice.Tokens(r.CacheMinimum),
		Reasoning: support(r.Reasoning), Attachments: support(r.Attachments), Lacks: lacks, Efforts: r.Efforts, AsOf: r.AsOf,
	}}
	if l.entry.Name == "" {
		l.entry.Name = r.Model
	}
	if row != nil {
		l.prices = []*price.Row{row}
	}
	s := c.providers[r.Provider]
	if s == nil {
		s = newShelf()
		c.providers[r.Provider] = s
	}
	return s.add(l, r)
}

// Version names the catalogue and what has been laid over it. Its prices carry
// it in their rows.
func (c *Catalog) Version() string { return c.version }

// Len is the number of entries that the catalogue's file has.
func (c *Catalog) Len() int {
	n := 0
	for _, s := range c.providers {
		n += len(s.exact)
	}
	return n
}

// Lookup finds a model at a provider as of a moment. The package comment says
// how names match.
func (c *Catalog) Lookup(provider, model string, at time.Time) (Entry, bool) {
	l := c.find(strings.ToLower(provider), strings.ToLower(model))
	return l.at(at), l != nil
}

// find takes names in lower case.
func (c *Catalog) find(provider, model string) *listing {
	if l := c.own[ownKey{provider, model}]; l != nil {
		return l
	}
	if s := c.shelf(provider); s != nil {
		return s.find(model)
	}
	return c.anywhere(model)
}

// at is the entry with the price of that moment.
func (l *listing) at(t time.Time) Entry {
	if l == nil {
		return Entry{}
	}
	e := l.entry
	for i := len(l.prices) - 1; i >= 0; i-- {
		if !l.prices[i].From.After(t) {
			e.Price = l.prices[i]
			break
		}
	}
	if e.Price == nil && e.Unpriced == "" {
		e.Unpriced = "no price is effective yet"
	}
	return e
}
