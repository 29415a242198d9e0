package sluice

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a credential that cannot print itself: every formatting, marshalling and logging path yields "***".
// Only Reveal gives it out.
type Secret struct{ value string }

const redacted = "***"

// NewSecret wraps a credential.
func NewSecret(s string) Secret { return Secret{s} }

// Reveal returns the credential, for the one call that must send or hash it.
func (s Secret) Reveal() string { return s.value }

// Empty reports whether there is no credential.
func (s Secret) Empty() bool { return s.value == "" }

func (s Secret) String() string               { return redacted }
func (s Secret) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, redacted) } // every verb, %d and %x too
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }

// UnmarshalText takes the credential as it is written.
func (s *Secret) UnmarshalText(b []byte) error {
	s.value = string(b)
	return nil
}
