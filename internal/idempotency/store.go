package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"

	"sluice"
)

// Mark is what a key is known by: a hash of tenant, operation and key.
type Mark [sha256.Size]byte

func (m Mark) String() string { return hex.EncodeToString(m[:]) }

// ParseMark reads what String wrote.
func ParseMark(s string) (m Mark, err error) { return parse[Mark](s) }

// Print is what a body is known by.
type Print [sha256.Size]byte

func (p Print) String() string { return hex.EncodeToString(p[:]) }

// ParsePrint reads what String wrote.
func ParsePrint(s string) (Print, error) { return parse[Print](s) }

func parse[H ~[sha256.Size]byte](s string) (h H, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%q is no hash", s)
	}
	copy(h[:], b)
	return h, nil
}

// MarkOf is the mark of a key. No two are alike.
func MarkOf(t sluice.TenantID, operation, key string) Mark {
	return Mark(hashOf(string(t), operation, key).Sum(nil))
}

// PrintOf is the print of what its parts say.
func PrintOf(parts ...string) Print { return Print(hashOf(parts...).Sum(nil)) }

// hashOf hashes texts, each behind its length.
func hashOf(parts ...string) hash.Hash {
	h := sha256.New()
	for _, s := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		_, _ = h.Write(n[:])
		_, _ = io.WriteString(h, s)
	}
	return h
}

// Claim asks for a key.
type Claim struct {
	Mark    Mark
	Tenant  sluice.TenantID
	Print   Print
	Request sluice.RequestID // who asks; the claim is known by it
	Now     time.Time
	Until   time.Time // of the lease
}

// Found is what there is of a key that cannot be claimed.
type Found struct {
	Print   Print
	Request sluice.RequestID // that has it, or had
	Begun   time.Time
	Until   time.Time // of the lease, or for which the answer is kept
	Answer  []byte    // nil while the request runs
}

// Held is a claim that was given.
type Held struct {
	Mark    Mark
	Request sluice.RequestID
}

// Kept is an answer to be kept.
type Kept struct {
	Held
	Answer []byte
	Until  time.Time
}

// Bounds are how much is kept.
type Bounds struct{ PerTenant, Total int64 } // bytes, Overhead included

// Overhead is what an answer counts beside its bytes.
const Overhead = 512

// Store keeps claims and answers. It is shared by replicas, and each method is one
// transaction.
type Store interface {
	// ClaimKey gives a key to a request, unless another has it at c.Now or its answer is
	// kept: then found says what there is.
	ClaimKey(ctx context.Context, c Claim) (found *Found, err error)
	// FindKey is what there is of a key at a time, nil if it is free.
	FindKey(ctx context.Context, m Mark, now time.Time) (*Found, error)
	// RenewKeys gives claims until a time, as far as they are still held.
	RenewKeys(ctx context.Context, held []Held, until time.Time) error
	// KeepAnswer ends a claim with its answer; ok is false if the claim is not held any more.
	KeepAnswer(ctx context.Context, k Kept) (ok bool, err error)
	// FreeKey ends a claim without one.
	FreeKey(ctx context.Context, h Held) error
	// SweepKeys drops what is over at a time, and the oldest answers of what is beyond
	// bounds, and says what each tenant has then, in bytes.
	SweepKeys(ctx context.Context, now time.Time, b Bounds) (map[sluice.TenantID]int64, error)
}
