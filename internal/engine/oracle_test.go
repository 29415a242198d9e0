package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// oracle judges the engine by what it said and was told: the log of calls and
// answers. It knows nothing of counters, queues or places.
type oracle struct {
	t      *rapid.T
	eng    *engine.Engine
	now    time.Time
	keys   []key
	open   map[sluice.RequestID]*seen
	ended  []sluice.RequestID
	posted map[sluice.TenantID]map[int64]sluice.Nano // by start of the hour
	next   int
	tables []*route.Table // the first is in force at the start
	ops    []string       // what happens, the more often the more often it is there
	copies *copies
	calm   bool // no failures, no memory limits: then nothing may wait that could run
}

type key struct {
	principal sluice.Principal
	slots     int
	budget    sluice.Nano
}

// seen is one open request, or a hedge of one, from the log.
type seen struct {
	other   *seen // that it races with
	beside  bool  // it is a hedge
	hedged  bool
	begun   bool // it has shown content
	key     *key
	input   sluice.Tokens
	hour    int64
	pool    sluice.PoolID
	backend sluice.BackendID // empty while it waits
	bound   sluice.Tokens    // of its output
	running bool
	idle    bool // told that there is no further attempt
	left    bool // its client has, and its backend goes on: it holds spend and no place
	held    sluice.Nano
	paid    sluice.Nano // posted by failed attempts
	attempt int
	active  time.Time
}

const (
	ttl    = 10 * time.Minute
	slots1 = 3
	slots2 = 2
)

func newOracle(t *rapid.T, calm bool) *oracle {
	ops := strings.Fields("arrive arrive arrive settle settle ended cancel again progress hedge leave time long swap")
	o := &oracle{t: t, now: start, ops: ops, calm: calm, open: map[sluice.RequestID]*seen{}, posted: map[sluice.TenantID]map[int64]sluice.Nano{}}
	memory := ""
	if !calm {
		memory = " kv=2000 prefill=1500"
	}
	o.tables = []*route.Table{
		parseTable(nil, fmt.Sprintf(`pool a queue=20
backend a1 pool=a conc=%d price=1/10%s
backend a2 pool=a conc=%d price=2/8
pool b queue=20
backend b1 pool=b conc=%d price=3/30
model m pools=a fallback=b
model n pools=b,a
pool next
backend x1 pool=next conc=3 price=1/1`, slots1, memory, slots2, slots2)),
		parseTable(nil, fmt.Sprintf(`pool b queue=5
backend b1 pool=b conc=%d price=9/90
backend a2 pool=b conc=1 price=2/8
model m pools=b`, slots1)),
		parseTable(nil, fmt.Sprintf(`pool a
backend a1 pool=a conc=1 price=1/1%s
model m pools=a
model n pools=a`, memory)),
		parseTable(nil, fmt.Sprintf(`pool a queue=3
backend a1 pool=a conc=%d price=1/10%s
pool b queue=20
backend b1 pool=b conc=%d price=3/30
model m pools=a fallback=b
model n pools=b,a`, slots1, memory, slots2)),
	}
	o.tables[3].Pools["a"].Sharing.FIFO = true
	for _, table := range o.tables {
		withShadows(table)
		for _, m := range table.Models {
			m.Hedge = &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true, true, true}}
		}
	}
	o.copies = newCopies(o)
	o.eng = engine.New(engine.Config{Table: o.tables[0], Options: engine.Options{HoldTTL: ttl}})
	for i := range 3 {
		k := key{slots: rapid.IntRange(1, 4).Draw(t, "slots"), budget: sluice.Nano(rapid.Int64Range(20_000_000, 90_000_000).Draw(t, "budget"))}
		p := &sluice.Policy{HardSpend: true}
		p.Limits[sluice.ScopeTenant] = []sluice.Limit{
			{Dimension: sluice.Concurrency, Amount: int64(k.slots)},
			{Dimension: sluice.Spend, Window: sluice.PerHour, Amount: int64(k.budget)},
		}
		k.principal = sluice.Principal{Tenant: sluice.TenantID(fmt.Sprint("t", i)), Project: sluice.DefaultProject, Key: sluice.KeyID(fmt.Sprint("k", i)), Policy: p}
		o.keys = append(o.keys, k)
		o.posted[k.principal.Tenant] = map[int64]sluice.Nano{}
	}
	return o
}

