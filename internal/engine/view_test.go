package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// zoom prints a picture of a pool, a tenant or a request.
func (s *script) zoom(a args) {
	z := engine.Zoom{Pool: sluice.PoolID(a.text("pool", "")), Tenant: sluice.TenantID(a.text("tenant", "")), Request: sluice.RequestID(a.text("id", ""))}
	v := s.eng.Dump(s.now, z, int(a.number("limit", 10)))
	for i := range v.Pools {
		s.poolView(&v.Pools[i])
	}
	for i := range v.Requests {
		s.requestView(&v.Requests[i])
	}
	if len(v.Pools)+len(v.Requests) == 0 {
		s.printf("nothing\n")
	}
}

func (s *script) poolView(p *engine.PoolView) {
	s.printf("pool %s: %d wait, the oldest for %v\n", p.ID, p.Waiting, p.Oldest)
	for _, c := range p.Classes {
		if c.Tenants == 0 && c.Refused == (sched.Refusals{}) {
			continue
		}
		s.printf("  %v: %d wait, %d run, %d work/s, share %d of %d due, gap %d%s\n", c.Class, c.Waiting, c.Running, c.Rate, c.Share, c.Fair, c.Gap, refusals(&c.Refused, c.PerMinute))
	}
	for _, f := range p.Flows {
		s.printf("  %s %v: %d wait, %d run, %d work/s, share %d of %d due, lead %d", f.Tenant, f.Class, f.Waiting, f.Running, f.Rate, f.Share, f.Fair, f.Lead)
		if f.Parked {
			s.printf(", parked")
		}
		s.printf("%s\n", refusals(&f.Refused, f.PerMinute))
		for _, j := range f.Projects {
			if len(f.Projects) > 1 {
				s.printf("    %s: %d wait, %d run, lead %d\n", j.Project, j.Waiting, j.Running, j.Lead)
			}
		}
	}
	for _, k := range p.Contracts {
		s.printf("  contract of %s: %v of %d slots, %d kv; %d inside, %d outside, %d wait", k.Tenant, k.Used, k.Slots, k.KV, k.Running, k.Over, k.Waiting)
		if !k.Paid {
			s.printf(", used up")
		}
		s.printf("\n")
	}
	if g := p.Gathering; g != nil {
		s.printf("  gathers %q for %s: %d of %d has passed\n", g.Backend, g.Request, g.Passed, g.Most)
	}
}

func refusals(r *sched.Refusals, perMinute int64) string {
	var b strings.Builder
	r.Each(func(why sluice.Reason, n int64) { fmt.Fprintf(&b, ", %v %d", why, n) })
	if perMinute > 0 {
		fmt.Fprintf(&b, " (%d a minute)", perMinute)
	}
	return b.String()
}

func (s *script) requestView(r *engine.RequestView) {
	s.printf("%s %s: %s %v in %s, %v old, cost %d, needs %v, holds %v\n", r.ID, r.Phase, r.Owner.Tenant, r.Class, r.Pool, r.Age, r.Cost, r.Needs, r.Holds)
	if r.Phase == engine.Waiting {
		s.printf("  waited %v of %v, behind %d, about %v more, %v was predicted\n", r.Waited, r.MaxWait, r.Position, r.Wait, r.Predicted)
	}
	if r.Phase == engine.Running {
		s.printf("  on %s for %v, inside %v, expires in %v\n", r.Backend, r.Ran, r.Inside, r.Expires)
	}
	if r.Passed > 0 {
		s.printf("  %d of %d has passed it, gathering %v\n", r.Passed, r.Most, r.Gathering)
	}
	for _, l := range r.Lacks {
		s.printf("  lacks %s:", l.What)
		switch l.What {
		case engine.LackLimit:
			s.printf(" %v %v %d, held %d", l.Refusal.Owner.Scope, l.Refusal.Limit.Dimension, l.Refusal.Limit.Amount, l.Refusal.Held)
		case engine.LackFlow:
			s.printf(" %d", l.N)
		case engine.LackGathering:
			s.printf(" for %s", l.Request)
		case engine.LackTurn, engine.LackBackend, engine.LackSplit:
		default:
			s.printf(" dimension %d, needs %d, free %d", l.Dimension, l.Need, l.Free)
			if l.Kept > 0 {
				whose := string(l.Tenant)
				if whose == "" {
					whose = l.Class.String()
				}
				s.printf(", kept %d for %s", l.Kept, whose)
			}
		}
		s.printf("\n")
	}
}

