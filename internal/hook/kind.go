package hook

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a sort of secret or identifier that the built-in redaction finds.
type Kind uint8

// The kinds. Where two match at one place the earlier wins.
const (
	PrivateKey Kind = iota // a PEM block
	JWT
	Secret // an API key or token of a well-known shape
	Email
	IBAN // with its checksum
	Card // a payment card's number, with its checksum
	SSN  // of the United States
	Phone
	IP
	NumKinds = iota
)

var kindNames = [NumKinds]string{"private_key", "jwt", "secret", "email", "iban", "card", "ssn", "phone", "ip"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// KindNames are the words of all kinds, in order.
func KindNames() []string { return slices.Clone(kindNames[:]) }

// label is what stands in the place of a match. It needs no escape in JSON, at
// whatever depth of quoting.
func (k Kind) label() string { return "[redacted:" + k.String() + "]" }

// Kinds is a set of kinds.
type Kinds uint16

// AllKinds is every kind.
const AllKinds Kinds = 1<<NumKinds - 1

// Has reports whether k is in the set.
func (s Kinds) Has(k Kind) bool { return s&(1<<k) != 0 }

// ParseKinds reads the words of kinds; "all" is every kind.
func ParseKinds(words []string) (out Kinds, err error) {
	for _, w := range words {
		i := slices.Index(kindNames[:], w)
		switch {
		case w == "all":
			out = AllKinds
		case i < 0:
			return 0, fmt.Errorf("unknown kind %q: use all, or some of %s", w, strings.Join(kindNames[:], ", "))
		default:
			out |= 1 << i
		}
	}
	return out, nil
}

// Counts is how many matches of each kind there were.
type Counts [NumKinds]int64

func (c *Counts) sum() (n int64) {
	for _, v := range c {
		n += v
	}
	return n
}

func (c *Counts) add(o *Counts) {
	for i, v := range o {
		c[i] += v
	}
}
