package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/dryrun"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/tabletop"
)

// rehearsal is the past as the tabletop plays it.
type rehearsal struct {
	side   dryrun.Side
	pool   sluice.PoolID
	from   time.Time     // what is played begins
	begins time.Time     // what is shown does
	length time.Duration // of that

	sources    []tabletop.Source
	principals []sluice.Principal
	models     map[sluice.ModelID]*route.Model
	played     int64 // of what is shown
	left       int64
	fits       map[sluice.BackendID]*fit
	slots      map[sluice.BackendID]int64 // attempts at a time that each has been found to bear
	past       past
}

// group is what requests of one source have in common.
type group struct {
	key   sluice.KeyID
	model sluice.ModelID
	class sluice.Class
	task  string
	bound sluice.Tokens
}

// read turns requests into sources, and entries into fits.
func (r *rehearsal) read(asked []dryrun.Asked) {
	r.models = map[sluice.ModelID]*route.Model{}
	at := map[group]int{}
	for i := range asked {
		e, took := &asked[i].Entry, &asked[i].Took
		var facts struct {
			Asked    sluice.ModelID `json:"asked_model"`
			Degraded string         `json:"degraded"`
			Clamped  sluice.Tokens  `json:"clamped_to"`
			Estimate struct {
				Output sluice.Tokens `json:"output"`
			} `json:"estimate"`
		}
		_ = json.Unmarshal(e.Detail, &facts) // of another version: what is known is played
		g := group{e.Key, cmp.Or(facts.Asked, e.Model), e.Class, e.Task, e.OutputBound}
		m := r.side.Table.Models[g.model]
		if m == nil || !slices.Contains(m.Pools, r.pool) {
			continue
		}
		shown := !e.At.Before(r.begins)
		if !scarce(e) {
			if shown {
				r.past.aside++
			}
			continue
		}
		r.learn(e, took.OutputTotal())
		k, ok := at[g]
		if !ok {
			if k, ok = r.source(g, m, e.Tenant, e.Project); !ok {
				r.left++
				continue
			}
			at[g] = k
		}
		in, out := took.InputTotal(), took.OutputTotal()
		if e.Outcome != sluice.Completed {
			in, out = max(in, e.EstimatedInput), max(out, facts.Estimate.Output)
		}
		s := &r.sources[k]
		s.Arrivals.Rows = append(s.Arrivals.Rows, tabletop.Row{At: max(e.At.Sub(r.from), 0), Input: max(in, 1), Output: max(out, 1)})
		if most := e.Queued + time.Millisecond; e.Attempt <= 1 && most > r.bears(k) { // it was to be borne, so that it was
			s.Client.MaxWait = most
		}
		if shown {
			r.played++
			r.past.add(e)
			if facts.Degraded != "" {
				r.past.clamped, r.past.tokens = r.past.clamped+1, r.past.tokens+e.OutputBound-facts.Clamped
			}
		}
	}
}

// scarce reports whether an entry is of a request that asked for a place: not one that
// needed none, as of a cache, or that was refused for what no ladder has a part in.
func scarce(e *ledger.Entry) bool {
	if e.Attempt > 0 {
		return true
	}
	switch e.Reason {
	case sluice.QueueFull, sluice.QueueTimeout, sluice.DeadlineUnmet, sluice.Degraded, sluice.NoBackend, sluice.ClientGone:
		return true
	}
	return false
}

// bears is how long requests of a source may wait, as far as is known.
func (r *rehearsal) bears(k int) time.Duration {
	if d := r.sources[k].Client.MaxWait; d > 0 {
		return d
	}
	if d := time.Duration(r.principals[k].Policy.MaxWait); d > 0 {
		return d
	}
	return cmp.Or(r.side.Table.Pools[r.pool].Queue.MaxWait, engine.DefaultMaxWait)
}

