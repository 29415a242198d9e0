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
	if !r.preempt() {
		for r.admissible() {
			r.admit()
		}
	}
	if len(r.running) == 0 {
		return false
	}
	ps := r.frac
	if r.decoding > 0 {
		ps += r.pace.decode(r.decoding, int64(r.context), 1)
	}
	ps += r.chunks()
	r.end, r.endFrac = r.at.Add(time.Duration(ps/picos)), ps%picos
	r.stepping = true
	return true
}

// chunks shares the step's prefill out and returns how long it takes.
func (r *Replica) chunks() int64 {
	if r.prefilling == 0 {
		return 0
	}
	room, pairs := r.profile.ChunkTokens, int64(0)
	for _, j := range r.running {
		if j.state != Prefilling || room == 0 && j.left > 0 {
			continue
		}
		j.chunk = min(j.left, room)
		room -= j.chunk
		pairs += pairsOf(j.whole()-j.left, j.chunk)
	}
	return r.pace.prefill(r.profile.ChunkTokens-room, pairs)
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

func (r *Replica) admit() {
	j := r.waiting[0]
	r.waiting = r.waiting[1:]
	r.hold(j)
	j.state = Prefilling
	r.prefilling++
	r.running = append(r.running, j)
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
		r.computed(j)
		// A job that got no chunk because the step was full has not finished,
		// one that was cached whole has.
		if j.left > 0 {
			continue
		}
		if j.spec.Output <= 0 {
			r.done(j, 0)
			i--
			continue
		}
		r.first(j)
		if got := j.tokens(r.decodes); got >= j.spec.Output {
			r.done(j, got)
			i--
		}
	}
}

// computed posts a job's chunk.
func (r *Replica) computed(j *job) {
	before := j.whole() - j.left
	j.left -= j.chunk
	r.filled += j.chunk
	r.totals.Prefilled += j.chunk
	r.totals.Recomputed += max(min(before+j.chunk, j.high)-before, 0)
	r.share(j, before+j.chunk)
	j.chunk = 0
}

// first turns a prefilled job into a decoding one, with its first token, or with
// its next one after a preemption.
func (r *Replica) first(j *job) {
	got := j.got + 1
	r.prefilling--
	r.filled -= j.whole()
	j.state, j.since = Decoding, r.decodes-int64(j.got)
	r.decoding++
	r.context += j.spec.Input + got
	r.totals.Generated++
	met := j.expect > 0 && got >= j.expect
	if met {
		j.expect = 0
	}
	if (got == 1 || met) && got < j.spec.Output {
		r.report(j, got)
	}
}

func (r *Replica) report(j *job, got sluice.Tokens) {
	r.events = append(r.events, Progress{ID: j.id, Tokens: got, Cached: j.cached, At: r.at})
}

// decoded posts k steps of decode, of which only the last may end a job or meet
// an expectation.
func (r *Replica) decoded(k int64) {
	r.decodes += k
	r.context += sluice.Tokens(r.decoding * k)
	r.totals.Generated += sluice.Tokens(r.decoding * k)
	if r.profile.Paged {
		r.private += sluice.Tokens(r.decoding * k)
		r.trim()
	}
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
			r.report(j, got)
		}
	}
}

// quiet is how many decode steps in a row, from the state at the last boundary,
// change nothing but counts; the last of them ends a job, meets an expectation or
// fills the memory. It is 0 when nothing decodes.
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
	if r.profile.Paged {
		k = min(k, r.spareSteps())
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
	r.events = append(r.events, Progress{ID: j.id, Tokens: got, Cached: j.cached, At: r.at, Done: true})
}

// remove takes a running job out of the batch.
func (r *Replica) remove(j *job) {
	for i, other := range r.running {
		if other == j {
			r.running = append(r.running[:i], r.running[i+1:]...)
			break
		}
	}
	r.drop(j)
	delete(r.jobs, j.id)
}

func roundUp(t time.Time, frac int64) time.Time {
	if frac > 0 {
		return t.Add(1)
	}
	return t
}
