package jobs

import (
	"context"
	"sync"

	"sluice"
)

// turns gives a few places to tenants in turn, and within a tenant to who came first. Who
// has a place does one slice of work there.
//
// Invariant: while somebody waits, no place is free.
type turns struct {
	mu   sync.Mutex
	free int
	wait map[sluice.TenantID][]chan struct{} // who waits; none is empty
	ring []sluice.TenantID                   // those of wait, by whose turn it is
}

func newTurns(places int) *turns {
	return &turns{free: places, wait: make(map[sluice.TenantID][]chan struct{})}
}

// enter waits for a place. An error is ctx's, and there is no place then.
func (t *turns) enter(ctx context.Context, id sluice.TenantID) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	c := t.join(id)
	t.mu.Unlock()
	return t.await(ctx, id, c)
}

// again gives the place to whose turn it is, and waits for the next. It joins those who
// wait before the place is given: else a tenant with one job would be behind one with many
// each time. An error is as enter's.
func (t *turns) again(ctx context.Context, id sluice.TenantID) error {
	t.mu.Lock()
	c := t.join(id)
	t.pass()
	t.mu.Unlock()
	return t.await(ctx, id, c)
}

// leave gives the place back.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// join waits behind the tenant's own; the tenant behind all others if it did not wait.
// REQUIRES: mu is held.
func (t *turns) join(id sluice.TenantID) chan struct{} {
	c := make(chan struct{})
	if len(t.wait[id]) == 0 {
		t.ring = append(t.ring, id)
	}
	t.wait[id] = append(t.wait[id], c)
	return c
}

// pass gives a place to the first of the tenant whose turn it is, which is the last to
// have the next. REQUIRES: mu is held.
func (t *turns) pass() {
	if len(t.ring) == 0 {
		t.free++
		return
	}
	id := t.ring[0]
	t.ring = t.ring[1:]
	close(t.wait[id][0])
	if t.wait[id] = t.wait[id][1:]; len(t.wait[id]) == 0 {
		delete(t.wait, id)
		return
	}
	t.ring = append(t.ring, id)
}

// await waits until c is closed. Who leaves before gives back what it may have been given.
func (t *turns) await(ctx context.Context, id sluice.TenantID, c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.quit(id, c) {
		t.pass()
	}
	return ctx.Err()
}

// quit takes c out of those that wait; false if it has its place. REQUIRES: mu is held.
func (t *turns) quit(id sluice.TenantID, c chan struct{}) bool {
	for i, other := range t.wait[id] {
		if other != c {
			continue
		}
		if t.wait[id] = append(t.wait[id][:i:i], t.wait[id][i+1:]...); len(t.wait[id]) > 0 {
			return true
		}
		delete(t.wait, id)
		for k, tenant := range t.ring {
			if tenant == id {
				t.ring = append(t.ring[:k:k], t.ring[k+1:]...)
				break
			}
		}
		return true
	}
	return false
}