// source adds one for a group.
func (r *rehearsal) source(g group, m *route.Model, tenant sluice.TenantID, project sluice.ProjectID) (int, bool) {
	if len(r.sources) == previewSources {
		return 0, false
	}
	who, err := r.side.Principal(g.key)
	if err != nil {
		who = sluice.Principal{Tenant: tenant, Project: project, Key: g.key}
	}
	policy := sluice.Policy{Weight: 1}
	if p := who.Policy; p != nil {
		policy = sluice.Policy{Weight: p.Weight, MaxWait: p.MaxWait, Degrade: p.Degrade, Models: p.Models}
	}
	who.Policy = &policy
	r.models[g.model] = m
	if smaller := r.side.Table.Models[policy.Degrade]; smaller != nil {
		r.models[policy.Degrade] = smaller
	}
	r.sources = append(r.sources, tabletop.Source{
		Name: fmt.Sprintf("%s-%d", who.Tenant, len(r.sources)), Tenant: who.Tenant, Project: who.Project, Model: g.model, Dialect: r.dialect(m), Class: g.class, Task: g.task,
		Arrivals: tabletop.Arrivals{Process: tabletop.Trace, Rate: 1}, Client: tabletop.Client{Bound: g.bound},
	})
	r.principals = append(r.principals, who)
	return len(r.sources) - 1, true
}

// dialect is what the pool's backends speak: what requests are played in.
func (r *rehearsal) dialect(m *route.Model) string {
	for _, id := range m.Pools {
		for _, b := range r.side.Table.Pools[id].Backends {
			return b.Dialect
		}
	}
	return ""
}

// table is the routing table of the models that are played, without limits; with a pin
// the ladder of its pool can be pinned, and no other is there. Backends bear as many
// attempts at a time as they have been found to, or did at once: the tabletop's never
// slow down, so that it would find more.
func (r *rehearsal) table(pin *tabletop.Pin) *route.Table {
	t := *r.side.Table
	t.Fleet, t.Models, t.Pools = nil, map[sluice.ModelID]*route.Model{}, map[sluice.PoolID]*route.Pool{}
	for id, m := range r.models {
		bare := *m
		bare.Limits, bare.Shadows = nil, nil
		t.Models[id] = &bare
		for _, p := range slices.Concat(m.Pools, m.Fallback) {
			pool := *r.side.Table.Pools[p]
			if pool.Ladder.Mode = ladder.Off; pin != nil && p == pin.Pool {
				pool.Ladder.Mode = ladder.Watch
			}
			pool.Backends = slices.Clone(pool.Backends)
			for i, b := range pool.Backends {
				if c := b.Capacity; c.Concurrency == 0 || c.Adaptive {
					fixed := *b
					fixed.Capacity.Concurrency = max(r.slots[b.ID], r.fits[b.ID].most(), 1)
					fixed.Capacity.Adaptive = false
					pool.Backends[i] = &fixed
				}
			}
			t.Pools[p] = &pool
		}
	}
	return &t
}

// run plays the past once.
func (r *rehearsal) run(ctx context.Context, pin *tabletop.Pin) (out admin.PreviewRun, err error) {
	t := r.table(pin)
	warm := r.begins.Sub(r.from)
	s := tabletop.Scenario{
		Name: "preview", Seed: 1, Warmup: warm, Length: warm + r.length, Drain: previewDrain, Machines: r.machines(t), Sources: r.sources,
		Policies: []tabletop.Variant{{Name: "sluice", Table: t, Principals: r.principals}},
	}
	if pin != nil { // until then nothing is, and it is not to count what it would do
		s.Events = []tabletop.Event{{Pin: &tabletop.Pin{Pool: pin.Pool, Tier: ladder.None, For: ladder.MaxPin}}, {At: warm, Pin: pin}}
	}
	res, err := s.Run(ctx, tabletop.Options{})
	if err != nil {
		return out, fmt.Errorf("play the last requests: %w", err)
	}
	if res.Partial {
		return out, context.Cause(ctx)
	}
	ph := &res.Phases[0]
	out.GoodputPerSecond, out.Completed, out.Shed, out.Waiting = ph.All.Goodput, ph.All.Completed, ph.All.Rejected, ph.All.Unfinished
	out.Ended = ph.All.Failed + ph.All.Cancelled
	for _, u := range res.Ladders {
		out.Clamped, out.ClampedTokens = out.Clamped+u.Done["clamp"], out.ClampedTokens+int64(u.ClampedTokens)
	}
	out.Classes = []admin.PreviewClass{}
	for i := range ph.Classes {
		c := &ph.Classes[i]
		out.Classes = append(out.Classes, admin.PreviewClass{
			Class: c.Name, Requests: c.Requests, Completed: c.Completed, Shed: c.Rejected, Ended: c.Failed + c.Cancelled, Waiting: c.Unfinished,
			WaitP50Seconds: c.Queue.P50.Seconds(), WaitP99Seconds: c.Queue.P99.Seconds(),
		})
	}
	return out, nil
}
