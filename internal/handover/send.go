package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

var errNotMade = errors.New("the provider has not made it")

// send waits until the group is whole and makes its batch.
func (g *group) send() bool {
	g.gather()
	lines := g.lines()
	if len(lines) == 0 || g.a.ctx.Err() != nil {
		return false
	}
	if g.deserted() {
		g.undone(lines, false)
		return false
	}
	g.at.Created, g.at.Lines = time.Now(), len(lines)
	if err := g.keep(func(ctx context.Context) error { return g.a.o.Store.HandOver(ctx, &g.at, lines) }); err != nil {
		g.a.o.Log.Warn("lines of a batch were not handed over: the store did not take them", slog.Any("error", err))
		g.undone(lines, false)
		return false
	}
	ref, err := g.p.create(g.a.ctx, &g.at, g.path, lines, g.body)
	switch maybe, ok := errors.AsType[unsure](err); {
	case ok:
		g.a.o.Log.Warn("it is not known whether a provider has made a batch: it is looked for", slog.Any("error", maybe))
		g.rest()
		return g.a.ctx.Err() == nil && g.identify()
	case err != nil:
		g.told(Refused, err)
		g.rest()
		g.takeBack(lines, false)
		return false
	}
	return g.named(ref)
}

// named keeps what the provider calls the batch.
func (g *group) named(ref string) bool {
	var ok bool
	err := g.keep(func(ctx context.Context) (err error) {
		ok, err = g.a.o.Store.HandedOver(ctx, g.at.ID, ref)
		return err
	})
	switch {
	case g.a.ctx.Err() != nil && err != nil: // who looks for it finds it
		return false
	case err != nil, !ok: // in the second case its lines are somebody else's by now
		g.told(Lost, err)
		_ = g.p.cancel(g.a.ctx, ref)
		if err != nil {
			g.takeBack(g.lines(), true)
		}
		return false
	}
	g.told(Made, nil)
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	g.at.Ref = ref
	for _, s := range g.seats {
		s.pieces = nil
	}
	g.a.running[g.at.ID] = g
	return true
}

// identify looks for the batch at the provider, which may have made it, until it is found
// or known not to be there.
func (g *group) identify() bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	not := map[string]bool{}
	until := g.until
	for wait := askFirst; ; wait = min(2*wait, askMost) {
		select {
		case <-g.a.ctx.Done():
			return false
		case <-timer.C:
		}
		ref, sure, err := g.look(not)
		switch {
		case g.a.ctx.Err() != nil:
			return false
		case ref != "":
			return g.named(ref)
		case err == nil && sure && time.Since(g.at.Created) > madeBy:
			g.told(Lost, errNotMade)
			if g.keep(func(ctx context.Context) error { return g.a.o.Store.NotMade(ctx, g.at.ID) }) == nil {
				g.undone(g.lines(), false)
				return false
			}
		case time.Now().After(until), g.deserted():
			g.told(Lost, ErrUndone)
			g.takeBack(g.lines(), true)
			return false
		}
		timer.Reset(wait)
	}
}

// look is find, but for batches that are known by another name.
func (g *group) look(not map[string]bool) (ref string, sure bool, err error) {
	var refs []string
	err = g.keep(func(ctx context.Context) (err error) {
		refs, err = g.a.o.Store.Refs(ctx, g.at.Provider, g.at.Created.Add(-skew))
		return err
	})
	if err != nil {
		return "", false, err
	}
	for _, r := range refs {
		not[r] = true
	}
	return g.p.find(g.a.ctx, &g.at, not)
}

// deserted reports whether none of the lines is wanted any more.
func (g *group) deserted() bool {
	select {
	case <-g.nobody:
		return true
	default:
		return false
	}
}

// body is a line's in one line; that of one who has left meanwhile stands for nothing.
func (g *group) body(n int) []byte {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	var b bytes.Buffer
	if s := g.seats[n]; s == nil || json.Compact(&b, s.pieces) != nil {
		return []byte("{}")
	}
	return b.Bytes()
}

// rest lets nothing be handed to the account for a while, as it has just failed.
func (g *group) rest() {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	for at, until := range g.a.resting {
		if time.Now().After(until) {
			delete(g.a.resting, at)
		}
	}
	g.a.resting[resting{g.at.Backend, g.at.Key}] = time.Now().Add(restFor)
}

// gather waits for a lull.
func (g *group) gather() {
	timer := time.NewTimer(lull)
	defer timer.Stop()
	for {
		select {
		case <-g.more:
			timer.Reset(lull)
			continue
		case <-g.full:
			return
		case <-g.a.ctx.Done():
			return
		case <-g.nobody:
		case <-timer.C:
		}
		if len(g.more) == 0 {
			g.a.mu.Lock()
			g.seal()
			g.a.mu.Unlock()
			return
		}
	}
}
