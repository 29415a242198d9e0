package egress

import "sync"

// Cut ends a request from outside, as the end of its context does, without a
// context of its own, which takes five allocations. The zero value is ready, for one
// request, whose answer must be closed before it is dropped.
type Cut struct {
	mu  sync.Mutex
	end func() // what ends the request now; nil while nothing does
	cut bool
}

// Now ends the request, if it has not ended.
func (c *Cut) Now() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	if c.end != nil { // under the lock, so that it is over before a connection serves the next request
		c.end()
	}
}

// by sets what ends the request from now on, and is false if it has been cut. A nil
// Cut is never used.
func (c *Cut) by(end func()) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = end
	return !c.cut
}