func (o *oracle) post(r *seen, cost sluice.Nano) { o.posted[r.key.principal.Tenant][r.hour] += cost }

func (o *oracle) step() {
	t := o.t
	switch op := rapid.SampledFrom(o.ops).Draw(t, "op"); op {
	case "swap":
		o.swap()
	case "arrive":
		o.arrive()
	case "time":
		o.now = o.now.Add(time.Duration(rapid.IntRange(-3, 20).Draw(t, "seconds")) * time.Second)
	case "long":
		o.now = o.now.Add(time.Duration(rapid.IntRange(1, 8).Draw(t, "minutes")) * time.Minute)
	case "again":
		if len(o.ended) > 0 {
			id := o.ended[rapid.IntRange(0, len(o.ended)-1).Draw(t, "ended")]
			if err := o.eng.Settle(o.now, id, engine.Actual{Cost: sluice.Dollar}); !errors.Is(err, engine.ErrSettled) {
				t.Fatalf("%s: settled twice: %v", id, err)
			}
		}
	default:
		if len(o.open) > 0 {
			o.one(op, rapid.SampledFrom(slices.Sorted(maps.Keys(o.open))).Draw(t, "which"))
		}
	}
	o.advance() // what the gate does after every event
	o.copies.step()
	o.advance()
	o.check()
}

// swap puts another table into force, now and then.
func (o *oracle) swap() {
	if o.calm || rapid.IntRange(0, 2).Draw(o.t, "whether") > 0 {
		return
	}
	plan, err := o.eng.Prepare(rapid.SampledFrom(o.tables).Draw(o.t, "table"))
	if err != nil {
		o.t.Fatal(err)
	}
	o.eng.Swap(o.now, plan)
}

func (o *oracle) arrive() {
	t := o.t
	k := &o.keys[rapid.IntRange(0, len(o.keys)-1).Draw(t, "key")]
	o.next++
	c := engine.Call{
		ID: sluice.RequestID(fmt.Sprint("r", o.next)), Principal: k.principal, Dialect: "openai", Streaming: true,
		Model:   rapid.SampledFrom([]sluice.ModelID{"m", "n"}).Draw(t, "model"),
		MaxWait: rapid.SampledFrom([]time.Duration{-1, 0, 5 * time.Second, 20 * time.Minute}).Draw(t, "wait"),
		Work:    sluice.Work{Input: sluice.Tokens(rapid.IntRange(1, 1200).Draw(t, "in")), OutputBound: sluice.Tokens(rapid.IntRange(0, 3000).Draw(t, "out"))},
	}
	c.Work.InputBound, c.Work.OutputHold = c.Work.Input, min(c.Work.OutputBound, 300)
	v := o.eng.Arrive(o.now, c)
	if v.Err != nil {
		if v.Err.RetryAfter < 0 || v.Err.Reason == sluice.ReasonNone {
			t.Fatalf("%s: refused without a reason: %+v", c.ID, v.Err)
		}
		return
	}
	if o.open[c.ID] != nil {
		t.Fatalf("%s: two of one id", c.ID)
	}
	o.open[c.ID] = &seen{key: k, input: c.Work.Input, hour: o.latest().Truncate(time.Hour).Unix(), pool: v.Pool}
}

