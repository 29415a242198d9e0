package route

import (
	"math/bits"
	"slices"

	"sluice"
	"sluice/internal/sched"
)

// index is what is believed of the prefix caches of a pool's places: which block is
// held where. Each place has the blocks that were sent there last, those that an
// engine of its memory would still hold.
//
// A block is in a place's list behind the blocks that continue it, so that it never
// leaves before them: what a place holds of a prompt is always its beginning.
type index struct {
	slots  []*Place // by bit of a set; nil is free
	lists  []list   // by slot
	blocks map[uint64]int32
	store  []block // slot 0 is not used
	free   []int32 // of store
	most   int     // blocks of one place, by memory
	per    sluice.Tokens
}

// block is one block and who holds it.
type block struct {
	hash    uint64
	holders set
	n       int32
}

// set is slots, by bit.
type set [sched.MaxBackends / 64]uint64

func (s *set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i int) bool { return s != nil && s[i/64]&(1<<(i%64)) != 0 }
func (s *set) remove(i int)   { s[i/64] &^= 1 << (i % 64) }

// list is the blocks of one place, the most recent first.
type list struct {
	at    map[int32]int32 // node of a block
	nodes []node          // node 0 is the ring's head
	free  []int32
	told  bool // its engine tells what it reads from its cache
	room  int  // blocks, where it showed that it has less room than was believed; 0 is as believed
}

// leastRoom is the least that is believed of a place's room.
const leastRoom = 256

type node struct{ block, newer, older int32 }

// What a block and one place's hold on it take of memory, with the maps.
const (
	blockBytes = 128
	nodeBytes  = 48
)

// configure sets what there is room for, and forgets places that are gone.
func (x *index) configure(places []*Place, memory int64, per sluice.Tokens) {
	if x.blocks == nil {
		x.blocks = make(map[uint64]int32)
		x.store = make([]block, 1)
	}
	for i, p := range x.slots {
		if p != nil && !slices.Contains(places, p) {
			x.drop(i)
			x.slots[i] = nil
		}
	}
	for _, p := range places {
		if x.slot(p) < 0 {
			x.join(p)
		}
	}
	x.per = per
	x.most = max(1, int(memory/int64(max(len(places), 1))/(blockBytes+nodeBytes)))
	for i := range x.slots {
		x.shrink(i, x.bound(i))
	}
}

// slot is a place's bit, -1 if it has none.
func (x *index) slot(p *Place) int { return slices.Index(x.slots, p) }

func (x *index) join(p *Place) {
	i := slices.Index(x.slots, nil)
	if i < 0 {
		i = len(x.slots)
		x.slots = append(x.slots, nil)
		x.lists = append(x.lists, list{})
	}
	x.slots[i] = p
	x.lists[i] = list{at: make(map[int32]int32), nodes: make([]node, 1)}
}

// bound is how many blocks are kept of a place.
func (x *index) bound(i int) int {
	n := x.most
	if p := x.slots[i]; p != nil {
		if kv := p.KVCapacity(); kv > 0 {
			n = min(n, int(kv/max(x.per, 1)))
		}
	}
	if room := x.lists[i].room; room > 0 {
		n = min(n, room)
	}
	return max(n, 1)
}

// learn compares what a place was believed to hold of a prompt with what it read of it.
func (x *index) learn(i int, expected, read sluice.Tokens) {
	l := &x.lists[i]
	l.told = l.told || read > 0
	most := x.bound(i)
	switch {
	case !l.told || expected <= x.per:
	case read < expected/2:
		l.room = max(leastRoom, most-most/16)
		x.shrink(i, min(most, l.room))
	case l.room > 0:
		l.room = min(l.room+l.room/64+1, x.most)
	}
}

// drop forgets all that a place holds.
func (x *index) drop(i int) {
	x.shrink(i, 0)
	x.lists[i] = list{at: make(map[int32]int32), nodes: make([]node, 1)}
}

// shrink takes the oldest blocks of a place away until n are left.
func (x *index) shrink(i, n int) {
	l := &x.lists[i]
	for len(l.at) > n {
		x.evict(i, l, l.nodes[0].newer) // the ring's other end
	}
}

func (x *index) evict(i int, l *list, at int32) {
	b := l.nodes[at].block
	l.unlink(at)
	delete(l.at, b)
	l.free = append(l.free, at)
	e := &x.store[b]
	e.holders.remove(i)
	if e.n--; e.n == 0 {
		delete(x.blocks, e.hash)
		x.free = append(x.free, b)
	}
}

