package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/internal/price"
)

// With lays an operator's own prices over the catalogue and leaves the receiver
// as it is. A row replaces the price of its provider, under the name that the
// row gives it, and of exactly its model from its From on, from always if that
// is zero; what the catalogue knows otherwise of the model stays. A provider or
// model that the catalogue does not list may have a row too. Rows without a
// version get the given one, which has to tell this list from others, since
// ledger entries record it.
func (c *Catalog) With(version string, rows []price.Row) (*Catalog, error) {
	if len(rows) == 0 {
		return c, nil
	}
	rows = slices.Clone(rows)
	book, err := price.NewBook(version, rows) // checks them and sets their version
	if err != nil {
		return nil, fmt.Errorf("price overrides: %w", err)
	}
	over := &Catalog{version: c.version + "+" + book.Version(), providers: c.providers, own: maps.Clone(c.own)}
	if over.own == nil {
		over.own = map[ownKey]*listing{}
	}
	for i := range rows {
		r := &rows[i]
		k := ownKey{strings.ToLower(r.Provider), strings.ToLower(r.Model)}
		l := over.find(k.provider, k.model)
		if l == nil {
			l = &listing{entry: Entry{Provider: r.Provider, Model: r.Model, Name: r.Model}}
		}
		over.own[k] = l.priced(r)
	}
	return over, nil
}

// priced is the listing with one more price, in place of one that starts at the
// same moment.
func (l *listing) priced(r *price.Row) *listing {
	out := &listing{entry: l.entry, prices: slices.Clone(l.prices)}
	out.entry.Unpriced = ""
	out.prices = slices.DeleteFunc(out.prices, func(p *price.Row) bool { return p.From.Equal(r.From) })
	out.prices = append(out.prices, r)
	slices.SortFunc(out.prices, func(a, b *price.Row) int { return a.From.Compare(b.From) })
	return out
}
