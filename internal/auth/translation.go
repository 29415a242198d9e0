package auth

import "sluice"

// Translation says what becomes of a request whose translation into the dialect of a
// backend cannot carry all of it.
type Translation string

// The modes. Empty is what the record above says, and strict where none says.
const (
	TranslationStrict Translation = "strict" // it is refused, with the field's path
	TranslationWarn   Translation = "warn"   // what is left out is named in sluice-dropped; what changes cost, safety, determinism or structure is still refused
)

// ParseTranslation reads a mode; empty is none.
func ParseTranslation(s string) (Translation, error) {
	switch t := Translation(s); t {
	case "", TranslationStrict, TranslationWarn:
		return t, nil
	}
	return "", sluice.Invalid("translation", "is %q: write strict or warn", s)
}

// warns is the mode in force: the last of the list that says one.
func warns(list ...Translation) bool {
	var in Translation
	for _, t := range list {
		if t != "" {
			in = t
		}
	}
	return in == TranslationWarn
}
