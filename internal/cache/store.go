package cache

import (
	"context"
	"time"
)

// Store is where entries are kept. What it does is quick or given up: none of its errors
// reaches a request. All are safe for concurrent use.
type Store interface {
	// Get is what is kept of a key, false if that is nothing, or cannot be had in time.
	Get(ctx context.Context, scope string, k Key) ([]byte, bool)
	// Put keeps an item in place of what there is, and lets others go for it by the
	// bounds. It reports whether the item is kept.
	Put(ctx context.Context, i Item) bool
	// Drop forgets an entry.
	Drop(ctx context.Context, scope string, k Key)
	// Purge forgets all entries of an owner, or with an empty scope all of everybody, and
	// says how many.
	Purge(ctx context.Context, scope string) (int, error)
	// Levels is what is kept, by owner.
	Levels(ctx context.Context) ([]Level, error)
	// Close ends it.
	Close() error
}

// Item is an entry as it is handed to a store.
type Item struct {
	Owner   Owner
	Scope   string // of the owner
	Key     Key
	Value   []byte // it is the store's from then on
	Expires time.Time
}

// Level is what is kept of an owner.
type Level struct {
	Owner   string // as Owner.String writes it
	Entries int64
	Bytes   int64
}

// Bounds are how much is kept.
type Bounds struct {
	PerOwner int64 // bytes of each tenant, or group
	Total    int64 // bytes
}

// DefaultTimeout is how long a question to a store that is not in the process may take.
const DefaultTimeout = 50 * time.Millisecond

// The default bounds.
const (
	DefaultPerOwner int64 = 64 << 20
	DefaultTotal    int64 = 1 << 30
)

// WithDefaults are the bounds with the defaults in place of zeros.
func (b Bounds) WithDefaults() Bounds {
	if b.Total <= 0 {
		b.Total = DefaultTotal
	}
	if b.PerOwner <= 0 {
		b.PerOwner = DefaultPerOwner
	}
	b.PerOwner = min(b.PerOwner, b.Total)
	return b
}

// overhead is what an entry is counted for beside its bytes.
const overhead = 512
