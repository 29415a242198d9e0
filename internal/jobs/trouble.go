package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// trouble is what the store does not do, and since when. What is told of it is told once,
// and again when it does.
type trouble struct {
	mu   sync.Mutex
	what map[string]spell // by what the store was asked for, as in tell
}

// spell is from when until when the store did not do something.
type spell struct{ since, last time.Time }

// overAfter is when something that has not failed again is taken to be over: what still
// waits is tried again sooner.
const overAfter = time.Minute

// tell notes how a call of the store went. What one that did not succeed was for is tried
// again by whoever calls this.
func (d *Desk) tell(what string, err error) {
	d.trouble.mu.Lock()
	defer d.trouble.mu.Unlock()
	now := d.now()
	v, failing := d.trouble.what[what]
	switch {
	case err == nil && failing:
		delete(d.trouble.what, what)
		d.o.Log.Info("batches go on: the store can "+what+" again", slog.Duration("waited", now.Sub(v.since)))
	case err != nil:
		if d.o.Hooks.StoreFailed != nil {
			d.o.Hooks.StoreFailed()
		}
		if !failing {
			v.since = now
			d.o.Log.Warn("batches wait for the store: it could not "+what, slog.Any("error", err))
		}
		if d.trouble.what == nil {
			d.trouble.what = make(map[string]spell)
		}
		v.last = now
		d.trouble.what[what] = v
	}
}

// over forgets what nobody waits for any more: the job that did has ended.
func (d *Desk) over(now time.Time) {
	d.trouble.mu.Lock()
	defer d.trouble.mu.Unlock()
	for what, v := range d.trouble.what {
		if now.Sub(v.last) < max(overAfter, d.bounds().Lease/5) {
			continue
		}
		delete(d.trouble.what, what)
		d.o.Log.Info("batches go on: none waits for the store to "+what, slog.Duration("waited", v.last.Sub(v.since)))
	}
}

// asked is tell, unless the desk closes.
func (d *Desk) asked(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		d.tell(what, err)
	}
}

// stalled is for how long the store has not done something, 0 if it does everything.
func (d *Desk) stalled(now time.Time) (longest time.Duration) {
	d.trouble.mu.Lock()
	defer d.trouble.mu.Unlock()
	for _, v := range d.trouble.what {
		longest = max(longest, now.Sub(v.since), time.Microsecond)
	}
	return longest
}
