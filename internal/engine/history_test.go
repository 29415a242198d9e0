package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// history is an engine to which anything happens: tables, policies and limits of every
// kind, signals, orders, failures, hedges, and a clock that steps back.
type history struct {
	*rand.Rand
	t       *testing.T
	e       *engine.Engine
	now     time.Time
	tables  []*route.Table
	keys    []sluice.Principal
	calls   map[sluice.RequestID]engine.Call   // open
	runs    map[sluice.RequestID]bool          // of them; hedges too
	handles map[sluice.RequestID]engine.Handle // of all that ever ran
	next    int
	pause   time.Duration // between two things that happen, at most
	scale   int64         // of limits
}

// TestHistories: whatever happens, no place is given twice or without what it costs, and
// when all is over nothing is held any more.
func TestHistories(t *testing.T) {
	for seed := range uint64(201) {
		if seed == 200 {
			seed = 1052 // in which a swap takes the place away that is kept for a request
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for i := range 500 {
				h.now = h.now.Add(time.Duration(h.Int64N(int64(h.pause))))
				h.happen()
				h.advance()
				if i%32 == 0 {
					h.conserved()
				}
			}
			h.finish()
		})
	}
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 7)), t: t, now: start, calls: map[sluice.RequestID]engine.Call{}, runs: map[sluice.RequestID]bool{}, handles: map[sluice.RequestID]engine.Handle{},
		pause: []time.Duration{400 * time.Millisecond, 60 * time.Millisecond, 8 * time.Millisecond}[seed%3], scale: []int64{1, 8, 100}[seed/3%3],
	}
	for i := range 1 + h.IntN(8) {
		h.keys = append(h.keys, sluice.Principal{
			Tenant: sluice.TenantID(fmt.Sprint("t", i%4)), Project: sluice.ProjectID(fmt.Sprint("p", h.IntN(2))), Key: sluice.KeyID(fmt.Sprint("k", i)), Policy: h.policy(),
		})
	}
	for range 3 {
		h.tables = append(h.tables, h.table())
	}
	h.e = engine.New(engine.Config{Table: h.tables[0], Options: engine.Options{HoldTTL: 5 * time.Minute, MaxExpired: 20}})
	return h
}

// one is any of several.
func one[E any](h *history, of ...E) E { return of[h.IntN(len(of))] }

func (h *history) seconds(n int) time.Duration { return time.Duration(h.IntN(n)) * time.Second }

func (h *history) limits(s sluice.Scope) (out []sluice.Limit) {
	windows := map[sluice.Dimension][]sluice.Window{
		sluice.Requests: {sluice.PerSecond, sluice.PerMinute, sluice.PerHour}, sluice.InputTokens: {sluice.PerSecond, sluice.PerMinute, sluice.PerDay},
		sluice.OutputTokens: {sluice.PerMinute, sluice.PerMonth}, sluice.AllTokens: {sluice.PerMinute, sluice.PerDay},
		sluice.Spend: {sluice.PerMinute, sluice.PerHour, sluice.PerDay, sluice.PerMonth}, sluice.Concurrency: {sluice.NoWindow}, sluice.KVTokens: {sluice.NoWindow},
	}
	most := map[sluice.Dimension]int64{
		sluice.Requests: 60, sluice.InputTokens: 50_000, sluice.OutputTokens: 50_000, sluice.AllTokens: 90_000, sluice.Spend: 300_000_000, sluice.Concurrency: 6, sluice.KVTokens: 20_000,
	}
	for range h.IntN(6) {
		d := one(h, sluice.Requests, sluice.InputTokens, sluice.OutputTokens, sluice.AllTokens, sluice.Spend, sluice.Spend, sluice.Concurrency, sluice.KVTokens)
		l := sluice.Limit{Dimension: d, Window: one(h, windows[d]...), Amount: h.scale * (1 + h.Int64N(most[d]))}
		if s == sluice.ScopeRun && !d.Gauge() {
			l.Window = sluice.PerRun
		}
		out = append(out, l)
	}
	return out
}

func (h *history) policy() *sluice.Policy {
	if h.IntN(6) == 0 {
		return nil
	}
	p := &sluice.Policy{
		HardSpend: h.IntN(2) == 0, Weight: h.Int64N(5), MaxWait: int64(one(h, 0, 0, h.seconds(60))), Mode: one(h, sluice.Enforce, sluice.Enforce, sluice.Enforce, sluice.Shadow, sluice.Off),
	}
	for s := sluice.ScopeKey; s <= sluice.ScopeTenantModel; s++ {
		if h.IntN(2) == 0 {
			p.Limits[s] = h.limits(s)
		}
	}
	return p
}

