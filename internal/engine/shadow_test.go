package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// What the shadows of the oracle's models may take.
const (
	copiesAtOnce = 2
	copyBudget   = sluice.Nano(40_000_000) // per hour
)

// withShadows lets a table's models copy requests: to a pool that serves the other
// model too, and, where there is one, to one that serves nothing else.
func withShadows(t *route.Table) *route.Table {
	limits := []sluice.Limit{{Dimension: sluice.Concurrency, Amount: copiesAtOnce}, {Dimension: sluice.Spend, Window: sluice.PerHour, Amount: int64(copyBudget)}}
	for _, m := range t.Models {
		for _, p := range []sluice.PoolID{"a", "b", "next"} {
			if t.Pools[p] != nil {
				m.Shadows = append(m.Shadows, route.Shadow{Pool: p, Share: route.CanaryParts, Limits: limits})
			}
		}
	}
	return t
}

// copies is what the log says of shadows, beside an oracle's requests.
type copies struct {
	o      *oracle
	open   map[sluice.RequestID]*seenCopy
	ended  []sluice.RequestID
	posted map[string]map[int64]sluice.Nano // by account and start of the hour

	sent, displaced int
}

type seenCopy struct {
	account string
	backend sluice.BackendID // empty when it has lost its place
	hour    int64
	held    sluice.Nano
	active  time.Time
}

func newCopies(o *oracle) *copies {
	return &copies{o: o, open: map[sluice.RequestID]*seenCopy{}, posted: map[string]map[int64]sluice.Nano{}}
}

// step does something to shadows.
func (c *copies) step() {
	t, o := c.o.t, c.o
	op := rapid.SampledFrom([]string{"copy", "copy", "settle", "cancel", "again", "progress"}).Draw(t, "copies")
	if op == "copy" {
		c.copy()
		return
	}
	if op == "again" && len(c.ended) > 0 {
		id := rapid.SampledFrom(c.ended).Draw(t, "ended copy")
		if err := o.eng.Settle(o.now, id, engine.Actual{Cost: sluice.Dollar}); !errors.Is(err, engine.ErrSettled) {
			t.Fatalf("%s: settled twice: %v", id, err)
		}
	}
	if len(c.open) == 0 {
		return
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(c.open))).Draw(t, "which copy")
	r := c.open[id]
	switch op {
	case "progress":
		if d := o.eng.Progress(o.now, id, sluice.Usage{}); d.Stop != (r.backend == "") {
			t.Fatalf("%s: progress says stop=%v on %q", id, d.Stop, r.backend)
		}
		if r.backend != "" {
			r.active = o.latest()
		}
	case "settle":
		c.settle(id, nil)
	case "cancel":
		if !o.eng.Cancel(o.now, id, sluice.ShuttingDown) {
			t.Fatalf("%s: open and cannot be cancelled", id)
		}
		c.end(id)
	}
}

func (c *copies) copy() {
	t, o := c.o.t, c.o
	model := rapid.SampledFrom([]sluice.ModelID{"m", "n"}).Draw(t, "of model")
	shadow := &route.Shadow{Pool: rapid.SampledFrom([]sluice.PoolID{"a", "b", "next"}).Draw(t, "to pool"), Limits: []sluice.Limit{
		{Dimension: sluice.Concurrency, Amount: copiesAtOnce}, {Dimension: sluice.Spend, Window: sluice.PerHour, Amount: int64(copyBudget)},
	}}
	o.next++
	call := engine.Call{
		ID: sluice.RequestID(fmt.Sprint("s", o.next)), Dialect: "openai", Model: model, Shadow: shadow, Streaming: true,
		Principal: sluice.Principal{Tenant: o.keys[0].principal.Tenant, Policy: &sluice.Policy{HardSpend: true}},
		Work:      sluice.Work{Input: sluice.Tokens(rapid.IntRange(1, 1200).Draw(t, "in")), OutputBound: sluice.Tokens(rapid.IntRange(1, 3000).Draw(t, "out"))},
	}
	call.Work.InputBound, call.Work.OutputHold = call.Work.Input, min(call.Work.OutputBound, 300)
	waited := o.waits(shadow.Pool)
	g, skip := o.eng.Copy(o.now, call)
	if skip != route.Sent {
		return
	}
	c.sent++
	switch {
	case g.Pool != shadow.Pool || g.Backend == nil || g.Fallback || g.Canary || g.OutputBound != call.Work.OutputBound:
		t.Fatalf("%s: %+v", call.ID, g)
	case g.HedgeAfter > 0:
		t.Fatalf("%s: a copy may be hedged", call.ID)
	case waited:
		t.Fatalf("%s: got a place in %s, for which somebody waits", call.ID, g.Pool)
	case g.HeldSpend < worst(g, call.Work.Input):
		t.Fatalf("%s: holds %v on %s", call.ID, g.HeldSpend, g.Backend.ID)
	}
	c.open[call.ID] = &seenCopy{
		account: string(model) + "/" + string(g.Pool), backend: g.Backend.ID, hour: o.latest().Truncate(time.Hour).Unix(), held: g.HeldSpend, active: o.latest(),
	}
}

