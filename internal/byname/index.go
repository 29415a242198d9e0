package byname

import (
	"hash/maphash"
	"iter"

	"sluice/internal/prefetch"
)

// Names tells an index what its elements are called. Its zero value is used.
type Names[K comparable, E any] interface {
	// Name is what an element was added as. It does not change while it is in the index.
	Name(e *E) K
	// Hash is the same for equal names.
	Hash(seed maphash.Seed, name K) uint64
}

// Index finds elements by their names. The zero value is empty.
type Index[K comparable, E any, N Names[K, E]] struct {
	slots []slot[E] // a power of two of them
	n     int
	seed  maphash.Seed
	names N
}

type slot[E any] struct {
	hash uint64
	e    *E // nil: free
}

const fewest = 8

// Len is how many elements there are.
func (x *Index[K, E, N]) Len() int { return x.n }

// Hash is the hash of a name, as this index uses it for as long as it lives.
func (x *Index[K, E, N]) Hash(name K) uint64 {
	if x.slots == nil {
		x.grow()
	}
	return x.names.Hash(x.seed, name)
}

// Find is the element of a name, nil if there is none.
func (x *Index[K, E, N]) Find(name K) *E {
	if x.n == 0 {
		return nil
	}
	return x.FindHashed(name, x.names.Hash(x.seed, name))
}

// FindHashed is Find of a name whose Hash is known.
func (x *Index[K, E, N]) FindHashed(name K, hash uint64) *E {
	mask := uint64(len(x.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.e == nil {
			return nil
		}
		if s.hash == hash && x.names.Name(s.e) == name {
			return s.e
		}
	}
}

// Prefetch asks the processor for the slot that a look-up by a hash begins with.
func (x *Index[K, E, N]) Prefetch(hash uint64) {
	if x.n > 0 {
		prefetch.Of(&x.slots[hash&uint64(len(x.slots)-1)])
	}
}

// PrefetchElement asks for the element that a look-up by a hash is likely to find, by the
// slot that Prefetch has asked for.
func (x *Index[K, E, N]) PrefetchElement(hash uint64) {
	if x.n > 0 {
		if s := &x.slots[hash&uint64(len(x.slots)-1)]; s.hash == hash {
			prefetch.Of(s.e)
		}
	}
}

// Add adds an element. REQUIRES: there is none of its name. The hash that it returns is
// for RemoveHashed.
func (x *Index[K, E, N]) Add(e *E) (hash uint64) {
	hash = x.Hash(x.names.Name(e))
	x.AddHashed(e, hash)
	return hash
}

// AddHashed is Add of an element the Hash of whose name is known.
func (x *Index[K, E, N]) AddHashed(e *E, hash uint64) {
	if 4*(x.n+1) > 3*len(x.slots) {
		x.grow()
	}
	x.n++
	x.put(slot[E]{hash, e})
}

// put places an element in the first free slot from that of its hash on.
func (x *Index[K, E, N]) put(s slot[E]) {
	mask := uint64(len(x.slots) - 1)
	i := s.hash & mask
	for x.slots[i].e != nil {
		i = (i + 1) & mask
	}
	x.slots[i] = s
}

func (x *Index[K, E, N]) grow() {
	before := x.slots
	if before == nil {
		x.seed = maphash.MakeSeed()
	}
	x.slots = make([]slot[E], max(fewest, 2*len(before)))
	for _, s := range before {
		if s.e != nil {
			x.put(s)
		}
	}
}

// Remove takes an element out. REQUIRES: it is in the index.
func (x *Index[K, E, N]) Remove(e *E) { x.RemoveHashed(e, x.names.Hash(x.seed, x.names.Name(e))) }

// RemoveHashed is Remove of an element whose hash was kept, so that its name, which may
// be long out of any cache, need not be read.
func (x *Index[K, E, N]) RemoveHashed(e *E, hash uint64) {
	mask := uint64(len(x.slots) - 1)
	i := hash & mask
	for x.slots[i].e != e {
		if x.slots[i].e == nil {
			panic("byname: element is not in the index")
		}
		i = (i + 1) & mask
	}
	x.n--
	for j := (i + 1) & mask; x.slots[j].e != nil; j = (j + 1) & mask {
		if home := x.slots[j].hash & mask; (j-home)&mask >= (j-i)&mask { // i is on its way
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = slot[E]{}
}

// All are the elements, in no order that matters. Nothing is added or removed
// meanwhile.
func (x *Index[K, E, N]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		for _, s := range x.slots {
			if s.e != nil && !yield(s.e) {
				return
			}
		}
	}
}
