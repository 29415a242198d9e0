package jobs

import (
	"context"
	"log/slog"
	"time"
)

// The writing of results.
const (
	postGroup  = 128
	postBytes  = 8 << 20
	postLinger = 50 * time.Millisecond // that the first of a group waits for others
	postRetry  = time.Second
	lastPost   = 5 * time.Second // that Close gives the store
)

// done is a line that has ended here and has not been posted.
type done struct {
	w    *work
	line Line
	out  outcome
}

// post writes what ended, in groups, until ended is closed and everything is written or
// the store has had its last chance. A line keeps its place until it is posted, so what
// waits here is bounded.
func (d *Desk) post(ctx context.Context, ended <-chan done) {
	for first := range ended {
		group := d.gather(first, ended)
		for len(group) > 0 {
			err := d.postGroup(ctx, &group)
			d.asked(ctx, "take results", err)
			if err != nil && !sleep(ctx, postRetry) {
				break // they are run again by others
			}
		}
		for _, e := range group {
			d.crew.end(e.w, e.line, &e.out, d.bounds(), d.now())
		}
	}
}

// gather waits a moment for what ends together, if anything else runs that could.
func (d *Desk) gather(first done, ended <-chan done) []done {
	group, bytes := []done{first}, size(&first)
	linger := time.NewTimer(postLinger)
	defer linger.Stop()
	for len(group) < postGroup && bytes < postBytes && len(group) < d.crew.begun() {
		select {
		case e, ok := <-ended:
			if !ok {
				return group
			}
			group, bytes = append(group, e), bytes+size(&e)
		case <-linger.C:
			return group
		}
	}
	return group
}

func size(e *done) int {
	if e.out.Result == nil {
		return 0
	}
	return len(e.out.Result.Body)
}

// postGroup posts the lines of the first job in the group and takes them out of it.
func (d *Desk) postGroup(ctx context.Context, group *[]done) error {
	w := (*group)[0].w
	var mine, rest []done
	var posts []Posting
	for _, e := range *group {
		if e.w == w {
			mine, posts = append(mine, e), append(posts, e.out.Posting)
		} else {
			rest = append(rest, e)
		}
	}
	stale, err := d.o.Store.Post(ctx, w.id, d.now(), posts)
	if err != nil {
		return err
	}
	*group = rest
	b, now := d.bounds(), d.now()
	void := make(map[int]bool, len(stale))
	for _, i := range stale {
		void[i] = true
	}
	for i := range mine {
		d.told(w, &mine[i].out, void[i])
		d.crew.end(w, mine[i].line, &mine[i].out, b, now)
	}
	if w.kind == Async { // somebody may be waiting for it
		d.moved.Store(true)
	}
	d.hurry()
	return nil
}

// told tells the hooks how a line ended.
func (d *Desk) told(w *work, out *outcome, stale bool) {
	h := &d.o.Hooks
	switch {
	case stale:
		d.o.Log.Warn("a line of a batch was answered twice: its lease had been lost, and this answer is voided",
			slog.String("job", string(w.id)), slog.Int("line", out.Line))
		if h.Stale != nil {
			h.Stale()
		}
	case out.refused != nil:
		if h.Deferred != nil {
			h.Deferred(out.refused.Reason)
		}
	case out.Result != nil && h.Line != nil:
		h.Line(w.kind, out.Result.State)
	}
}

// sleep waits, and reports whether ctx is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
