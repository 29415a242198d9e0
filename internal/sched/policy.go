package sched

import (
	"math"
	"time"

	"sluice"
)

// The dimensions in which a pool is scarce.
const (
	Slots   = iota // attempts at a time
	KV             // tokens of key-value memory, input and held output
	Prefill        // tokens of uncached input that have not been answered
	dimensions
)

// Amounts is one figure for each dimension.
type Amounts [dimensions]int64

// unbounded is more than anything takes.
const unbounded = math.MaxInt64

// Policy says how a queue shares what its pool has. The zero value of a class
// takes [DefaultClasses].
type Policy struct {
	Classes   [sluice.NumClasses]Class
	Contracts []Contract

	// FIFO serves in order of arrival alone and shares nothing out: what the
	// tabletop and the tests hold the fair queue against.
	FIFO bool
}

// Class is one class's part of a pool, in thousandths.
type Class struct {
	// Share is its part of the service, by work, while others want the rest. What
	// it does not use is lent. At least minShare counts, so that nothing starves.
	Share int64
	// Ceiling is the most of the pool that it may occupy; 0 is all.
	Ceiling int64
	// Headroom is the part of the pool that no other class may occupy, however
	// little this one uses.
	Headroom int64
}

// DefaultClasses is what a pool has that says nothing.
func DefaultClasses() [sluice.NumClasses]Class {
	return [sluice.NumClasses]Class{
		sluice.Interactive: {Share: 600, Headroom: 100},
		sluice.Standard:    {Share: 300},
		sluice.Batch:       {Share: 100},
	}
}

const (
	whole    = 1000 // thousandths
	minShare = 10   // 1 %: what a class ages by that has no share
)

// Lend is to whom a contract's idle reserve is lent.
type Lend uint8

// The kinds of lending.
const (
	LendShort Lend = iota // to requests that are predicted to end within Reclaim
	LendNone
	LendAll
)

// Contract is capacity of the pool that is reserved for a tenant. A zero amount
// reserves nothing in that dimension and bounds nothing.
type Contract struct {
	Tenant        sluice.TenantID
	Slots         int64
	KV            sluice.Tokens
	WorkPerSecond int64 // work above it is overflow, whatever the other two say
	Lend          Lend
	Reclaim       time.Duration // within this a lent reserve is back; 0 is DefaultReclaim
}

// DefaultReclaim is within what time a lent reserve is back.
const DefaultReclaim = 2 * time.Second

// part is thousandths of an amount, rounded down, at least one of it if both are
// positive and least is set.
func part(amount, thousandths int64) int64 {
	return amount/whole*thousandths + amount%whole*thousandths/whole
}

// Set is the backends of a pool that could serve a request, health and load
// aside: bit i is the pool's backend i.
type Set [MaxBackends / 64]uint64

// MaxBackends is how many backends a pool can have.
const MaxBackends = 256

// Add puts backend i into the set.
func (s *Set) Add(i int) { s[i/64] |= 1 << (i % 64) }

// Drop takes backend i out of the set.
func (s *Set) Drop(i int) { s[i/64] &^= 1 << (i % 64) }

// Include puts all backends of another set into the set.
func (s *Set) Include(o *Set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// Has reports whether backend i is in the set.
func (s *Set) Has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// Empty reports whether the set is.
func (s *Set) Empty() bool { return *s == Set{} }

func (s *Set) meets(o *Set) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}
