package fleet

import (
	"slices"

	"sluice"
)

// The memory of a replica is in three parts: what running jobs hold alone
// (Replica.private), the blocks that they hold by reference, each counted once,
// and the free blocks of the prefix cache:
//
//	reserved = private + held blocks,   reserved + free blocks ≤ KVCapacity

// reserved is what the running jobs hold.
func (r *Replica) reserved() sluice.Tokens { return r.private + r.cache.heldTokens() }

// used is the part of reserved that has been computed.
func (r *Replica) used() sluice.Tokens {
	return r.context + r.filled - r.cache.size*sluice.Tokens(r.refs) + r.cache.heldTokens()
}

// whole is the context that a job's prefill must make: the prompt, and after a
// preemption what it had generated.
func (j *job) whole() sluice.Tokens { return j.spec.Input + j.got }

// claim is the memory that a job takes when it is admitted.
func (r *Replica) claim(j *job) sluice.Tokens {
	if r.profile.Paged {
		return j.whole() + 1
	}
	return j.spec.Input + j.spec.Output
}

// hits is how many of a waiting job's leading blocks are in the cache now, at
// least one token left to compute, and how many of those are free.
func (r *Replica) hits(j *job) (found, free int) {
	if r.cache.size == 0 || len(j.spec.Blocks) == 0 {
		return 0, 0
	}
	if j.asked != r.cache.changes+1 {
		j.found, j.free = r.cache.match(j.spec.Blocks, int((j.whole()-1)/r.cache.size))
		j.asked = r.cache.changes + 1
	}
	return j.found, j.free
}

// fits reports whether there is a slot and memory for the job. While running jobs
// decode and nothing else happens, a job that does not fit stays so.
func (r *Replica) fits(j *job) bool {
	if j == nil || len(r.running) >= r.profile.Slots {
		return false
	}
	if r.profile.KVCapacity <= 0 {
		return true
	}
	room := r.profile.KVCapacity - r.reserved()
	if r.profile.Paged && len(r.running) > 0 {
		// The growth of the step that it would join, and a watermark of 1 %, lest
		// what is admitted now is preempted at once.
		room -= sluice.Tokens(r.decoding) + r.profile.KVCapacity/100
	}
	need := r.claim(j)
	if need-r.cache.size*sluice.Tokens(len(j.spec.Blocks)) > room {
		return false // even if every block were held by others
	}
	found, free := r.hits(j)
	return need-r.cache.size*sluice.Tokens(found-free) <= room
}

// hold gives a job that fits its memory and its part of the prefix cache.
func (r *Replica) hold(j *job) {
	found, _ := r.hits(j)
	j.cached = j.spec.Cached
	if r.cache.size > 0 && len(j.spec.Blocks) > 0 {
		j.cached = r.cache.size * sluice.Tokens(found)
	}
	j.left = j.whole() - j.cached
	r.private += r.claim(j)
	r.filled += j.cached
	r.totals.CacheHits += max(j.cached-j.high, 0)
	r.share(j, j.cached)
	r.trim()
}

// share turns the blocks of a job that are complete by computed tokens into
// shared ones. A block that is there already takes the place of the job's own copy.
func (r *Replica) share(j *job, computed sluice.Tokens) {
	if r.cache.size == 0 {
		return
	}
	n := min(len(j.spec.Blocks), int(computed/r.cache.size))
	for ; j.shared < n; j.shared++ {
		r.cache.hold(j.spec.Blocks[j.shared])
		r.private -= r.cache.size
		r.refs++
	}
}

// drop takes a running job's memory back; its blocks stay in the cache.
func (r *Replica) drop(j *job) {
	computed := j.whole() - j.left
	claim := r.claim(j)
	if j.state == Decoding {
		computed = j.spec.Input + j.tokens(r.decodes)
		if r.profile.Paged {
			claim = computed
		}
	}
	r.share(j, computed)
	r.private -= claim - r.cache.size*sluice.Tokens(j.shared)
	for ; j.shared > 0; j.shared-- {
		r.cache.release(j.spec.Blocks[j.shared-1])
		r.refs--
	}
	if j.state == Decoding {
		r.decoding--
		r.context -= computed
	} else {
		r.prefilling--
		r.filled -= computed
	}
	j.high = max(j.high, computed)
}

// trim evicts what the running jobs have taken the room of.
func (r *Replica) trim() {
	if r.cache.free > 0 {
		r.cache.evict(r.profile.KVCapacity - r.reserved())
	}
}

// spareSteps is how many steps of decode the memory has room for.
func (r *Replica) spareSteps() int64 {
	return int64(r.profile.KVCapacity-r.reserved()) / r.decoding
}

// preempt makes room for one step of decode: the jobs admitted last go back to
// the head of the queue, to be computed again. It reports whether any did.
func (r *Replica) preempt() bool {
	if !r.profile.Paged {
		return false
	}
	any := false
	for r.decoding > 0 && r.spareSteps() < 1 {
		j := r.running[len(r.running)-1]
		got := j.tokens(r.decodes)
		r.drop(j)
		r.running = r.running[:len(r.running)-1]
		j.got, j.state, j.chunk, j.asked = got, Waiting, 0, 0
		r.waiting = slices.Insert(r.waiting, 0, j)
		r.totals.Preempted++
		any = true
	}
	return any
}
