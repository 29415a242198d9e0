package stateful

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/route"
)

// Mark stands for an id of a kind: a hash of both.
type Mark [16]byte

// MarkOf is the mark of something that a backend keeps.
func MarkOf(s route.State) Mark {
	h := sha256.New()
	h.Write([]byte(s.Kind.String()))
	h.Write([]byte{0})
	h.Write([]byte(s.ID))
	return Mark(h.Sum(nil)[:16])
}

// String is the mark in hexadecimal digits.
func (m Mark) String() string { return hex.EncodeToString(m[:]) }

// ParseMark reads what String wrote.
func ParseMark(s string) (m Mark, err error) {
	if n, err := hex.Decode(m[:], []byte(s[:min(len(s), 2*len(m))])); err != nil || n != len(m) || len(s) != 2*len(m) {
		return m, fmt.Errorf("%q is no mark of an id", s)
	}
	return m, nil
}

// Record is that a place keeps something for a tenant.
type Record struct {
	Mark   Mark
	Tenant sluice.TenantID
	Pin    route.Pin
	Model  sluice.ModelID // that was asked for when it was made; empty where that is not known
	Until  time.Time      // when it is forgotten unless it is used
}

// Op is one change of what a store has.
type Op struct {
	Record
	Drop bool // the record is forgotten; else it is there from now on
}

// Store keeps records for other processes and for later ones.
type Store interface {
	// WriteState applies changes in order, all or nothing. A record of a mark and a place
	// that another tenant has, and that is not over at now, changes nothing. Dropping what
	// is not there changes nothing.
	WriteState(ctx context.Context, now time.Time, ops []Op) error
	// ReadState calls f for the records that were written after a position and are not
	// over at now, in the order of their last write, and returns the position of the last
	// write. Position 0 is before all. What is written meanwhile comes in the next reading
	// if not in this one.
	ReadState(ctx context.Context, after int64, now time.Time, f func(Record)) (at int64, err error)
	// ForgetState deletes the records that were over at a time.
	ForgetState(ctx context.Context, over time.Time) error
}