// TestDumpIsBounded fills two pools with more than a picture shows, and looks at
// each zoom.
func TestDumpIsBounded(t *testing.T) {
	table := parseTable(t, "pool a queue=100000\nbackend b pool=a conc=2\npool c\nbackend d pool=c conc=2\nmodel m pools=a\n")
	e := engine.New(engine.Config{Table: table})
	now := start
	const tenants, each = 300, 20
	for i := range tenants * each {
		v := e.Arrive(now, engine.Call{
			ID: sluice.RequestID(fmt.Sprintf("r%d", i)), Model: "m", Dialect: "openai", Class: sluice.Class(i % sluice.NumClasses), MaxWait: -1,
			Principal: sluice.Principal{Tenant: sluice.TenantID(fmt.Sprintf("t%d", i%tenants)), Project: "p", Key: "k"},
			Work:      sluice.Work{Input: 10, Output: 10, OutputHold: 10, OutputBound: 10},
		})
		if v.Err != nil {
			t.Fatal(v.Err)
		}
	}
	e.Advance(now)
	const limit = 7
	check := func(name string, z engine.Zoom, pools, flows, requests int) {
		t.Helper()
		v := e.Dump(now, z, limit)
		got := [3]int{len(v.Pools), 0, len(v.Requests)}
		for _, p := range v.Pools {
			got[1] += len(p.Flows)
		}
		if want := [3]int{pools, flows, requests}; got != want {
			t.Errorf("%s: got %v pools, flows and requests, want %v", name, got, want)
		}
	}
	check("all", engine.Zoom{}, 2, 3*limit, 0)
	if v := e.Dump(now, engine.Zoom{Flows: 30}, 1000); len(v.Pools[0].Flows) != 3*30 {
		t.Errorf("%d flows where 30 of each class are asked for", len(v.Pools[0].Flows))
	}
	if v := e.Dump(now, engine.Zoom{}, 1000); len(v.Pools[0].Flows) != 3*10 {
		t.Errorf("%d flows where nothing is asked for", len(v.Pools[0].Flows))
	}
	check("levels", engine.Zoom{Levels: true}, 2, 0, 0)
	check("pool", engine.Zoom{Pool: "a"}, 1, 3*limit, 3*limit)
	check("no pool", engine.Zoom{Pool: "nosuch"}, 0, 0, 0)
	check("tenant", engine.Zoom{Tenant: "t5"}, 1, 1, limit) // of one class in one pool
	check("no tenant", engine.Zoom{Tenant: "nosuch"}, 0, 0, 0)
	check("request", engine.Zoom{Request: "r4000"}, 0, 0, 1)
	check("no request", engine.Zoom{Request: "nosuch"}, 0, 0, 0)
	if v := e.Dump(now, engine.Zoom{Pool: "a"}, 0); len(v.Requests) != 0 {
		t.Errorf("a limit of 0 shows %d requests", len(v.Requests))
	}
	// Far back in a flow the position is estimated, and still in order.
	far := e.Dump(now, engine.Zoom{Request: "r5705"}, 1).Requests[0]
	near := e.Dump(now, engine.Zoom{Request: "r305"}, 1).Requests[0]
	if far.Position <= near.Position {
		t.Errorf("the 20th of a tenant is behind %d, its second behind %d", far.Position, near.Position)
	}
}

// TestWaitOfAnArrival looks at a pool as it fills and before it has served anything: that
// an arrival waits is known then, and not for how long.
func TestWaitOfAnArrival(t *testing.T) {
	e := engine.New(engine.Config{Table: parseTable(t, "pool a\nbackend b pool=a conc=2\nmodel m pools=a\n")})
	check := func(what string, wait time.Duration, unknown bool) {
		t.Helper()
		if p := e.Dump(start, engine.Zoom{Pool: "a"}, 5).Pools[0]; p.Wait != wait || p.Unknown != unknown {
			t.Errorf("%s: an arrival waits %v, unknown %v; want %v, %v", what, p.Wait, p.Unknown, wait, unknown)
		}
	}
	check("empty", 0, false)
	for i, what := range []string{"a place is free", "full", "one waits"} {
		e.Arrive(start, engine.Call{
			ID: sluice.RequestID(fmt.Sprintf("r%d", i)), Model: "m", Dialect: "openai", MaxWait: -1,
			Principal: sluice.Principal{Tenant: "t", Project: "p", Key: "k"},
			Work:      sluice.Work{Input: 10, Output: 10, OutputHold: 10, OutputBound: 10},
		})
		e.Advance(start)
		check(what, 0, i > 0)
	}
	if err := e.Settle(start.Add(2*time.Second), "r0", engine.Actual{Usage: sluice.Usage{Input: 10, Output: 10}}); err != nil {
		t.Fatal(err)
	}
	e.Advance(start.Add(2 * time.Second))
	if p := e.Dump(start.Add(2*time.Second), engine.Zoom{Pool: "a"}, 5).Pools[0]; p.Wait == 0 || p.Unknown {
		t.Errorf("one was served: an arrival waits %v, unknown %v", p.Wait, p.Unknown)
	}
}