// one does something to one request.
func (o *oracle) one(op string, id sluice.RequestID) {
	t, r := o.t, o.open[id]
	switch op {
	case "progress":
		d := o.eng.Progress(o.now, id, sluice.Usage{})
		if d.Stop == (r.running || r.left) {
			t.Fatalf("%s: progress says stop=%v, running=%v", id, d.Stop, r.running)
		}
		if r.running || r.left {
			r.active, r.begun = o.latest(), true
		}
	case "hedge":
		o.hedge(id, r)
	case "leave":
		left := o.eng.Leave(o.now, id, sluice.Usage{Input: 1, Output: 9, Source: sluice.UsageEstimated}, 30*time.Second)
		if left != (r.running && r.other == nil) {
			t.Fatalf("%s: left is %v of %+v", id, left, r)
		}
		if left {
			r.running, r.backend, r.idle, r.left, r.active = false, "", true, true, o.latest()
		}
	case "cancel":
		if !o.eng.Cancel(o.now, id, sluice.ClientGone) {
			t.Fatalf("%s: open and cannot be cancelled", id)
		}
		o.end(id)
	case "settle":
		var cost sluice.Nano
		if r.attempt > 0 {
			cost = sluice.Nano(rapid.Int64Range(0, int64(r.held)).Draw(t, "cost"))
		}
		if err := o.eng.Settle(o.now, id, engine.Actual{Cost: r.paid + cost, Usage: sluice.Usage{Input: 1}}); err != nil {
			t.Fatalf("%s: open and cannot be settled: %v", id, err)
		}
		o.post(r, cost)
		o.end(id)
	case "ended":
		o.attemptEnded(id, r)
	}
}

// hedge asks for a second attempt, which is a thing of its own in the log.
func (o *oracle) hedge(id sluice.RequestID, r *seen) {
	t := o.t
	n := o.eng.Hedge(o.now, id)
	switch {
	case n.Denied != route.Allowed || n.Err != nil:
		return
	case r.beside || r.hedged || r.begun || !r.running:
		t.Fatalf("%s: hedged though %+v", id, r)
	case n.Grant.Backend.ID == r.backend || n.Grant.OutputBound < r.bound:
		t.Fatalf("%s: its hedge is to be on %s with at most %d, beside %+v", id, n.Grant.Backend.ID, n.Grant.OutputBound, r)
	}
	h := &seen{key: r.key, input: r.input, hour: r.hour, pool: r.pool, other: r, beside: true, attempt: r.attempt}
	o.open[n.Grant.ID] = h
	o.granted(&n.Grant, h)
	r.other, r.hedged, r.attempt = h, true, h.attempt
}

func (o *oracle) attemptEnded(id sluice.RequestID, r *seen) {
	if !r.running || o.calm {
		return
	}
	t, other := o.t, r.other
	res := engine.Result{
		Reason:  rapid.SampledFrom([]sluice.Reason{sluice.UpstreamError, sluice.UpstreamConnect, sluice.UpstreamLimited, sluice.UpstreamRefused, sluice.ReasonNone}).Draw(t, "reason"),
		Content: other == nil && rapid.IntRange(0, 3).Draw(t, "content") == 0,
		Cost:    sluice.Nano(rapid.Int64Range(0, int64(r.held)).Draw(t, "cost")),
	}
	n := o.eng.AttemptEnded(o.now, id, res)
	o.post(r, res.Cost)
	r.paid += res.Cost
	r.running, r.backend, r.held = false, "", 0
	if races := other != nil && other.running; races != (n.Step == engine.Race) {
		t.Fatalf("%s: %+v, the other runs: %v", id, n, races)
	}
	if r.beside { // the end decides on its request
		o.end(id)
		if r = other; r == nil || r.running {
			return
		}
	}
	if r.idle = n.Step != engine.Queue; r.idle {
		r.active = o.latest()
	} else if res.Content || res.Reason == sluice.UpstreamRefused || res.Reason == sluice.ReasonNone {
		t.Fatalf("%s: another attempt after %+v", id, res)
	}
}

func (o *oracle) end(id sluice.RequestID) {
	o.open[id].part()
	delete(o.open, id)
	o.ended = append(o.ended, id)
}

// part ends a race.
func (r *seen) part() {
	if r.other != nil {
		r.other.other, r.other = nil, nil
	}
}

