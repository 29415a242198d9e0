package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"

	"sluice"
)

// Hash is the hash of a secret. It prints as nothing: a store that keeps it
// takes the bytes.
type Hash [sha256.Size]byte

func (h Hash) String() string   { return "***" }
func (h Hash) GoString() string { return "***" }

// MarshalText hides it from encoders: hashes leave by Hex alone.
func (h Hash) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Hex is the hash in lower-case hexadecimal, for a store.
func (h Hash) Hex() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what Hex wrote.
func ParseHash(s string) (h Hash, err error) {
	if len(s) != hex.EncodedLen(len(h)) {
		return h, fmt.Errorf("secret hash has %d digits, it needs %d", len(s), hex.EncodedLen(len(h)))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return h, fmt.Errorf("secret hash: %w", err)
	}
	return h, nil
}

// Hasher hashes secrets: SHA-256, or HMAC-SHA-256 with a pepper that is kept
// outside of the store, so that a stolen store does not even confirm a guess.
// The zero Hasher has no pepper. Hashes made with one Hasher are unknown to
// another.
type Hasher struct {
	peppered     bool
	inner, outer [sha256.BlockSize]byte
}

// NewHasher makes a Hasher; an empty pepper is none.
func NewHasher(pepper sluice.Secret) Hasher {
	if pepper.Empty() {
		return Hasher{}
	}
	key := []byte(pepper.Reveal())
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	h := Hasher{peppered: true}
	copy(h.inner[:], key)
	h.outer = h.inner
	for i := range h.inner {
		h.inner[i] ^= 0x36
		h.outer[i] ^= 0x5c
	}
	return h
}

// Sum hashes a secret. It does not allocate for secrets of up to 64 bytes;
// crypto/hmac would, once per request.
func (h Hasher) Sum(secret string) Hash {
	var buf [2 * sha256.BlockSize]byte
	if !h.peppered {
		return sha256.Sum256(append(buf[:0], secret...))
	}
	inner := sha256.Sum256(append(append(buf[:0], h.inner[:]...), secret...))
	return sha256.Sum256(append(append(buf[:0], h.outer[:]...), inner[:]...))
}

// Format keeps a printed Hasher from showing its pepper.
func (h Hasher) Format(f fmt.State, _ rune) { fmt.Fprint(f, "***") }

// equal compares in constant time and answers 1 or 0, to be combined without a
// branch.
func (h Hash) equal(o Hash) int { return subtle.ConstantTimeCompare(h[:], o[:]) }
