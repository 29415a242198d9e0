package cache

import (
	"sync"
	"time"

	"sluice"
)

// Result is what the cache had to do with a request.
type Result uint8

// The results.
const (
	Hit       Result = iota // answered with what is kept
	Miss                    // nothing is kept, and it runs
	Bypass                  // neither kept nor looked for
	Coalesced               // answered with what the same request in flight gets
	Stored                  // its answer is kept
	Unkept                  // its answer is not
	Corrupt                 // what was kept could not be read, and is dropped
	numResults
)

var resultNames = [...]string{"hit", "miss", "bypass", "coalesced", "stored", "unkept", "corrupt"}

func (r Result) String() string { return resultNames[r] }

// Event is one result, for metrics.
type Event struct {
	Tenant sluice.TenantID
	Result Result
	Reason string        // of a bypass, or of what is not kept: a word
	Age    time.Duration // of a hit
	Took   time.Duration // from its arrival to its first content
	Tokens sluice.Tokens // that a hit did not take
	Saved  sluice.Nano   // that it did not cost
	Bytes  int64         // of what is kept
}

// maxCounted bounds the tenants that are counted by themselves.
const maxCounted = 10_000

// Counts are how often each result was had since the start.
type Counts struct {
	Hits, Misses, Bypasses, Coalesced, Stored int64
	Tokens                                    sluice.Tokens // that hits did not take
	Saved                                     sluice.Nano   // that they did not cost
}

// counts are those of each tenant.
type counts struct {
	mu sync.Mutex
	of map[sluice.TenantID]*Counts // guarded by mu
}

func newCounts() counts { return counts{of: make(map[sluice.TenantID]*Counts)} }

func (c *Cache) tell(e Event) {
	c.counts.add(e)
	c.o.Told(e)
}

func (c *counts) add(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[e.Tenant]
	if n == nil {
		if len(c.of) == maxCounted {
			return
		}
		n = &Counts{}
		c.of[e.Tenant] = n
	}
	switch e.Result {
	case Hit:
		n.Hits++
	case Miss:
		n.Misses++
	case Bypass:
		n.Bypasses++
	case Coalesced:
		n.Coalesced++
	case Stored:
		n.Stored++
	}
	n.Tokens += e.Tokens
	n.Saved += e.Saved
}