// granted is an attempt that begins.
func (o *oracle) granted(g *engine.Grant, r *seen) {
	if r.running || r.idle || g.Attempt != r.attempt+1 {
		o.t.Fatalf("%s: attempt %d after %d, running %v", g.ID, g.Attempt, r.attempt, r.running)
	}
	if most := worst(*g, r.input); g.HeldSpend < most {
		o.t.Fatalf("%s: holds %v on %s, which may bill %v", g.ID, g.HeldSpend, g.Backend.ID, most)
	}
	r.running, r.attempt, r.pool, r.backend, r.bound, r.held, r.active = true, g.Attempt, g.Pool, g.Backend.ID, g.OutputBound, g.HeldSpend, o.latest()
}

func (o *oracle) advance() {
	t := o.t
	for _, g := range o.eng.Advance(o.now) {
		if o.copies.granted(g) {
			continue
		}
		r := o.open[g.ID]
		switch {
		case r == nil:
			t.Fatalf("%s: granted or failed and not open", g.ID)
		case g.Err == nil:
			o.granted(&g, r)
		case g.Err.Reason == sluice.HoldExpired:
			if idle := o.latest().Sub(r.active); idle < ttl || !r.running && !r.idle {
				t.Fatalf("%s: expired after %v without activity", g.ID, idle)
			}
			o.late(g.ID, r)
		case r.attempt == 0:
			o.end(g.ID)
		default:
			r.idle, r.active = true, o.latest()
		}
	}
}

// late settles an expired request at once, and again.
func (o *oracle) late(id sluice.RequestID, r *seen) {
	r.part()
	cost := sluice.Nano(rapid.Int64Range(0, int64(r.held)).Draw(o.t, "late"))
	if err := o.eng.Settle(o.now, id, engine.Actual{Cost: r.paid + cost}); !errors.Is(err, engine.ErrLate) {
		o.t.Fatalf("%s: late settlement: %v", id, err)
	}
	o.post(r, cost)
	o.end(id)
}

func (o *oracle) check() {
	t := o.t
	v := o.eng.Dump(o.now, engine.Zoom{}, 100)
	open := 0
	for _, r := range o.open {
		if !r.beside || r.other == nil { // the two are one request
			open++
		}
	}
	if v.Open != open+len(o.copies.open) {
		t.Fatalf("%d open, the log says %d", v.Open, open+len(o.copies.open))
	}
	o.copies.check(v)
	copied := o.copies.on()
	onBackend, ofTenant, held := maps.Clone(copied), map[sluice.TenantID]int64{}, map[sluice.TenantID]sluice.Nano{}
	waiting, hour := 0, v.At.Truncate(time.Hour).Unix()
	for _, r := range o.open {
		switch {
		case r.running:
			onBackend[r.backend]++
			ofTenant[r.key.principal.Tenant]++
			if r.hour == hour {
				held[r.key.principal.Tenant] += r.held
			}
		case r.left:
			if r.hour == hour {
				held[r.key.principal.Tenant] += r.held
			}
		case !r.idle:
			waiting++
		}
	}
	free := map[sluice.PoolID]bool{}
	for _, p := range v.Pools {
		c := p.Counts
		if c.Enqueued != c.Dispatched+c.Cancelled+c.Rejected+c.Moved+int64(p.Waiting) {
			t.Fatalf("pool %s: %+v and %d wait", p.ID, c, p.Waiting)
		}
		waiting -= p.Waiting
		for _, b := range p.Backends {
			if b.Running != onBackend[b.ID] || o.calm && b.Running > b.Concurrency || b.KVTokens > 2000 && b.ID == "a1" && !o.calm {
				t.Fatalf("backend %+v, the log says %d run", b, onBackend[b.ID])
			}
			free[p.ID] = free[p.ID] || b.Running-copied[b.ID] < b.Concurrency
		}
	}
	if waiting != 0 {
		t.Fatalf("queues and log differ by %d", waiting)
	}
	o.checkTenants(v, ofTenant, held, hour)
	if o.calm {
		for id, r := range o.open {
			if !r.running && !r.idle && free[r.pool] && ofTenant[r.key.principal.Tenant] < int64(r.key.slots) {
				t.Fatalf("%s waits though pool %s and its tenant have room", id, r.pool)
			}
		}
	}
}