// worst is the most that a backend may bill for a grant.
func worst(g engine.Grant, input sluice.Tokens) sluice.Nano {
	rates := g.Backend.Price.Rates
	return sluice.Nano((int64(input)*int64(rates.Input) + int64(g.OutputBound)*int64(rates.Output)) / 1_000_000)
}

// latest is the moment that the engine goes by: it never goes back.
func (o *oracle) latest() time.Time { return o.eng.Dump(o.now, engine.Zoom{}, 0).At }

// waits reports whether anything waits in a pool that its tenant's limits let run.
func (o *oracle) waits(p sluice.PoolID) bool {
	running := map[sluice.TenantID]int{}
	for _, r := range o.open {
		if r.running {
			running[r.key.principal.Tenant]++
		}
	}
	for _, r := range o.open {
		if !r.running && !r.idle && r.pool == p && running[r.key.principal.Tenant] < r.key.slots && o.calm {
			return true
		}
	}
	return false
}

// granted takes what Advance says of copies; it reports whether it was of one.
func (c *copies) granted(g engine.Grant) bool {
	r := c.open[g.ID]
	if r == nil {
		return false
	}
	t := c.o.t
	switch {
	case g.Err == nil:
		t.Fatalf("%s: granted another place", g.ID)
	case g.Err.Reason == sluice.Displaced:
		if r.backend == "" {
			t.Fatalf("%s: displaced twice", g.ID)
		}
		r.backend, r.active = "", c.o.latest()
		c.displaced++
	case g.Err.Reason == sluice.HoldExpired:
		if idle := c.o.latest().Sub(r.active); idle < ttl {
			t.Fatalf("%s: expired after %v without activity", g.ID, idle)
		}
		c.settle(g.ID, engine.ErrLate)
	default:
		t.Fatalf("%s: %v", g.ID, g.Err)
	}
	return true
}

func (c *copies) settle(id sluice.RequestID, want error) {
	r, o := c.open[id], c.o
	cost := sluice.Nano(rapid.Int64Range(0, int64(r.held)).Draw(o.t, "copy's cost"))
	if err := o.eng.Settle(o.now, id, engine.Actual{Cost: cost, Usage: sluice.Usage{Input: 1}}); !errors.Is(err, want) {
		o.t.Fatalf("%s: settled: %v", id, err)
	}
	if c.posted[r.account] == nil {
		c.posted[r.account] = map[int64]sluice.Nano{}
	}
	c.posted[r.account][r.hour] += cost
	c.end(id)
}

func (c *copies) end(id sluice.RequestID) {
	delete(c.open, id)
	c.ended = append(c.ended, id)
}

// on is how many copies run on each backend.
func (c *copies) on() map[sluice.BackendID]int64 {
	n := map[sluice.BackendID]int64{}
	for _, r := range c.open {
		if r.backend != "" {
			n[r.backend]++
		}
	}
	return n
}

