package fleet

import (
	"time"

	"sluice"
)

// Replica is one engine with continuous batching. Make it with [NewReplica].
type Replica struct {
	profile Profile
	pace    pace
	down    bool
	ready   time.Time // end of the start-up; zero when there is none to wait for

	at       time.Time // start of the current step, or the latest time seen while idle
	frac     int64     // picoseconds beyond at, below 1000
	stepping bool
	end      time.Time // of the current step
	endFrac  int64

	next    JobID
	jobs    map[JobID]*job
	waiting []*job // in order of submission; nil where one was cancelled
	gone    int    // nil entries in waiting
	running []*job // in order of admission
	decodes int64  // decode steps so far: a decoding job's age is a difference of these

	prefilling int
	decoding   int64
	context    sluice.Tokens // Σ context of the decoding jobs
	filled     sluice.Tokens // Σ prefilled of the prefilling jobs
	private    sluice.Tokens // memory that running jobs hold alone
	refs       int           // Σ shared of the running jobs
	cache      prefixCache

	totals Totals
	events []Progress
	spare  []Progress // the slice handed out last
}

type job struct {
	id     JobID
	spec   Job
	at     time.Time // submitted
	state  State
	got    sluice.Tokens // generated before it was last admitted
	left   sluice.Tokens // prefill still to do
	chunk  sluice.Tokens // of the current step
	since  int64         // value of decodes at which it had one token
	expect sluice.Tokens // report when this many are there; 0 for none

	cached sluice.Tokens // served from the prefix cache when it was last admitted
	high   sluice.Tokens // context that had been computed when it was preempted
	shared int           // leading blocks that it holds by reference

	asked       uint64 // prefixCache.changes + 1 of the answer in found and free
	found, free int
}

// tokens is how many it has generated.
func (j *job) tokens(decodes int64) sluice.Tokens {
	if j.state != Decoding {
		return j.got
	}
	return sluice.Tokens(decodes-j.since) + 1
}

// NewReplica makes an idle replica that serves already. One that is added in
// mid-run is made and then restarted: it serves after its start-up.
func NewReplica(p Profile) *Replica {
	p = p.withDefaults()
	r := &Replica{profile: p, pace: p.pace(wholeSpeed), jobs: map[JobID]*job{}}
	r.cache.reset(p.BlockTokens)
	return r
}

// Submit adds a job at the end of the queue. It fails with ErrDown, ErrTooLarge
// or ErrQueueFull, in which case nothing has changed. Progress that is due by now
// is kept for the next Advance.
func (r *Replica) Submit(now time.Time, spec Job) (JobID, error) {
	r.run(now)
	if r.health() != Serving {
		return 0, ErrDown
	}
	if r.profile.KVCapacity > 0 && spec.Input+spec.Output > r.profile.KVCapacity {
		return 0, ErrTooLarge
	}
	if r.profile.Queue > 0 && len(r.waiting)-r.gone >= r.profile.Queue {
		return 0, ErrQueueFull
	}
	if spec.Cached == 0 {
		spec.Cached = spec.Input * sluice.Tokens(r.profile.HitPermille) / 1000
	}
	spec.Cached = min(max(spec.Cached, 0), spec.Input)
	r.next++
	j := &job{id: r.next, spec: spec, at: r.seen(now), state: Waiting}
	r.jobs[j.id] = j
	r.waiting = append(r.waiting, j)
	r.totals.Submitted++
	r.run(now)
	return j.id, nil
}

// Expect asks for a Progress when the job has generated n tokens. If it has
// them already, the next Advance reports it. One expectation per job: a later
// one replaces it.
func (r *Replica) Expect(now time.Time, id JobID, n sluice.Tokens) {
	r.run(now)
	j, ok := r.jobs[id]
	if !ok {
		return
	}
	j.expect = n
	if got := j.tokens(r.decodes); got >= n && n > 0 {
		j.expect = 0
		r.report(j, got)
	}
}

// Advance brings the replica to now and returns what has changed since the last
// call, in order of time. The slice is valid until the next call of Advance.
func (r *Replica) Advance(now time.Time) []Progress {
	r.run(now)
	out := r.events
	r.events, r.spare = r.spare[:0], out
	return out
}

// NextWake is when Advance will next have something to report, a step of prefill
// ends or the start-up is over; false if nothing is waiting, running or starting.
func (r *Replica) NextWake() (time.Time, bool) {
	if len(r.events) > 0 {
		return r.at, true
	}
	if !r.stepping {
		return r.ready, !r.ready.IsZero()
	}
	k := r.quiet() - 1 // steps beyond the current one
	if r.prefilling > 0 || k <= 0 || r.fits(r.head()) {
		return roundUp(r.end, r.endFrac), true
	}
	ps := r.pace.decode(r.decoding, int64(r.context)+r.decoding, k) + r.endFrac
	return roundUp(r.end.Add(time.Duration(ps/picos)), ps%picos), true
}

// Cancel ends a job at once and frees its memory; the current step takes as
// long as it was going to. It returns the tokens that it had generated, and
// false if there is no such job.
func (r *Replica) Cancel(now time.Time, id JobID) (sluice.Tokens, bool) {
	r.run(now)
	j, ok := r.jobs[id]
	if !ok {
		return 0, false
	}
	got := j.tokens(r.decodes)
	r.totals.Cancelled++
	if j.state == Waiting {
		for i, w := range r.waiting {
			if w == j {
				r.waiting[i] = nil
				r.gone++
			}
		}
		delete(r.jobs, id)
	} else {
		r.remove(j)
	}
	return got, true
}

// Tokens is how many tokens the job has generated as of the last call.
func (r *Replica) Tokens(id JobID) (sluice.Tokens, State) {
	j, ok := r.jobs[id]
	if !ok {
		return 0, Unknown
	}
	return j.tokens(r.decodes), j.state
}

// Load is the state as of the last call.
func (r *Replica) Load() Load {
	return Load{
		Health:  r.health(),
		Running: len(r.running), Waiting: len(r.waiting) - r.gone,
		KVUsed: r.used(), KVReserved: r.reserved(), KVCached: r.cache.cached(), KVCapacity: r.profile.KVCapacity,
	}
}

// Totals is what has been done as of the last call.
func (r *Replica) Totals() Totals { return r.totals }

func (r *Replica) seen(now time.Time) time.Time {
	if now.Before(r.at) {
		return r.at
	}
	return now
}