// checkTenants: gauges are sums of live holds and within their limit; budgets are
// never exceeded; every window has what was charged to it.
func (o *oracle) checkTenants(v engine.View, running map[sluice.TenantID]int64, held map[sluice.TenantID]sluice.Nano, hour int64) {
	t := o.t
	for i := range o.keys {
		k := &o.keys[i]
		id := k.principal.Tenant
		if running[id] > int64(k.slots) {
			t.Fatalf("tenant %s runs %d of %d", id, running[id], k.slots)
		}
		if posted := o.posted[id][hour]; posted+held[id] > k.budget {
			t.Fatalf("tenant %s: posted %v, held %v, budget %v", id, posted, held[id], k.budget)
		}
	}
	for _, a := range v.Top {
		id := sluice.TenantID(a.ID)
		for _, c := range a.Counters {
			switch {
			case a.Scope == sluice.ScopeShadow:
			case c.Limit.Dimension == sluice.Concurrency && c.Held != running[id]:
				t.Fatalf("tenant %s: gauge %d, the log says %d", id, c.Held, running[id])
			case c.Limit.Dimension == sluice.Spend && sluice.Nano(c.Used) != o.posted[id][hour]:
				t.Fatalf("tenant %s: used %v, the log says %v", id, sluice.Nano(c.Used), o.posted[id][hour])
			case c.Remaining < 0:
				t.Fatalf("tenant %s: %+v", id, c)
			}
		}
	}
}

// finish ends everything: nothing may be held then.
func (o *oracle) finish() {
	o.copies.finish()
	for _, id := range slices.Sorted(maps.Keys(o.open)) {
		if o.open[id] != nil {
			o.eng.Cancel(o.now, id, sluice.ClientGone)
			o.end(id)
		}
		o.advance()
		o.check()
	}
	v := o.eng.Dump(o.now, engine.Zoom{}, 100)
	if v.Open != 0 || v.Running != 0 || v.Expired != 0 {
		o.t.Fatalf("left over: %+v", v)
	}
	o.now = o.now.Add(2 * demand.Long) // what was offered is over
	for _, p := range o.eng.Dump(o.now, engine.Zoom{}, 100).Pools {
		if _, most, _ := p.Demand.Ratios.Most(); most > 0 {
			o.t.Fatalf("nothing waits or runs, and pool %s is asked for %v", p.ID, p.Demand.Ratios)
		}
		for _, b := range p.Backends {
			if b.Running != 0 || b.KVTokens != 0 || b.Prefill != 0 {
				o.t.Fatalf("left on a backend: %+v", b)
			}
		}
	}
}

func TestOracle(t *testing.T) { oracles(t, false) }

// TestWorkConserving: with healthy backends and no memory limits, after every
// event no request waits while its pool has a slot, or a copy runs there, and its
// tenant has room.
func TestWorkConserving(t *testing.T) { oracles(t, true) }

func oracles(t *testing.T, calm bool) {
	sent, displaced := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		o := newOracle(t, calm)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			o.step()
		}
		o.finish()
		sent, displaced = sent+o.copies.sent, displaced+o.copies.displaced
	})
	if sent == 0 || displaced == 0 {
		t.Errorf("%d copies were sent and %d displaced: nothing was tested of them", sent, displaced)
	}
}

// TestHedges: the same of requests most of which race with themselves.
func TestHedges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOracle(t, false)
		o.ops = strings.Fields("arrive arrive hedge hedge hedge hedge ended ended ended settle settle cancel progress time long swap")
		for i := range o.keys {
			o.keys[i].slots += 4
			o.keys[i].principal.Policy.Limits[sluice.ScopeTenant][0].Amount += 4
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			o.step()
		}
		o.finish()
	})
}