// check: the account of each shadow has what its copies hold and were charged, within
// its bounds, and nothing else.
func (c *copies) check(v engine.View) {
	t, hour := c.o.t, v.At.Truncate(time.Hour).Unix()
	running, held := map[string]int64{}, map[string]sluice.Nano{}
	for _, r := range c.open {
		if r.backend != "" {
			running[r.account]++
		}
		if r.hour == hour {
			held[r.account] += r.held
		}
	}
	for account, n := range running {
		if n > copiesAtOnce {
			t.Fatalf("%s: %d copies run", account, n)
		}
	}
	for account := range held {
		if sum := held[account] + c.posted[account][hour]; sum > copyBudget {
			t.Fatalf("%s: posted and held %v of %v", account, sum, copyBudget)
		}
	}
	for _, a := range v.Top {
		for _, k := range a.Counters {
			switch {
			case a.Scope != sluice.ScopeShadow:
			case k.Limit.Dimension == sluice.Concurrency && k.Held != running[a.ID],
				k.Limit.Dimension == sluice.Spend && (sluice.Nano(k.Used) != c.posted[a.ID][hour] || sluice.Nano(k.Held) != held[a.ID]):
				t.Fatalf("%s: %+v, the log says %d running, %v held, %v posted", a.ID, k, running[a.ID], held[a.ID], c.posted[a.ID][hour])
			}
		}
	}
}

func (c *copies) finish() {
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		c.settle(id, nil)
	}
}

// TestCopiesChangeNothing: two engines are told the same of requests, and one of
// copies too. Where these go to a pool of their own, all that requests are answered is
// the same, to the last figure.
func TestCopiesChangeNothing(t *testing.T) {
	sent := 0
	table := withShadows(parseTable(nil, `pool a queue=20
backend a1 pool=a conc=2 price=1/10
backend a2 pool=a conc=1 price=2/8
pool next
backend n1 pool=next conc=2 price=1/1
model m pools=a`))
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 1, 120).Draw(t, "script")
		plain, copied := runScript(table, seed, false), runScript(table, seed, true)
		sent += copied.sent
		if len(plain.log) != len(copied.log) {
			t.Fatalf("%d answers without copies, %d with them", len(plain.log), len(copied.log))
		}
		for i := range plain.log {
			if plain.log[i] != copied.log[i] {
				t.Fatalf("answer %d\nwithout copies: %s\nwith them:      %s", i, plain.log[i], copied.log[i])
			}
		}
	})
	if sent == 0 {
		t.Error("no copy was sent: nothing was tested")
	}
}

// answered is what an engine answered to one script.
type answered struct {
	log  []string
	sent int
}

func runScript(table *route.Table, seed []int, withCopies bool) (s answered) {
	eng := engine.New(engine.Config{Table: table})
	var open, sent []sluice.RequestID
	now := start
	say := func(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }
	policy := &sluice.Policy{HardSpend: true}
	policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerHour, Amount: 90_000_000}, {Dimension: sluice.Concurrency, Amount: 4}}
	for i, n := range seed {
		now = now.Add(time.Duration(n%7) * time.Second)
		work := sluice.Work{Input: sluice.Tokens(1 + n%900), InputBound: sluice.Tokens(1 + n%900), OutputBound: 500, OutputHold: 100}
		call := engine.Call{
			ID: sluice.RequestID(fmt.Sprint("r", i)), Model: "m", Dialect: "openai", MaxWait: -1, Work: work, Class: sluice.Class(n % sluice.NumClasses),
			Principal: sluice.Principal{Tenant: "t", Policy: policy},
		}
		switch n % 4 {
		case 0, 1:
			v := eng.Arrive(now, call)
			say("%s: %+v", call.ID, v)
			if v.Err == nil {
				open = append(open, call.ID)
			}
		case 2:
			if len(open) > 0 {
				id := open[n%len(open)]
				say("%s: %v", id, eng.Settle(now, id, engine.Actual{Usage: sluice.Usage{Input: 10, Output: 5}, Cost: 1_000_000}))
			}
		case 3:
			if len(open) > 0 {
				id := open[n%len(open)]
				say("%s: %+v", id, eng.AttemptEnded(now, id, engine.Result{Reason: sluice.UpstreamError}))
			}
		}
		for _, g := range eng.Advance(now) {
			if g.ID[0] == 'r' {
				say("%+v %+v", g, g.Err)
			}
		}
		if !withCopies {
			continue
		}
		call.ID, call.Shadow, call.Principal.Policy = "s"+call.ID, &table.Models["m"].Shadows[1], &sluice.Policy{HardSpend: true}
		if _, skip := eng.Copy(now, call); skip == route.Sent {
			s.sent++
			sent = append(sent, call.ID)
		}
		if len(sent) > 0 && n%3 == 0 {
			_ = eng.Settle(now, sent[0], engine.Actual{Cost: 1000, Reason: sluice.UpstreamError})
			sent = sent[1:]
		}
		eng.Advance(now)
	}
	return s
}
