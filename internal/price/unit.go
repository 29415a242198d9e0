package price

import "fmt"

// Unit is what an operation is billed by in the place of tokens.
type Unit uint8

// The units. Most operations are billed by tokens alone.
const (
	NoUnit    Unit = iota
	Image          // an image that is made
	Second         // a second of audio that is heard
	Character      // a character that is spoken
	Search         // a search of a reranker
	NumUnits  = iota
)

var unitNames = [NumUnits]string{"none", "image", "second", "character", "search"}

// String is the unit's word in the configuration and in explain.
func (u Unit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return fmt.Sprintf("unknown(%d)", u)
}

// Billing is how an operation may be billed: by a unit, or by tokens where its answers
// tell them. The zero Billing is by tokens alone.
type Billing struct {
	Unit   Unit
	Tokens bool // answers tell tokens, of models that are billed by them
}

// Prices reports whether the row has a price for what is billed so: one by a unit
// prices nothing else.
func (r *Row) Prices(b Billing) bool {
	if r.Per != NoUnit {
		return r.Per == b.Unit
	}
	return b.Unit == NoUnit || b.Tokens
}
