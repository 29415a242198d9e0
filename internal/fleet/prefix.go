package fleet

import "sluice"

// block is one hashed block of context that has been computed. Running jobs hold
// it by reference; without one it is in the list of what may be evicted.
type block struct {
	hash         uint64
	refs         int
	older, newer *block
}

// prefixCache is the table of computed blocks. Its oldest free block goes first
// when memory is short. A block is freed after the blocks that continue it, so it
// is never evicted before them.
type prefixCache struct {
	size    sluice.Tokens // tokens of a block; 0 turns the cache off
	blocks  map[uint64]*block
	free    int    // blocks without a reference
	held    int    // blocks with one or more
	ends    block  // ends.newer is the oldest free block, ends.older the newest
	changes uint64 // bumped whenever a look-up may answer differently
}

func (c *prefixCache) reset(size sluice.Tokens) {
	*c = prefixCache{size: size, changes: c.changes + 1}
	if size > 0 {
		c.blocks = map[uint64]*block{}
	}
}

// match is how many of the leading hashes, at most most, are there, and how many
// of those are free.
func (c *prefixCache) match(hashes []uint64, most int) (found, free int) {
	for _, h := range hashes[:min(max(most, 0), len(hashes))] {
		b, ok := c.blocks[h]
		if !ok {
			break
		}
		found++
		if b.refs == 0 {
			free++
		}
	}
	return found, free
}

// hold takes a reference to a block, which it makes if it is new.
func (c *prefixCache) hold(hash uint64) {
	c.changes++
	b, ok := c.blocks[hash]
	if !ok {
		b = &block{hash: hash}
		c.blocks[hash] = b
		b.refs = 1
		c.held++
		return
	}
	if b.refs == 0 {
		c.unlink(b)
		c.held++
	}
	b.refs++
}

// release gives a reference back; the last one leaves the block as the newest
// free one.
func (c *prefixCache) release(hash uint64) {
	c.changes++
	b := c.blocks[hash]
	b.refs--
	if b.refs > 0 {
		return
	}
	c.held--
	c.free++
	if c.ends.older == nil {
		c.ends.older, c.ends.newer = &c.ends, &c.ends
	}
	b.older, b.newer = c.ends.older, &c.ends
	b.older.newer, c.ends.older = b, b
}

// evict drops the oldest free blocks until at most room tokens of them are left.
func (c *prefixCache) evict(room sluice.Tokens) {
	for c.free > 0 && c.cached() > room {
		c.changes++
		oldest := c.ends.newer
		c.unlink(oldest)
		delete(c.blocks, oldest.hash)
	}
}

func (c *prefixCache) unlink(b *block) {
	b.older.newer, b.newer.older = b.newer, b.older
	b.older, b.newer = nil, nil
	c.free--
}

// cached is the memory of the free blocks.
func (c *prefixCache) cached() sluice.Tokens { return sluice.Tokens(c.free) * c.size }

// heldTokens is the memory of the blocks that running jobs hold, each counted once.
func (c *prefixCache) heldTokens() sluice.Tokens { return sluice.Tokens(c.held) * c.size }