// TestDumpChangesNothing runs one history twice, looking at everything at each
// step the second time: the same grants come.
func TestDumpChangesNothing(t *testing.T) {
	play := func(look bool) string {
		table := parseTable(t, "pool a\nclass standard pool=a share=500 ceiling=700\nclass batch pool=a share=500\ncontract big pool=a slots=2 work=50\nbackend b pool=a conc=3 kv=900\nbackend c pool=a conc=3 kv=900\nmodel m pools=a\n")
		e := engine.New(engine.Config{Table: table, Options: engine.Options{}})
		var out strings.Builder
		now, running := start, []sluice.RequestID{}
		for i := range 400 {
			now = now.Add(37 * time.Millisecond)
			id := sluice.RequestID(fmt.Sprintf("r%d", i))
			in := sluice.Tokens(20 + i*37%500)
			e.Arrive(now, engine.Call{
				ID: id, Model: "m", Dialect: "openai", Class: sluice.Class(1 + i%2), MaxWait: -1, Bytes: 10,
				Principal: sluice.Principal{Tenant: []sluice.TenantID{"big", "x", "y", "z"}[i*7%4], Project: "p", Key: "k"},
				Work:      sluice.Work{Input: in, InputBound: in, Output: 50, OutputHold: 50, OutputBound: 50},
			})
			for _, g := range e.Advance(now) {
				fmt.Fprintln(&out, g.ID, g.Err == nil, g.Queued)
				if g.Err == nil {
					running = append(running, g.ID)
				}
			}
			if look {
				for _, z := range []engine.Zoom{{}, {Pool: "a"}, {Tenant: "big"}, {Request: id}, {Levels: true}} {
					e.Dump(now, z, 5)
				}
			}
			if i%3 == 2 && len(running) > 0 {
				if err := e.Settle(now, running[0], engine.Actual{Usage: sluice.Usage{Input: in, Output: 30}}); err != nil {
					t.Fatal(err)
				}
				running = running[1:]
			}
		}
		return out.String()
	}
	if play(false) != play(true) {
		t.Error("who is served depends on who looks")
	}
}

// BenchmarkDump looks at a pool in which 100,000 requests of 10,000 tenants wait.
func BenchmarkDump(b *testing.B) {
	table := &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools: map[sluice.PoolID]*route.Pool{"a": {
			ID: "a", Queue: route.QueueBounds{Requests: 1 << 20},
			Backends: []*route.Backend{{ID: "b", Dialect: "openai", Weight: 1, Capacity: route.Capacity{Concurrency: 8}}},
		}},
	}
	e := engine.New(engine.Config{Table: table})
	policy := &sluice.Policy{}
	policy.Limits[sluice.ScopeKey] = []sluice.Limit{{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1000}}
	for i := range 100_000 {
		e.Arrive(start, engine.Call{
			ID: sluice.RequestID(fmt.Sprintf("r%d", i)), Model: "m", Dialect: "openai", MaxWait: time.Hour,
			Principal: sluice.Principal{Tenant: sluice.TenantID(fmt.Sprintf("t%d", i%10_000)), Project: "p", Key: sluice.KeyID(fmt.Sprintf("k%d", i)), Policy: policy},
			Free:      true,
		})
	}
	e.Advance(start)
	for _, c := range []struct {
		name string
		z    engine.Zoom
	}{{"all", engine.Zoom{}}, {"levels", engine.Zoom{Levels: true}}, {"pool", engine.Zoom{Pool: "a"}}, {"tenant", engine.Zoom{Tenant: "t77"}}, {"request", engine.Zoom{Request: "r99999"}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				e.Dump(start, c.z, 20)
			}
		})
	}
}