func (h *history) policyOf(p sluice.Principal) *sluice.Policy {
	i := slices.IndexFunc(h.keys, func(k sluice.Principal) bool { return k.Key == p.Key })
	return h.keys[i].Policy
}

func (h *history) table() *route.Table {
	t := &route.Table{
		Models: map[sluice.ModelID]*route.Model{}, Pools: map[sluice.PoolID]*route.Pool{}, Fleet: h.limits(sluice.ScopeFleet),
		Retries:  route.RetryPolicy{Share: h.Int64N(500), Minimum: h.Int64N(20), Attempts: h.IntN(5)},
		Headroom: map[string]int64{"eu": h.Int64N(500), "us": h.Int64N(500)},
	}
	local := h.IntN(3) == 0
	var ids []sluice.PoolID
	for i := range 1 + h.IntN(3) {
		id := sluice.PoolID(fmt.Sprint("p", i))
		ids = append(ids, id)
		p := &route.Pool{ID: id, Queue: route.QueueBounds{Requests: h.Int64N(40), Bytes: h.Int64N(3) * 100_000}, Ladder: ladder.Default(one(h, ladder.Off, ladder.Watch, ladder.Act))}
		if h.IntN(3) == 0 {
			p.Sharing.Contracts = []sched.Contract{{Tenant: "t0", Slots: 1 + h.Int64N(3), Lend: one(h, sched.LendShort, sched.LendNone, sched.LendAll)}}
		}
		for c := range p.Sharing.Classes {
			p.Sharing.Classes[c] = sched.Class{Share: 1 + h.Int64N(700), Ceiling: 500 + h.Int64N(501), Headroom: h.Int64N(200)}
		}
		for j := range 1 + h.IntN(4) {
			b := &route.Backend{
				ID: sluice.BackendID(fmt.Sprintf("%s-b%d", id, j)), Dialect: "openai", Weight: h.Int64N(4), StopsOnCancel: h.IntN(2) == 0, Domain: one(h, "", "d1", "d2"), Region: one(h, "eu", "us"),
				Price:    &price.Row{Rates: price.Rates{Input: sluice.Price(h.Int64N(5000) * 1e6), Output: sluice.Price(h.Int64N(9000) * 1e6)}},
				Capacity: route.Capacity{Concurrency: 1 + h.Int64N(5), KVTokens: sluice.Tokens(one(h, 0, 3000+h.IntN(20_000))), PrefillTokens: sluice.Tokens(one(h, 0, 1000+h.IntN(9000)))},
			}
			for k := range h.IntN(3) {
				b.Keys = append(b.Keys, route.Key{ID: fmt.Sprint("c", k)})
			}
			p.Backends = append(p.Backends, b)
		}
		t.Pools[id] = p
	}
	for _, id := range []sluice.ModelID{"m", "n"} {
		h.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		n := 1 + h.IntN(len(ids))
		m := &route.Model{ID: id, Pools: slices.Clone(ids[:n]), Fallback: slices.Clone(ids[n:]), Limits: h.limits(sluice.ScopeModel), Prefer: one(h, route.PreferNone, route.PreferNone, route.PreferLatency, route.PreferPrice)}
		if h.IntN(2) == 0 {
			m.Hedge = &route.Hedging{After: time.Second + h.seconds(5), Classes: [sluice.NumClasses]bool{true, true, true}}
		}
		if local {
			m.Locality = &route.Locality{Regions: one(h, []string{"eu", "us"}, []string{"us", "eu"}), Overload: h.IntN(2) == 0, Return: time.Minute}
		}
		t.Models[id] = m
	}
	return t
}