// put makes the leading blocks of a prompt the most recent ones of a place, the first
// of them most of all.
func (x *index) put(i int, blocks []uint64, salt uint64) {
	l, most := &x.lists[i], x.bound(i)
	blocks = blocks[:min(len(blocks), MaxBlocks, most)]
	for k := len(blocks) - 1; k >= 0; k-- {
		b := x.block(salted(blocks[k], salt))
		at, ok := l.at[b]
		if ok {
			l.unlink(at)
		} else {
			if len(l.at) >= most {
				x.shrink(i, most-1)
			}
			at = l.node()
			l.nodes[at].block = b
			l.at[b] = at
			x.store[b].holders.add(i)
			x.store[b].n++
		}
		l.link(at)
	}
}

// block finds or makes a block. One that is made is held by nobody yet.
func (x *index) block(hash uint64) int32 {
	if b, ok := x.blocks[hash]; ok {
		return b
	}
	var b int32
	if n := len(x.free); n > 0 {
		b, x.free = x.free[n-1], x.free[:n-1]
	} else {
		b = int32(len(x.store))
		x.store = append(x.store, block{})
	}
	x.store[b] = block{hash: hash}
	x.blocks[hash] = b
	return b
}

// match tells, by slot, how many leading blocks of a prompt each place holds. found
// has one figure for each slot.
func (x *index) match(blocks []uint64, salt uint64, found []int32) {
	clear(found)
	if len(blocks) > MaxBlocks {
		blocks = blocks[:MaxBlocks]
	}
	var left set
	n := 0
	for ; n < len(blocks); n++ {
		b, ok := x.blocks[salted(blocks[n], salt)]
		if !ok {
			break
		}
		holders := &x.store[b].holders
		if n == 0 {
			left = *holders
			continue
		}
		any := uint64(0)
		for w := range left {
			gone := left[w] &^ holders[w]
			left[w] &= holders[w]
			any |= left[w]
			for ; gone != 0; gone &= gone - 1 {
				found[w*64+bits.TrailingZeros64(gone)] = int32(n)
			}
		}
		if any == 0 {
			return
		}
	}
	for w := range left {
		for rest := left[w]; rest != 0; rest &= rest - 1 {
			found[w*64+bits.TrailingZeros64(rest)] = int32(n)
		}
	}
}

// holders is the places that hold a block, nil if none does.
func (x *index) holders(hash, salt uint64) *set {
	if b, ok := x.blocks[salted(hash, salt)]; ok {
		return &x.store[b].holders
	}
	return nil
}

// move makes a place the only one that holds a block, as its most recent.
func (x *index) move(i int, hash, salt uint64) {
	h := salted(hash, salt)
	if b, ok := x.blocks[h]; ok {
		holders := x.store[b].holders
		for w := range holders {
			for rest := holders[w]; rest != 0; rest &= rest - 1 {
				if j := w*64 + bits.TrailingZeros64(rest); j != i {
					x.evict(j, &x.lists[j], x.lists[j].at[b])
				}
			}
		}
	}
	x.put(i, []uint64{hash}, salt)
}

// held is how many blocks are remembered, and how many holds on them.
func (x *index) held() (blocks, holds int) {
	for i := range x.lists {
		holds += len(x.lists[i].at)
	}
	return len(x.blocks), holds
}

func (l *list) node() int32 {
	if n := len(l.free); n > 0 {
		at := l.free[n-1]
		l.free = l.free[:n-1]
		return at
	}
	l.nodes = append(l.nodes, node{})
	return int32(len(l.nodes) - 1)
}

// link makes a node the most recent.
func (l *list) link(at int32) {
	first := l.nodes[0].older
	l.nodes[at].newer, l.nodes[at].older = 0, first
	l.nodes[0].older, l.nodes[first].newer = at, at
}

func (l *list) unlink(at int32) {
	n := l.nodes[at]
	l.nodes[n.newer].older, l.nodes[n.older].newer = n.older, n.newer
}

// salted is a block's hash as one tenant's: those of two tenants have nothing in
// common.
func salted(hash, salt uint64) uint64 {
	hi, lo := bits.Mul64(hash^salt, 0x9e3779b97f4a7c15)
	hi, lo = bits.Mul64(lo^hi^salt, 0xd6e8feb86659fd93)
	return hi ^ lo
}
