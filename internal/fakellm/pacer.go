package fakellm

import (
	"context"
	"sync"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

// machine is what a pacer drives: a *fleet.Replica or a *fleet.Hosted.
type machine interface {
	Submit(now time.Time, job fleet.Job) (fleet.JobID, error)
	Expect(now time.Time, id fleet.JobID, n sluice.Tokens)
	Advance(now time.Time) []fleet.Progress
	NextWake() (time.Time, bool)
	Cancel(now time.Time, id fleet.JobID) (sluice.Tokens, bool)
	Load() fleet.Load
	Totals() fleet.Totals
}

// pacer runs one machine on the real clock. Its goroutine lives while jobs are
// in flight and is joined by close.
type pacer struct {
	mu     sync.Mutex
	m      machine
	jobs   map[fleet.JobID]*job
	alive  bool
	closed bool
	poke   chan struct{} // capacity 1: the next wake may have moved
	wg     sync.WaitGroup
}

// job is one request on a machine. Its fields are guarded by the pacer's mu.
type job struct {
	p    *pacer
	id   fleet.JobID
	got  sluice.Tokens
	done bool
	cut  bool // the pacer was closed under it
	want sluice.Tokens
	wake chan struct{} // closed when got ≥ want or done; nil when nobody waits
}

func newPacer(m machine) *pacer {
	return &pacer{m: m, jobs: map[fleet.JobID]*job{}, poke: make(chan struct{}, 1)}
}

// submit starts a job; the caller must end it with end.
func (p *pacer) submit(spec fleet.Job) (*job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fleet.ErrQueueFull
	}
	id, err := p.m.Submit(time.Now(), spec)
	if err != nil {
		return nil, err
	}
	j := &job{p: p, id: id}
	p.jobs[id] = j
	if !p.alive {
		p.alive = true
		p.wg.Go(p.drive)
	}
	p.nudge()
	return j, nil
}

// await blocks until the job has generated n tokens or is done, and returns how
// many there are; the context's error if it ends first, errAbort if the pacer is
// closed meanwhile.
func (j *job) await(ctx context.Context, n sluice.Tokens) (sluice.Tokens, error) {
	p := j.p
	p.mu.Lock()
	if j.got >= n && n > 0 || j.done {
		defer p.mu.Unlock()
		if j.cut {
			return j.got, errAbort
		}
		return j.got, nil
	}
	wake := make(chan struct{})
	j.want, j.wake = n, wake
	p.m.Expect(time.Now(), j.id, n)
	p.nudge()
	p.mu.Unlock()
	select {
	case <-wake:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.cut {
		return j.got, errAbort
	}
	return j.got, nil
}

// end takes the job off the machine, if it is still there, and returns what it
// has generated.
func (j *job) end() sluice.Tokens {
	p := j.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.done {
		return j.got
	}
	if got, ok := p.m.Cancel(time.Now(), j.id); ok {
		j.got = got
	}
	j.done = true
	delete(p.jobs, j.id)
	p.nudge()
	return j.got
}

func (p *pacer) nudge() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// drive advances the machine at its wakes until it is idle or the pacer closes.
func (p *pacer) drive() {
	for {
		p.mu.Lock()
		p.settle(time.Now())
		wake, ok := p.m.NextWake()
		if !ok || p.closed {
			p.alive = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		t := time.NewTimer(time.Until(wake))
		select {
		case <-t.C:
		case <-p.poke:
			t.Stop()
		}
	}
}

// settle hands out what the machine has done by now. Called with mu held.
func (p *pacer) settle(now time.Time) {
	for _, e := range p.m.Advance(now) {
		j, ok := p.jobs[e.ID]
		if !ok {
			continue
		}
		j.got, j.done = e.Tokens, e.Done
		if e.Done {
			delete(p.jobs, e.ID)
		}
		if j.wake != nil && (j.done || j.got >= j.want && j.want > 0) {
			close(j.wake)
			j.wake = nil
		}
	}
}

// load is the machine's state now.
func (p *pacer) load() (fleet.Load, fleet.Totals) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle(time.Now())
	return p.m.Load(), p.m.Totals()
}

// close stops the goroutine. Jobs that still wait are cut.
func (p *pacer) close() {
	p.mu.Lock()
	p.closed = true
	for id, j := range p.jobs {
		j.done, j.cut = true, true
		if j.wake != nil {
			close(j.wake)
			j.wake = nil
		}
		delete(p.jobs, id)
	}
	p.nudge()
	p.mu.Unlock()
	p.wg.Wait()
}