// happen does one thing.
func (h *history) happen() {
	id, some := h.any(h.runs)
	u, cost := sluice.Usage{Input: sluice.Tokens(h.IntN(6000)), Output: sluice.Tokens(h.IntN(3000)), Source: one(h, sluice.UsageReported, sluice.UsageCounted)}, sluice.Nano(h.IntN(one(h, 40_000_000, 900_000_000)))
	switch what := h.IntN(100); {
	case what < 38:
		h.arrive()
	case what < 42:
		if id, some := h.any(h.calls); some {
			h.e.Cancel(h.now, id, sluice.ClientGone)
			h.over(id)
		}
	case what < 45:
		h.signal()
	case what < 47:
		h.order()
	case what < 48:
		if p, err := h.e.Prepare(one(h, h.tables...)); err == nil {
			h.e.Swap(h.now, p)
			if !h.e.Kept() {
				h.t.Fatal("a place is kept that is gone")
			}
		}
	case what < 50:
		h.now = h.now.Add(h.seconds(120))
	case what < 51:
		h.now = h.now.Add(one(h, -h.seconds(60), h.seconds(3600)))
	case what < 53:
		h.keys[h.IntN(len(h.keys))].Policy = h.policy()
		if h.IntN(2) == 0 {
			h.e.Revise(h.now, h.policyOf)
		}
	case !some:
	case what < 73:
		_ = h.e.Settle(h.now, id, engine.Actual{Handle: h.handles[id], Usage: u, Cost: cost, Reason: one(h, sluice.ReasonNone, sluice.ReasonNone, sluice.ClientGone)})
		h.over(id)
	case what < 82:
		h.e.Progress(h.now, id, u)
	case what < 90:
		h.e.AttemptEnded(h.now, id, engine.Result{
			Reason: one(h, sluice.UpstreamError, sluice.UpstreamLimited, sluice.UpstreamTimeout), Usage: one(h, u, sluice.Usage{}), Cost: one(h, cost, 0),
			Content: h.IntN(5) == 0, Overload: h.IntN(5) == 0, Credential: h.IntN(6) == 0, RetryAfter: one(h, 0, h.seconds(20)),
		})
		delete(h.runs, id)
	case what < 94:
		if g := h.e.Hedge(h.now, id).Grant; g.Backend != nil {
			h.calls[g.ID], h.runs[g.ID] = h.calls[id], true
		}
	case what < 96:
		if h.e.Leave(h.now, id, u, time.Minute) {
			delete(h.runs, id)
		}
	default:
		h.e.Step(h.now, id, sluice.Tokens(h.IntN(1000)), 100)
	}
}

