package sluice

// Class is how a request waits. A lower class is a larger value.
type Class uint8

// The classes, highest first.
const (
	Interactive Class = iota
	Standard
	Batch
	NumClasses = iota
)

var classNames = []string{"interactive", "standard", "batch"}

func (c Class) String() string                { return enumText(classNames, c) }
func (c Class) MarshalText() ([]byte, error)  { return []byte(c.String()), nil }
func (c *Class) UnmarshalText(b []byte) error { return enumParse("class", classNames, b, c) }
