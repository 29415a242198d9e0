package auth

import "sluice"

// ForeignIDs says what becomes of a request that refers to what a provider keeps, by an id
// that no answer through this gateway has given: what was uploaded to the account beside
// it, or is forgotten here.
type ForeignIDs string

// The modes. Empty is what the record above says, and refuse where none says.
const (
	ForeignRefuse ForeignIDs = "refuse" // it is unknown, as another tenant's is
	ForeignAllow  ForeignIDs = "allow"  // the provider decides; another tenant's, as long as it is remembered, stays unknown
)

// ParseForeignIDs reads a mode; empty is none.
func ParseForeignIDs(s string) (ForeignIDs, error) {
	switch f := ForeignIDs(s); f {
	case "", ForeignRefuse, ForeignAllow:
		return f, nil
	}
	return "", sluice.Invalid("foreign_ids", "is %q: write refuse or allow", s)
}

// allowsForeign is the mode in force: the last of the list that says one.
func allowsForeign(list ...ForeignIDs) bool {
	var in ForeignIDs
	for _, f := range list {
		if f != "" {
			in = f
		}
	}
	return in == ForeignAllow
}
