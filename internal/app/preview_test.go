package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/dryrun"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/tabletop"
)

// recorded is what a pool of four slots, whose answers of 100 tokens take so long, leaves in
// the ledger of requests that come so often and wait for half a second at most.
func recorded(n int, every, takes time.Duration, streamed bool, change func(i int, e *ledger.Entry)) (asked []dryrun.Asked) {
	from := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	const patience = 500 * time.Millisecond
	free := make([]time.Duration, 4)
	for i := range n {
		at := time.Duration(i) * every
		e := ledger.Entry{
			Request: sluice.RequestID(fmt.Sprint("r", i)), At: from.Add(at), Tenant: "acme", Project: "default", Key: "k", Class: sluice.Standard, Model: "large", Final: true,
			OutputBound: 1000, EstimatedInput: 50,
		}
		slices.Sort(free)
		if wait := max(free[0]-at, 0); wait > patience {
			e.Outcome, e.Reason, e.Queued, e.Duration = sluice.Rejected, sluice.QueueTimeout, patience, patience
			e.Detail = []byte(`{"estimate":{"output":100}}`)
		} else {
			free[0] = at + wait + takes
			e.Attempt, e.Pool, e.Backend, e.Queued, e.Duration = 1, "main", "b", wait, wait+takes
			e.Usage = sluice.Usage{Input: 50, Output: 100}
			if streamed {
				e.FirstToken = wait + takes/4
			}
		}
		if change != nil {
			change(i, &e)
		}
		asked = append(asked, dryrun.Asked{Entry: e, Took: e.Usage})
	}
	return asked
}

func rehearsed(t *testing.T, asked []dryrun.Asked, capacity route.Capacity, tier ladder.Tier) admin.LadderPreview {
	t.Helper()
	table := &route.Table{
		Version: "t1", Models: map[sluice.ModelID]*route.Model{"large": {ID: "large", Pools: []sluice.PoolID{"main"}}},
		Pools: map[sluice.PoolID]*route.Pool{"main": {ID: "main", Ladder: ladder.Default(ladder.Watch), Queue: route.QueueBounds{MaxWait: 500 * time.Millisecond}, Backends: []*route.Backend{
			{ID: "b", Provider: "p", Dialect: "openai", Weight: 1, Price: &price.Row{}, Capacity: capacity},
		}}},
	}
	begins := asked[0].Entry.At
	r := rehearsal{
		side: dryrun.Side{Table: table, Principal: func(sluice.KeyID) (sluice.Principal, error) {
			return sluice.Principal{Tenant: "acme", Project: "default", Key: "k", Policy: &sluice.Policy{Weight: 1}}, nil
		}},
		pool: "main", from: begins.Add(-previewWarmup), begins: begins, length: asked[len(asked)-1].Entry.At.Sub(begins) + time.Millisecond, fits: map[sluice.BackendID]*fit{},
	}
	r.read(asked)
	out := admin.LadderPreview{Requests: r.played}
	var err error
	if out.Without, err = r.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if out.With, err = r.run(t.Context(), &tabletop.Pin{Pool: "main", Tier: tier, For: time.Hour}); err != nil {
		t.Fatal(err)
	}
	out.Ledger = r.past.figures(r.length)
	out.Agrees, out.Reasons = r.agrees(&out)
	return out
}

// What is played without a tier is what the ledger has, within the tolerance: of answers in
// one piece as of streams, whether all had a place or half were refused, and of backends
// that find for themselves how much they bear.
func TestPreviewAgreesWithTheLedger(t *testing.T) {
	four := route.Capacity{Concurrency: 4}
	for _, tt := range []struct {
		name     string
		every    time.Duration
		streamed bool
		capacity route.Capacity
		shed     bool
	}{
		{"in one piece", 10 * time.Millisecond, false, four, false},
		{"streamed", 10 * time.Millisecond, true, four, false},
		{"in one piece, twice too many", 5 * time.Millisecond, false, four, true},
		{"streamed, twice too many", 5 * time.Millisecond, true, four, true},
		{"of slots that it finds itself", 5 * time.Millisecond, true, route.Capacity{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := rehearsed(t, recorded(800, tt.every, 40*time.Millisecond, tt.streamed, nil), tt.capacity, ladder.None)
			if shed := p.Ledger.Shed > 100; !p.Agrees || shed != tt.shed || p.Requests != 800 || p.Ledger.Completed+p.Ledger.Shed != 800 {
				t.Errorf("played %d and %d refused, the ledger has %d and %d: %q", p.Without.Completed, p.Without.Shed, p.Ledger.Completed, p.Ledger.Shed, p.Reasons)
			}
		})
	}
}

// Where it does not agree it says so, and why that may be.
func TestPreviewSaysWhatItLeavesOut(t *testing.T) {
	p := rehearsed(t, recorded(800, 10*time.Millisecond, 40*time.Millisecond, false, func(i int, e *ledger.Entry) {
		switch i % 8 {
		case 1:
			e.Outcome, e.Reason = sluice.Cancelled, sluice.ClientGone
		case 2:
			*e = ledger.Entry{Request: e.Request, At: e.At, Key: "k", Model: "large", Final: true, Usage: sluice.Usage{Output: 100, Source: sluice.UsageCached}}
		case 3, 4: // refused by what is not played
			e.Attempt, e.Backend, e.Outcome, e.Reason, e.Tier = 0, "", sluice.Rejected, sluice.Degraded, ladder.Shed
		}
	}), route.Capacity{Concurrency: 4}, ladder.Clamp)
	if p.Agrees || p.Requests != 700 || p.Ledger.Shed != 200 || p.Ledger.Ended != 100 || p.Without.Shed != 0 {
		t.Errorf("it agrees: %v; ledger %+v, played %+v", p.Agrees, p.Ledger, p.Without)
	}
	told := strings.Join(p.Reasons, "\n")
	for _, want := range []string{"100 failed or were left", "200 felt the pool's ladder", "100 more had no need of a place"} {
		if !strings.Contains(told, want) {
			t.Errorf("it does not say %q: %s", want, told)
		}
	}
}

// Answers are counted as clamped that began, and not those that were refused.
func TestPreviewCountsWhatIsClamped(t *testing.T) {
	p := rehearsed(t, recorded(800, 5*time.Millisecond, 40*time.Millisecond, true, func(_ int, e *ledger.Entry) { e.OutputBound = 4000 }), route.Capacity{Concurrency: 4}, ladder.Clamp)
	if ran := p.With.Completed; p.With.Shed < 100 || p.With.Clamped != ran {
		t.Errorf("%d clamped, %d ran and %d were refused", p.With.Clamped, ran, p.With.Shed)
	}
}
