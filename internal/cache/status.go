package cache

import (
	"context"
	"maps"
	"slices"
	"strings"

	"sluice"
)

// Status is what is kept of an owner, and what came of it since the start.
type Status struct {
	Level
	Counts
}

// Status lists the owners that there is something to tell of, by name. The counts of
// tenants that share are those of all of them together.
func (c *Cache) Status(ctx context.Context) ([]Status, error) {
	levels, err := c.o.Store.Levels(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[string]*Status)
	at := func(name string) *Status {
		if by[name] == nil {
			by[name] = &Status{Level: Level{Owner: name}}
		}
		return by[name]
	}
	for _, l := range levels {
		at(l.Owner).Level = l
	}
	for tenant, n := range c.counts.all() {
		at(c.owner(tenant).String()).add(n)
	}
	out := make([]Status, 0, len(by))
	for _, s := range by {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Status) int { return strings.Compare(a.Owner, b.Owner) })
	return out, nil
}

// Purge forgets what is kept of a tenant, and of those it shares with, or of all with an
// empty one. It returns how many entries that were. What is on its way then
// is not kept.
func (c *Cache) Purge(ctx context.Context, t sluice.TenantID) (int, error) {
	c.purges.Add(1)
	scope := ""
	if t != "" {
		scope = c.owner(t).scope(c.o.Secret)
	}
	return c.o.Store.Purge(ctx, scope)
}

func (n *Counts) add(m Counts) {
	n.Hits += m.Hits
	n.Misses += m.Misses
	n.Bypasses += m.Bypasses
	n.Coalesced += m.Coalesced
	n.Stored += m.Stored
	n.Tokens += m.Tokens
	n.Saved += m.Saved
}

// all is a copy.
func (c *counts) all() map[sluice.TenantID]Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[sluice.TenantID]Counts, len(c.of))
	for t, n := range maps.All(c.of) {
		out[t] = *n
	}
	return out
}
