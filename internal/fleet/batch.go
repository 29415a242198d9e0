package fleet

import (
	"time"

	"sluice"
)

// run finishes every step that ends by now and begins the one that is under way
// at now.
func (r *Replica) run(now time.Time) {
	if !r.ready.IsZero() && !r.ready.After(now) {
		r.ready = time.Time{}
	}
	for {
		if !r.stepping && !r.begin(now) {
			return
		}
		if r.end.After(now) || r.end.Equal(now) && r.endFrac > 0 {
			return
		}
		r.finish()
		r.leap(now)
	}
}

// begin admits and plans one step at r.at. An idle replica has its clock moved
// to the job that wakes it.
func (r *Replica) begin(now time.Time) bool {
	if len(r.running) == 0 {
		head := r.head()
		if head == nil {
			if now.After(r.at) {
				r.at, r.frac = now, 0
			}
			return false
		}
		if head.at.After(r.at) {
			r.at, r.frac = head.at, 0
		}
	}
	for r.admissible() {
		r.admit()
	}
	if len(r.running) == 0 {
		return false
	}
	ps := r.frac
	if r.decoding > 0 {
		ps += r.pace.decode(r.decoding, int64(r.context), 1)
	}
	room := r.profile.ChunkTokens
	for _, j := range r.running {
		if j.state != Prefilling || room == 0 && j.left > 0 {
			continue
		}
		j.chunk = min(j.left, room)
		room -= j.chunk
	}
	ps += r.pace.prefill(r.profile.ChunkTokens - room)
	r.end, r.endFrac = r.at.Add(time.Duration(ps/picos)), ps%picos
	r.stepping = true
	return true
}

func (r *Replica) head() *job {
	for len(r.waiting) > 0 && r.waiting[0] == nil {
		r.waiting = r.waiting[1:]
		r.gone--
	}
	if len(r.waiting) == 0 {
		r.waiting = nil
		return nil
	}
	return r.waiting[0]
}

// admissible reports whether the head of the queue may join the step at r.at.
func (r *Replica) admissible() bool {
	j := r.head()
	return r.fits(j) && !j.at.After(r.at)
}

// fits reports whether there is a slot and memory for the job.
func (r *Replica) fits(j *job) bool {
	if j == nil || len(r.running) >= r.profile.Slots {
		return false
	}
	return r.profile.KVCapacity <= 0 || r.reserved+j.spec.Input+j.spec.Output <= r.profile.KVCapacity
}

func (r *Replica) admit() {
	j := r.waiting[0]
	r.waiting = r.waiting[1:]
	j.state = Prefilling
	r.prefilling++
	r.running = append(r.running, j)
	r.reserved += j.spec.Input + j.spec.Output
	r.filled += j.spec.Cached
	r.totals.CacheHits += j.spec.Cached
}

// finish ends the current step.
func (r *Replica) finish() {
	r.at, r.frac, r.stepping = r.end, r.endFrac, false
	if r.decoding > 0 {
		r.decoded(1)
	}
	if r.prefilling == 0 {
		return
	}
	for i := 0; i < len(r.running); i++ {
		j := r.running[i]
		if j.state != Prefilling {
			continue
		}
		j.left -= j.chunk
		r.filled += j.chunk
		r.totals.Prefilled += j.chunk
		// A job that got no chunk because the step was full has not finished,
		// one that was cached whole has.
		full := j.left > 0
		j.chunk = 0
		if full {
			continue
		}
		if j.spec.Output <= 0 {
			r.done(j, 0)
			i--
			continue
		}
		r.first(j)
		if j.spec.Output == 1 {
			r.done(j, 1)
			i--
		}
	}
}

// first turns a prefilled job into a decoding one, with its first token.
func (r *Replica) first(j *job) {
	j.state, j.since = Decoding, r.decodes
	r.prefilling--
	r.filled -= j.spec.Input
	r.decoding++
	r.context += j.spec.Input + 1
	r.totals.Generated++
	if j.spec.Output > 1 {
		r.events = append(r.events, Progress{ID: j.id, Tokens: 1, At: r.at})
	}
	if j.expect == 1 {
		j.expect = 0
	}
}

// decoded posts k steps of decode, of which only the last may end a job or meet
// an expectation.
func (r *Replica) decoded(k int64) {
	r.decodes += k
	r.context += sluice.Tokens(r.decoding * k)
	r.totals.Generated += sluice.Tokens(r.decoding * k)
	for i := 0; i < len(r.running); i++ {
		j := r.running[i]
		if j.state != Decoding {
			continue
		}
		got := j.tokens(r.decodes)
		if got >= j.spec.Output {
			r.done(j, got)
			i--
			continue
		}
		if j.expect > 0 && got >= j.expect {
			j.expect = 0
			r.events = append(r.events, Progress{ID: j.id, Tokens: got, At: r.at})
		}
	}
}

// quiet is how many decode steps in a row, from the state at the last boundary,
// change nothing but counts; the last of them ends a job or meets an
// expectation. It is 0 when nothing decodes.
func (r *Replica) quiet() int64 {
	const most = 1 << 12 // keeps T(k) far from overflow
	k := int64(most)
	for _, j := range r.running {
		if j.state != Decoding {
			continue
		}
		got := j.tokens(r.decodes)
		k = min(k, int64(j.spec.Output-got))
		if j.expect > got {
			k = min(k, int64(j.expect-got))
		}
	}
	if r.decoding == 0 {
		return 0
	}
	return k
}

// leap does in one go all whole steps of undisturbed decode that end by now.
func (r *Replica) leap(now time.Time) {
	if r.prefilling > 0 || r.decoding == 0 || r.fits(r.head()) {
		return
	}
	budget := now.Sub(r.at)
	fits := func(k int64) bool {
		ps := r.pace.decode(r.decoding, int64(r.context), k) + r.frac
		return time.Duration((ps+picos-1)/picos) <= budget
	}
	lo, hi := int64(0), r.quiet()
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if fits(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo == 0 {
		return
	}
	ps := r.pace.decode(r.decoding, int64(r.context), lo) + r.frac
	r.at, r.frac = r.at.Add(time.Duration(ps/picos)), ps%picos
	r.decoded(lo)
}

func (r *Replica) done(j *job, got sluice.Tokens) {
	r.totals.Done++
	r.remove(j)
	r.events = append(r.events, Progress{ID: j.id, Tokens: got, At: r.at, Done: true})
}

// remove takes a running job out of the batch.
func (r *Replica) remove(j *job) {
	for i, other := range r.running {
		if other == j {
			r.running = append(r.running[:i], r.running[i+1:]...)
			break
		}
	}
	r.reserved -= j.spec.Input + j.spec.Output
	if j.state == Decoding {
		r.decoding--
		r.context -= j.spec.Input + j.tokens(r.decodes)
	} else {
		r.prefilling--
		r.filled -= j.spec.Input - j.left
	}
	delete(r.jobs, j.id)
}

func roundUp(t time.Time, frac int64) time.Time {
	if frac > 0 {
		return t.Add(1)
	}
	return t
}