// any is one of the ids of a map, the same in every run of the test.
func (h *history) any(of any) (id sluice.RequestID, some bool) {
	var ids []sluice.RequestID
	switch of := of.(type) {
	case map[sluice.RequestID]bool:
		for id := range of {
			ids = append(ids, id)
		}
	case map[sluice.RequestID]engine.Call:
		for id := range of {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return "", false
	}
	slices.Sort(ids)
	return one(h, ids...), true
}

func (h *history) over(id sluice.RequestID) {
	delete(h.runs, id)
	delete(h.calls, id)
}

func (h *history) arrive() {
	h.next++
	c := engine.Call{
		ID: sluice.RequestID(fmt.Sprint("r", h.next)), Model: one[sluice.ModelID](h, "m", "n"), Dialect: "openai", Class: sluice.Class(h.IntN(sluice.NumClasses)), Bytes: h.Int64N(9000),
		MaxWait: one(h, -1, -1, -1, 0, 5*time.Second, time.Minute), Streaming: h.IntN(3) > 0, Principal: one(h, h.keys...), Counted: h.IntN(3) == 0,
		Free: h.IntN(12) == 0, Owed: h.IntN(12) == 0, Single: h.IntN(12) == 0, Session: route.Session(h.IntN(4)),
		Work: sluice.Work{Input: sluice.Tokens(1 + h.IntN(6000)), OutputBound: sluice.Tokens(1 + h.IntN(4000))},
	}
	c.Work.InputBound, c.Work.Output = c.Work.Input+sluice.Tokens(h.IntN(300)), min(sluice.Tokens(h.IntN(600)), c.Work.OutputBound)
	c.Work.OutputHold = min(2*c.Work.Output+sluice.Tokens(h.IntN(100)), c.Work.OutputBound)
	c.Principal.User = one[sluice.UserID](h, "", "", "u", "v")
	if c.Principal.Run = one[sluice.RunID](h, "", "", "", "a", "b"); c.Principal.Run != "" && h.IntN(2) == 0 {
		c.RunLimits = []sluice.Limit{{Dimension: sluice.Requests, Window: sluice.PerRun, Amount: 3 + h.Int64N(30)}}
	}
	if h.IntN(20) == 0 {
		h.e.Take(h.now, c, sluice.Nano(h.IntN(1_000_000)))
		return
	}
	if v := h.e.Arrive(h.now, c); v.Err == nil && !v.Translate && v.Smaller == "" {
		h.calls[c.ID] = c
	}
}

func (h *history) backend() sluice.BackendID {
	return sluice.BackendID(fmt.Sprintf("p%d-b%d", h.IntN(3), h.IntN(4)))
}

func (h *history) signal() {
	s := engine.Signal{Backend: h.backend(), Key: one(h, "", "c0", "c1")}
	switch h.IntN(7) {
	case 0:
		s.Probed, s.Healthy = true, h.IntN(2) == 0
	case 1:
		s.Pause = h.seconds(10)
	case 2:
		s.Refused, s.Everywhere = true, h.IntN(2) == 0
	case 3:
		s.Overloaded = true
	case 4:
		s.Rates = []route.Hint{{Rate: route.Rate(h.IntN(route.NumRates)), Limit: 100 + h.Int64N(9000), Remaining: h.Int64N(9000), Reset: h.seconds(60), At: h.now}}
	case 5:
		s.Load = &route.Load{At: h.now, KVPermille: h.Int64N(1001), KVCapacity: sluice.Tokens(h.IntN(30_000))}
	case 6:
		s.Limited, s.Pause = true, h.seconds(10)
	}
	h.e.Observe(h.now, s)
}

func (h *history) order() {
	o := engine.Order{Backend: h.backend()}
	switch h.IntN(5) {
	case 0:
		o.Drain = true
	case 1, 2:
		o.Undrain = true
	case 3:
		o.Enable = one(h, "c0", "c1")
	case 4:
		o = engine.Order{Pool: sluice.PoolID(fmt.Sprint("p", h.IntN(3))), Unpin: h.IntN(2) == 0}
		if !o.Unpin {
			o.Pin = &ladder.Pin{Tier: ladder.Tier(h.IntN(int(ladder.Smaller) + 1)), Author: "ann", Reason: "drill", Expires: h.now.Add(h.seconds(60))}
		}
	}
	_, _ = h.e.Operate(h.now, o) // there may be no such backend or pool
}

// advance takes the engine's answers, and holds each place to what was asked.
func (h *history) advance() {
	for _, g := range h.e.Advance(h.now) {
		c, open := h.calls[g.ID]
		switch {
		case g.Err != nil:
			delete(h.runs, g.ID)
			if g.Attempt == 0 {
				h.over(g.ID)
			}
			continue
		case !open || h.runs[g.ID]:
			h.t.Fatalf("%s gets a place, open %v, running %v", g.ID, open, h.runs[g.ID])
		}
		h.runs[g.ID], h.handles[g.ID] = true, g.Handle
		w := c.Work
		if w.OutputBound = g.OutputBound; g.HeldTo > 0 {
			w.OutputBound = g.HeldTo
		}
		w.OutputHold = min(w.OutputHold, w.OutputBound)
		cost := g.Backend.Price.SoftHold(w)
		if c.Principal.Policy != nil && c.Principal.Policy.HardSpend {
			cost = g.Backend.Price.HardHold(w)
		}
		if !c.Free && g.HeldSpend < cost {
			h.t.Fatalf("%s runs on %s, where it costs %v, and holds %v", g.ID, g.Backend.ID, cost, g.HeldSpend)
		}
	}
}

// conserved holds what came into the queues to what became of it.
func (h *history) conserved() {
	for _, p := range h.e.Dump(h.now, engine.Zoom{}, 1).Pools {
		if n := p.Counts; n.Enqueued != n.Dispatched+n.Cancelled+n.Rejected+n.Moved+int64(p.Waiting) {
			h.t.Fatalf("pool %s: %+v and %d wait", p.ID, n, p.Waiting)
		}
	}
}

// finish ends what is open, after which nothing may be held.
func (h *history) finish() {
	for id, some := h.any(h.calls); some; id, some = h.any(h.calls) {
		_ = h.e.Settle(h.now, id, engine.Actual{Usage: sluice.Usage{Input: 10, Output: 10}})
		h.over(id)
		h.advance()
	}
	v := h.e.Dump(h.now, engine.Zoom{}, 1000)
	if v.Open+v.Running+v.Expired > 0 {
		h.t.Errorf("%d are open, %d run and %d have expired", v.Open, v.Running, v.Expired)
	}
	for _, p := range v.Pools {
		for _, b := range p.Backends {
			if p.Waiting > 0 || b.Running > 0 || b.KVTokens > 0 || b.Prefill > 0 {
				h.t.Errorf("pool %s: %d wait, and %s has %+v", p.ID, p.Waiting, b.ID, b)
			}
		}
	}
	for _, a := range v.Top {
		h.t.Errorf("%v %s of %s is held by %d: %+v", a.Scope, a.ID, a.Tenant, a.Open, a.Counters)
	}
	for i, k := range h.keys {
		h.now = h.now.Add(3 * 31 * 24 * time.Hour) // debts are paid, and months over
		c := engine.Call{ID: sluice.RequestID(fmt.Sprint("last", i)), Model: "m", Dialect: "openai", MaxWait: 0, Principal: k, Free: true}
		limits, own := h.e.Arrive(h.now, c).Limits, int64(0)
		for _, g := range h.e.Advance(h.now) {
			limits, own = g.Limits, 1
		}
		for _, l := range limits.States(nil) {
			want := l.Limit.Amount
			if l.Limit.Dimension == sluice.Requests {
				want -= own
			}
			if l.Remaining != want {
				h.t.Errorf("of %s's %v %v %d remain when nothing is held, want %d", k.Key, l.Scope, l.Limit, l.Remaining, want)
			}
		}
		_ = h.e.Settle(h.now, c.ID, engine.Actual{})
	}
}
