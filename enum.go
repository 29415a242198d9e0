package sluice

import "fmt"

// enumText finds v's word, for the String and MarshalText methods of the enums.
func enumText[E ~uint8](names []string, v E) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown(%d)", v)
}

// enumParse finds the value of a word.
func enumParse[E ~uint8](what string, names []string, text []byte, v *E) error {
	for i, n := range names {
		if n == string(text) {
			*v = E(i)
			return nil
		}
	}
	return fmt.Errorf("unknown %s %q: use one of %q", what, text, names)
}
