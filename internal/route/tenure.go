package route

import (
	"hash/fnv"
	"slices"

	"sluice"
)

// MaxAffineTenants is how many tenants' prefixes are followed in one pool at a time.
// The one that was seen longest ago makes room for another.
const MaxAffineTenants = 1024

// tenures is what is remembered of tenants beside their blocks.
type tenures struct {
	of             map[sluice.TenantID]*tenure
	newest, oldest *tenure
}

// tenure is one tenant's.
type tenure struct {
	id           sluice.TenantID
	salt         uint64
	given        []int64 // by slot: uncached input that it was given there, for the weight of a place
	trunk        [trunkBlocks]trunk
	newer, older *tenure
}

// trunk is the beginning that most of a tenant's prompts have, block by block: the
// hash that came most often of late, and how often, in 1/65536 of the prompts.
type trunk struct {
	hash  uint64
	share uint32
}

const (
	trunkBlocks = 32
	trunkWhole  = 1 << 16
	trunkWeight = 32                  // prompts that a share is an average over, about
	trunkCommon = trunkWhole * 8 / 10 // of a block that nearly all prompts have
)

// tenureBytes is what one tenant takes of memory, spent aside.
const tenureBytes = 16*trunkBlocks + 192

// get finds or makes a tenant's, as the newest.
func (t *tenures) get(id sluice.TenantID, slots int) *tenure {
	x := t.of[id]
	switch {
	case x != nil && x == t.newest:
	case x != nil:
		t.unlink(x)
		t.link(x)
	default:
		if t.of == nil {
			t.of = make(map[sluice.TenantID]*tenure)
		}
		if len(t.of) >= MaxAffineTenants {
			x = t.oldest
			t.unlink(x)
			delete(t.of, x.id)
		}
		x = &tenure{id: id, salt: saltOf(id)}
		t.of[id] = x
		t.link(x)
	}
	for len(x.given) < slots {
		top := int64(0)
		if len(x.given) > 0 {
			top = slices.Max(x.given)
		}
		x.given = append(x.given, top)
	}
	return x
}

// leave forgets what tenants have spent on a place that is gone.
func (t *tenures) leave(slot int) {
	for x := t.newest; x != nil; x = x.older {
		if slot < len(x.given) {
			x.given[slot] = slices.Max(x.given)
		}
	}
}

func (t *tenures) link(x *tenure) {
	x.newer, x.older = nil, t.newest
	if t.newest != nil {
		t.newest.newer = x
	} else {
		t.oldest = x
	}
	t.newest = x
}

func (t *tenures) unlink(x *tenure) {
	if x.newer == nil {
		t.newest = x.older
	} else {
		x.newer.older = x.older
	}
	if x.older == nil {
		t.oldest = x.newer
	} else {
		x.older.newer = x.newer
	}
}

// common is how many leading blocks of a prompt nearly all prompts of the tenant
// have.
func (x *tenure) common(blocks []uint64) int {
	for i := range min(len(blocks), trunkBlocks) {
		if t := &x.trunk[i]; t.hash != blocks[i] || t.share < trunkCommon {
			return i
		}
	}
	return min(len(blocks), trunkBlocks)
}

// saw takes a prompt into the trunk. A block whose share has come down to nothing
// gives way to another.
func (x *tenure) saw(blocks []uint64) {
	for i := range x.trunk {
		t := &x.trunk[i]
		t.share -= t.share / trunkWeight
		switch {
		case i < len(blocks) && t.hash == blocks[i]:
			t.share += trunkWhole / trunkWeight
		case i < len(blocks) && t.share < trunkWhole/trunkWeight:
			*t = trunk{blocks[i], trunkWhole / trunkWeight}
		}
	}
}

// saltOf is what sets a tenant's blocks apart.
func saltOf(id sluice.TenantID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return salted(h.Sum64(), uint64(len(id)))
}
