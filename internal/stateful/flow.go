package stateful

import (
	"context"
	"log/slog"
	"time"
)

// Start begins to write to the store and to read what others have written.
func (k *Keeper) Start(ctx context.Context) {
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.done.Go(func() { k.run(ctx) })
}

// Close ends it. What the store has not been told by then it is told a last time.
func (k *Keeper) Close() {
	if k.stop == nil {
		return
	}
	k.stop()
	k.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastWrite)
	defer cancel()
	if !k.flush(ctx) {
		k.o.Log.Warn("ids of what providers keep are not in the store: requests that refer to them are refused after the restart", slog.Int("ids", k.Stats().Pending))
	}
}

// run writes when there is something, reads every Refresh and when somebody waits, and
// forgets what is over.
func (k *Keeper) run(ctx context.Context) {
	read, sweep := time.NewTimer(k.o.Refresh), time.NewTimer(sweepEach)
	defer read.Stop()
	defer sweep.Stop()
	failing := false
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
			if again != nil {
				continue // a failing store is tried again when that is due
			}
		case <-again:
		case <-k.miss:
			k.refresh(ctx)
			pause(ctx, missEach)
			continue
		case <-read.C:
			if k.o.Shared() {
				k.refresh(ctx)
			}
			read.Reset(k.o.Refresh)
			continue
		case <-sweep.C:
			k.sweep(ctx)
			sweep.Reset(sweepEach)
			continue
		}
		again = nil
		if ok := k.flush(ctx); !ok {
			if again = time.After(retry); !failing && ctx.Err() == nil {
				k.o.Log.Warn("the store does not take the ids of what providers keep: it is tried again")
			}
			failing = true
			continue
		}
		failing = false
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// flush tells the store what is pending. It reports whether all was taken.
func (k *Keeper) flush(ctx context.Context) bool {
	for {
		k.waiting.Lock()
		lost := k.lost
		ops := k.pending[:min(len(k.pending), batch)]
		k.waiting.Unlock()
		if len(ops) == 0 {
			return true
		}
		if err := k.o.Store.WriteState(ctx, time.Now(), ops); err != nil {
			k.o.Log.Debug("the store does not take ids of what providers keep", slog.Any("error", err))
			return false
		}
		k.waiting.Lock()
		// What was lost meanwhile was the oldest, which has been written.
		done := max(0, len(ops)-int(k.lost-lost))
		k.lost -= int64(len(ops) - done)
		if k.pending = k.pending[done:]; len(k.pending) == 0 {
			k.pending = nil
		}
		k.waiting.Unlock()
	}
}

// refresh reads what others have written, and tells those who wait for it.
func (k *Keeper) refresh(ctx context.Context) {
	k.waiting.Lock()
	read := k.next
	k.next = make(chan struct{})
	k.waiting.Unlock()
	if err := k.Load(ctx, k.o.Store); err != nil && ctx.Err() == nil {
		k.o.Log.Debug("what other replicas know of what providers keep could not be read", slog.Any("error", err))
	}
	close(read)
}

// sweep forgets what is over, here and in the store.
func (k *Keeper) sweep(ctx context.Context) {
	now := time.Now()
	k.mu.Lock()
	k.book.sweep(now)
	k.mu.Unlock()
	if err := k.o.Store.ForgetState(ctx, now); err != nil && ctx.Err() == nil {
		k.o.Log.Debug("the store could not forget ids that are over", slog.Any("error", err))
	}
}
