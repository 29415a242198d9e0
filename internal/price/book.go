package price

import (
	"fmt"
	"slices"
	"time"
)

// Book is a version of a price list: rows by provider and model, each effective
// from its moment until the next one's. It is immutable.
type Book struct {
	version string
	rows    map[bookKey][]*Row // ascending by From
}

type bookKey struct{ provider, model string }

// NewBook makes a book of rows. Rows without a version get the book's. A row
// that is not valid, and two rows of a model from the same moment, are errors.
// The rows must not be changed afterwards.
func NewBook(version string, rows []Row) (*Book, error) {
	b := &Book{version: version, rows: make(map[bookKey][]*Row, len(rows))}
	for i := range rows {
		r := &rows[i]
		if err := r.Validate(); err != nil {
			return nil, err
		}
		if r.Version == "" {
			r.Version = version
		}
		k := bookKey{r.Provider, r.Model}
		b.rows[k] = append(b.rows[k], r)
	}
	for k, rs := range b.rows {
		slices.SortFunc(rs, func(a, c *Row) int { return a.From.Compare(c.From) })
		for i := 1; i < len(rs); i++ {
			if rs[i].From.Equal(rs[i-1].From) {
				return nil, fmt.Errorf("price of %s/%s: two rows from %s", k.provider, k.model, rs[i].From)
			}
		}
	}
	return b, nil
}

// Version names the book.
func (b *Book) Version() string { return b.version }

// Lookup finds the row of exactly that provider and model that is effective at
// that moment: the last whose From is not after it.
func (b *Book) Lookup(provider, model string, at time.Time) (*Row, bool) {
	rs := b.rows[bookKey{provider, model}]
	for i := len(rs) - 1; i >= 0; i-- {
		if !rs[i].From.After(at) {
			return rs[i], true
		}
	}
	return nil, false
}

// Len is the number of rows.
func (b *Book) Len() int {
	n := 0
	for _, rs := range b.rows {
		n += len(rs)
	}
	return n
}
