package route

import (
	"time"

	"sluice"
)

// Choice is the rule by which one of the places that can take a request is chosen.
type Choice uint8

// The rules.
const (
	ByLoad     Choice = iota // the least running ÷ weight
	ByCost                   // of two at random, the one with the least cost
	ByAffinity               // the least cost of two at random and those that hold its prefix, which may start it later
	ByTurn                   // in turn by weight, whatever runs there
	ByMatch                  // the longest prefix, whatever runs there: to compare with
)

var choiceWords = [...]string{"least_loaded", "two_choices", "affinity", "round_robin", "best_match"}

// String is the word of the configuration.
func (c Choice) String() string { return choiceWords[c] }

// Choices are the words of the configuration, by Choice.
func Choices() []string { return choiceWords[:] }

// Prefixed reports whether the rule reads prefixes.
func (c Choice) Prefixed() bool { return c == ByAffinity || c == ByMatch }

// Affinity is how requests keep to the backends that hold their prefixes. Zero
// fields take the defaults.
type Affinity struct {
	BlockBytes int64         // of a prompt, that are one block
	Stick      time.Duration // how much later a request may start where its prefix is than elsewhere; negative is not at all
	Quantum    sluice.Tokens // how much more uncached input a tenant's requests may bring a backend by keeping to it than they bring the one that gets least
	Memory     int64         // bytes of what is remembered

	// BlockTokens is what one block is taken to be where a backend's memory bounds how
	// many of them are remembered of it.
	BlockTokens sluice.Tokens
}

// Defaults of Affinity.
const (
	DefaultBlockBytes  = 2048
	DefaultBlockTokens = sluice.Tokens(512)
	DefaultStick       = 4 * time.Second
	DefaultQuantum     = sluice.Tokens(500_000)
	DefaultMemory      = 64 << 20
)

// Bounds of Affinity.
const (
	MinBlockBytes = 64
	MaxBlockBytes = 1 << 20
	MinMemory     = 1 << 20
	MaxMemory     = 1 << 32
	MaxStick      = 10 * time.Minute
)

// MaxBlocks is how many blocks of a prompt are looked at: what follows is taken not
// to be cached.
const MaxBlocks = 256

// WithDefaults fills zero fields.
func (a Affinity) WithDefaults() Affinity {
	if a.BlockBytes == 0 {
		a.BlockBytes = DefaultBlockBytes
	}
	if a.BlockTokens == 0 {
		a.BlockTokens = max(1, DefaultBlockTokens*sluice.Tokens(a.BlockBytes)/DefaultBlockBytes)
	}
	if a.Stick == 0 {
		a.Stick = DefaultStick
	}
	if a.Quantum == 0 {
		a.Quantum = DefaultQuantum
	}
	if a.Memory == 0 {
		a.Memory = DefaultMemory
	}
	return a
}

// Prefix is a prompt as far as it can be shared: the chained hashes of its whole
// blocks, each of its own bytes and all before them, at most MaxBlocks.
type Prefix struct {
	Blocks []uint64
	Tokens sluice.Tokens // of one block, about
}

// Asking is what a choice is made for.
type Asking struct {
	ID      sluice.RequestID
	Attempt int // chance is drawn from these two
	Tenant  sluice.TenantID
	Session Session // it keeps to where it was
	Sticky  bool    // rules that remember no session keep it by a hash: see Chooser.Choose
	Input   sluice.Tokens
	KV      sluice.Tokens
	Prefix  Prefix
}

// tokens is what n of the leading blocks are of the input: all but its last token
// at most, which every engine computes.
func (a *Asking) tokens(n int) sluice.Tokens {
	return max(0, min(sluice.Tokens(n)*a.Prefix.Tokens, a.Input-1))
}
