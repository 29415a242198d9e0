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
	mu    sync.Mutex
	since map[string]time.Time // by what the store was asked for, as in tell
}

// tell notes how a call of the store went. What one that did not succeed was for is tried
// again by whoever calls this.
func (d *Desk) tell(what string, err error) {
	d.trouble.mu.Lock()
	defer d.trouble.mu.Unlock()
	since, failing := d.trouble.since[what]
	switch {
	case err == nil && failing:
		delete(d.trouble.since, what)
		d.o.Log.Info("batches go on: the store can "+what+" again", slog.Duration("waited", d.now().Sub(since)))
	case err != nil:
		if d.o.Hooks.StoreFailed != nil {
			d.o.Hooks.StoreFailed()
		}
		if failing {
			return
		}
		if d.trouble.since == nil {
			d.trouble.since = make(map[string]time.Time)
		}
		d.trouble.since[what] = d.now()
		d.o.Log.Warn("batches wait for the store: it could not "+what, slog.Any("error", err))
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
	for _, since := range d.trouble.since {
		longest = max(longest, now.Sub(since), time.Microsecond)
	}
	return longest
}
