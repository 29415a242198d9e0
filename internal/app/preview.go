package app

import (
	"context"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/tabletop"
)

// Bounds of a preview.
const (
	previewRequests = 20_000 // that are played
	previewSources  = 500    // groups of requests that differ in no more than time and lengths
	previewDrain    = 2 * time.Minute
	previewWarmup   = 30 * time.Second // played before what is shown: what waits and runs when that begins
)

// previewLadder plays the last requests of a pool under virtual time, on the engine that
// serves: with a tier of the pool's ladder pinned, and without any. What the requests took
// is the ledger's; how fast backends are, and how many attempts at a time they bear, is
// fitted to the same entries. What a ladder has no part in is left out, and so are limits.
// Beside the two stands what the ledger has of the same requests, and whether the run
// without a tier agrees with it.
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
	asked, more, err := a.recent(ctx, to.Add(-last-previewWarmup), previewRequests)
	if err != nil {
		return admin.LadderPreview{}, err
	}
	stored, err := a.store.Load(ctx)
	if err != nil {
		return admin.LadderPreview{}, err
	}
	r := rehearsal{side: a.side(snapshot, stored), pool: pool, from: to.Add(-last - previewWarmup), begins: to.Add(-last), length: last, fits: map[sluice.BackendID]*fit{}, slots: a.slots()}
	r.read(asked)
	out := admin.LadderPreview{Pool: string(pool), Tier: tier, From: r.begins.UTC(), To: to.UTC(), Requests: r.played, Left: r.left}
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
	out.Ledger = r.past.figures(last)
	out.Agrees, out.Reasons = r.agrees(&out)
	return out, nil
}

// slots are the attempts at a time that backends have been found to bear.
func (a *App) slots() map[sluice.BackendID]int64 {
	out := map[sluice.BackendID]int64{}
	v := a.gate.Look(engine.Zoom{Levels: true}, viewRows)
	for i := range v.Pools {
		for _, b := range v.Pools[i].Backends {
			out[b.ID] = b.Concurrency
		}
	}
	return out
}
