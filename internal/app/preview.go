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
	"sluice/internal/ladder"
	"sluice/internal/route"
	"sluice/internal/tabletop"
)

// Bounds of a preview.
const (
	previewRequests = 20_000 // that are played
	previewSources  = 500    // groups of requests that differ in no more than time and lengths
	previewDrain    = 2 * time.Minute
)

// What is taken of a backend of which the past says nothing.
const (
	previewLatency   = 300 * time.Millisecond
	previewTokenTime = 20 * time.Millisecond
)

// previewLadder plays the last requests of a pool under virtual time, on the engine that
// serves: with a tier of the pool's ladder pinned, and without any. What the requests took
// is the ledger's; how fast backends are is fitted to the same entries. What callers' own
// limits refused is left out, and so are limits.
func (a *App) previewLadder(ctx context.Context, pool sluice.PoolID, tier int, last time.Duration) (admin.LadderPreview, error) {
	a.reloading.Lock()
	snapshot := a.applied.snapshot
	a.reloading.Unlock()
	p := snapshot.Table.Pools[pool]
	switch {
	case p == nil:
		return admin.LadderPreview{}, &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no pool %q", pool), Hint: "sluice status lists them"}
	case p.Ladder.Mode == ladder.Off:
		return admin.LadderPreview{}, sluice.Invalid("", "the ladder of pool %s is off", pool)
	}
	to := time.Now()
	asked, more, err := a.recent(ctx, to.Add(-last), previewRequests)
	if err != nil {
		return admin.LadderPreview{}, err
	}
	stored, err := a.store.Load(ctx)
	if err != nil {
		return admin.LadderPreview{}, err
	}
	r := rehearsal{side: a.side(snapshot, stored), pool: pool, from: to.Add(-last), length: last, fits: map[sluice.BackendID]*fit{}}
	r.read(asked)
	out := admin.LadderPreview{Pool: string(pool), Tier: tier, From: r.from.UTC(), To: to.UTC(), Requests: r.played, Left: r.left}
	if more {
		out.Left++
	}
	if r.played == 0 {
		return out, &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("the ledger has no requests of pool %s in the last %v", pool, last), Hint: "play more of the past with --last"}
	}
	for _, run := range []struct {
		out *admin.PreviewRun
		pin *tabletop.Pin
	}{{&out.Without, nil}, {&out.With, &tabletop.Pin{Pool: pool, Tier: ladder.Tier(tier), For: ladder.MaxPin}}} {
		if *run.out, err = r.run(ctx, run.pin); err != nil {
			return admin.LadderPreview{}, err
		}
	}
	return out, nil
}

// rehearsal is the past as the tabletop plays it.
type rehearsal struct {
	side   dryrun.Side
	pool   sluice.PoolID
	from   time.Time
	length time.Duration

	sources    []tabletop.Source
	principals []sluice.Principal
	models     map[sluice.ModelID]*route.Model
	played     int64
	left       int64
	fits       map[sluice.BackendID]*fit
}

// fit is what entries say of how fast a backend is.
type fit struct{ first, token []time.Duration }

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
			Estimate struct {
				Output sluice.Tokens `json:"output"`
			} `json:"estimate"`
		}
		_ = json.Unmarshal(e.Detail, &facts) // of another version: what is known is played
		g := group{e.Key, cmp.Or(facts.Asked, e.Model), e.Class, e.Task, e.OutputBound}
		m := r.side.Table.Models[g.model]
		if m == nil || !slices.Contains(m.Pools, r.pool) || e.Reason == sluice.RateLimited || e.Reason == sluice.BudgetSpent || e.Reason == sluice.BudgetHeld {
			continue
		}
		r.learn(e.Backend, e.FirstToken-e.Queued, e.Duration-e.FirstToken, took.OutputTotal())
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
		rows := &r.sources[k].Arrivals.Rows
		*rows = append(*rows, tabletop.Row{At: max(e.At.Sub(r.from), 0), Input: max(in, 1), Output: max(out, 1)})
		r.played++
	}
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

func (r *rehearsal) learn(b sluice.BackendID, first, rest time.Duration, output sluice.Tokens) {
	if b == "" || first <= 0 || output < 2 || rest <= 0 {
		return
	}
	f := r.fits[b]
	if f == nil {
		f = &fit{}
		r.fits[b] = f
	}
	f.first, f.token = append(f.first, first), append(f.token, rest/time.Duration(output-1))
}

// median of what was seen, or otherwise.
func median(seen []time.Duration, otherwise time.Duration) time.Duration {
	if len(seen) == 0 {
		return otherwise
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}

// table is the routing table of the models that are played, without limits; with a pin
// the ladder of its pool can be pinned, and no other is there.
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
			t.Pools[p] = &pool
		}
	}
	return &t
}

// machines play the backends as the entries say that they are.
func (r *rehearsal) machines(t *route.Table) (out []tabletop.Machine) {
	var all fit
	for _, f := range r.fits {
		all.first, all.token = append(all.first, f.first...), append(all.token, f.token...)
	}
	latency, token := median(all.first, previewLatency), median(all.token, previewTokenTime)
	for _, p := range t.Pools {
		for _, b := range p.Backends {
			f := r.fits[b.ID]
			if f == nil {
				f = &fit{}
			}
			out = append(out, tabletop.Steady(b.ID, median(f.first, latency), median(f.token, token)))
		}
	}
	return out
}

// run plays the past once.
func (r *rehearsal) run(ctx context.Context, pin *tabletop.Pin) (out admin.PreviewRun, err error) {
	t := r.table(pin)
	s := tabletop.Scenario{
		Name: "preview", Seed: 1, Length: r.length, Drain: previewDrain, Machines: r.machines(t), Sources: r.sources,
		Policies: []tabletop.Variant{{Name: "sluice", Table: t, Principals: r.principals}},
	}
	if pin != nil {
		s.Events = []tabletop.Event{{Pin: pin}}
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
	for _, u := range res.Ladders {
		out.Clamped, out.ClampedTokens = out.Clamped+u.Done["clamp"], out.ClampedTokens+int64(u.ClampedTokens)
	}
	out.Classes = []admin.PreviewClass{}
	for i := range ph.Classes {
		c := &ph.Classes[i]
		out.Classes = append(out.Classes, admin.PreviewClass{
			Class: c.Name, Requests: c.Requests, Completed: c.Completed, Shed: c.Rejected, Waiting: c.Unfinished,
			WaitP50Seconds: c.Queue.P50.Seconds(), WaitP99Seconds: c.Queue.P99.Seconds(),
		})
	}
	return out, nil
}
