package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// A request that nobody can serve is refused with what each backend lacks.
func TestRefusedForWhatIsLacking(t *testing.T) {
	free := &price.Row{Rates: price.Rates{Input: -1, Output: -1}}
	backend := func(id sluice.BackendID, region string, lacks route.Needs, context sluice.Tokens) *route.Backend {
		return &route.Backend{ID: id, Provider: "p", Dialect: "openai", Region: region, Weight: 1, Price: free, Lacks: lacks, Context: context, Capacity: route.Capacity{Concurrency: 9}}
	}
	table := &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}, Fallback: []sluice.PoolID{"b"}}},
		Pools: map[sluice.PoolID]*route.Pool{
			"a": {ID: "a", Backends: []*route.Backend{backend("x", "eu", route.NeedImage|route.NeedTools, 0), backend("y", "us", 0, 100)}},
			"b": {ID: "b", Backends: []*route.Backend{backend("z", "", route.NeedTools, 0)}},
		},
	}
	for _, tt := range []struct {
		name      string
		needs     route.Needs
		input     sluice.Tokens
		regions   []string
		providers []sluice.ProviderID
		backend   sluice.BackendID // that gets it
		reason    sluice.Reason
		says      []string
	}{
		{name: "text", backend: "x"},
		{name: "an image", needs: route.NeedImage, backend: "y"},
		{name: "a long text and an image", needs: route.NeedImage, input: 1000, backend: "z"},
		{name: "tools and a long text", needs: route.NeedTools | route.NeedImage, input: 1000, reason: sluice.CapabilityMissing, says: []string{"x lacks image, tools", "y takes at most 100 input tokens", "z lacks tools"}},
		{name: "a region", regions: []string{"us"}, needs: route.NeedTools, backend: "y"},
		{name: "a region of which nobody can", regions: []string{"eu"}, needs: route.NeedTools, reason: sluice.CapabilityMissing, says: []string{"x lacks tools", "y is in no region that this key may use", "z is in no region"}},
		{name: "a region that is none", regions: []string{"mars"}, reason: sluice.ModelNotAllowed, says: []string{"x is in no region", "z is in no region"}},
		{name: "narrowed to nothing", regions: []string{""}, reason: sluice.ModelNotAllowed, says: []string{"z is in no region"}},
		{name: "a provider", providers: []sluice.ProviderID{"q"}, reason: sluice.ModelNotAllowed, says: []string{"x is of no provider that this key may use"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eng := engine.New(engine.Config{Table: table})
			v := eng.Arrive(start, engine.Call{
				ID: "r", Model: "m", Dialect: "openai", Needs: tt.needs, Work: sluice.Work{Input: tt.input},
				Principal: sluice.Principal{Tenant: "t", Key: "k", Policy: &sluice.Policy{Regions: tt.regions, Providers: tt.providers}},
			})
			if tt.backend != "" {
				if g := eng.Advance(start); len(g) != 1 || g[0].Backend == nil || g[0].Backend.ID != tt.backend {
					t.Errorf("got %v, %+v, want %s", v.Err, g, tt.backend)
				}
				return
			}
			if v.Err == nil || v.Err.Reason != tt.reason {
				t.Fatalf("got %v, want %v", v.Err, tt.reason)
			}
			for _, part := range tt.says {
				if !strings.Contains(v.Err.Msg, part) {
					t.Errorf("%q does not say %q", v.Err.Msg, part)
				}
			}
		})
	}
}

// What an attempt's candidates say of one that lacks something.
func TestCandidatesSayWhatIsLacking(t *testing.T) {
	table := parseTable(t, "pool p\nbackend a pool=p conc=9\nbackend b pool=p conc=9\nmodel m pools=p")
	table.Pools["p"].Backends[0].Lacks = route.NeedImage | route.NeedSeed
	eng := engine.New(engine.Config{Table: table})
	eng.Arrive(start, engine.Call{ID: "r", Model: "m", Dialect: "openai", Needs: route.NeedImage | route.NeedTools})
	g := eng.Advance(start)
	if want := []engine.Candidate{{Pool: "p", Backend: "a", Left: "capability", Lacks: route.NeedImage}, {Pool: "p", Backend: "b"}}; len(g) != 1 || !slices.Equal(g[0].Candidates, want) {
		t.Errorf("got %+v, want %+v", g, want)
	}
}

// fleet draws a table: pools of backends in regions and domains, of providers, each
// lacking something, and models that fall back from one to another.
func fleet(t *rapid.T) *route.Table {
	free := &price.Row{Rates: price.Rates{Input: -1, Output: -1}}
	table := &route.Table{Models: map[sluice.ModelID]*route.Model{}, Pools: map[sluice.PoolID]*route.Pool{}, Retries: route.RetryPolicy{Attempts: route.MaxAttempts, Unbounded: true}}
	var ids []sluice.PoolID
	for i := range rapid.IntRange(1, 4).Draw(t, "pools") {
		p := &route.Pool{ID: sluice.PoolID(fmt.Sprint("p", i))}
		for j := range rapid.IntRange(1, 3).Draw(t, "backends") {
			p.Backends = append(p.Backends, &route.Backend{
				ID: sluice.BackendID(fmt.Sprintf("b%d%d", i, j)), Dialect: "openai", Weight: 1, Price: free,
				Provider: sluice.ProviderID(rapid.SampledFrom([]string{"own", "rented"}).Draw(t, "provider")),
				Region:   rapid.SampledFrom([]string{"", "eu", "us", "asia"}).Draw(t, "region"),
				Domain:   rapid.SampledFrom([]string{"d1", "d2", "d3"}).Draw(t, "domain"),
				Lacks:    route.Needs(rapid.Uint32Range(0, 7).Draw(t, "lacks")),
				MaxRisk:  sluice.Risk(rapid.IntRange(0, 3).Draw(t, "max risk")),
				Capacity: route.Capacity{Concurrency: rapid.Int64Range(1, 3).Draw(t, "slots")},
			})
		}
		table.Pools[p.ID], ids = p, append(ids, p.ID)
	}
	n := rapid.IntRange(1, len(ids)).Draw(t, "first")
	table.Models["m"] = &route.Model{ID: "m", Pools: ids[:n], Fallback: ids[n:], MaxRisk: map[sluice.PoolID]sluice.Risk{}}
	for _, id := range ids {
		table.Models["m"].MaxRisk[id] = sluice.Risk(rapid.IntRange(0, 3).Draw(t, "max risk of pool"))
	}
	return table
}

// A request only ever gets a backend whose record covers its needs, in a region and
// of a provider that its caller may use, which takes its risk label in that pool: at first, on each further attempt, after
// waits, and whatever table comes into force meanwhile.
func TestEveryAttemptIsCoveredAndPermitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := start
		table := fleet(t)
		eng := engine.New(engine.Config{Table: table})
		calls := map[sluice.RequestID]engine.Call{}
		running := map[sluice.RequestID]bool{}
		pick := func(from map[sluice.RequestID]bool) sluice.RequestID {
			return rapid.SampledFrom(slices.Sorted(maps.Keys(from))).Draw(t, "which")
		}
		for i := range rapid.IntRange(5, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0, 1:
				c := engine.Call{
					ID: sluice.RequestID(fmt.Sprint("r", i)), Model: "m", Dialect: "openai", MaxWait: time.Hour, Work: sluice.Work{Input: 1},
					Needs: route.Needs(rapid.Uint32Range(0, 7).Draw(t, "needs")),
					Risk:  sluice.Risk(rapid.IntRange(0, 3).Draw(t, "asked risk")),
					Principal: sluice.Principal{Tenant: "t", Key: "k", Policy: &sluice.Policy{
						Regions:   rapid.SampledFrom([][]string{nil, {"eu"}, {"eu", "us"}, {""}}).Draw(t, "regions"),
						Providers: rapid.SampledFrom([][]sluice.ProviderID{nil, {"own"}}).Draw(t, "providers"),
						Risk:      sluice.Risk(rapid.IntRange(0, 3).Draw(t, "own risk")),
					}},
				}
				if eng.Arrive(now, c).Err == nil {
					calls[c.ID] = c
				}
			case 2, 3:
				if len(running) > 0 {
					id := pick(running)
					delete(running, id)
					why := rapid.SampledFrom([]sluice.Reason{sluice.UpstreamTimeout, sluice.UpstreamLimited, sluice.UpstreamConnect}).Draw(t, "why")
					if eng.AttemptEnded(now, id, engine.Result{Reason: why}).Step == engine.Fail {
						_ = eng.Settle(now, id, engine.Actual{})
					}
				}
			case 4:
				now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second)
			case 5:
				table = fleet(t)
				plan, err := eng.Prepare(table)
				if err != nil {
					t.Fatal(err)
				}
				eng.Swap(now, plan)
			}
			for _, g := range eng.Advance(now) {
				if g.Err != nil {
					delete(running, g.ID)
					continue
				}
				running[g.ID] = true
				c, b := calls[g.ID], g.Backend
				p := c.Principal.Policy
				risk := max(c.Risk, p.Risk)
				switch {
				case b.MaxRisk != 0 && risk > b.MaxRisk:
					t.Fatalf("%s of risk %v got %s, which takes %v", g.ID, risk, b.ID, b.MaxRisk)
				case table.Models["m"].MaxRisk[g.Pool] != 0 && risk > table.Models["m"].MaxRisk[g.Pool]:
					t.Fatalf("%s of risk %v got pool %s, which takes %v", g.ID, risk, g.Pool, table.Models["m"].MaxRisk[g.Pool])
				case c.Needs&b.Lacks != 0:
					t.Fatalf("%s needs %v and got %s, which lacks %v", g.ID, c.Needs, b.ID, b.Lacks)
				case p.Regions != nil && (b.Region == "" || !slices.Contains(p.Regions, b.Region)):
					t.Fatalf("%s may go to %q and got %s in %q on attempt %d", g.ID, p.Regions, b.ID, b.Region, g.Attempt)
				case p.Providers != nil && !slices.Contains(p.Providers, b.Provider):
					t.Fatalf("%s may go to %q and got %s of %q", g.ID, p.Providers, b.ID, b.Provider)
				}
			}
		}
	})
}

// After a failure that may be its domain's, the next attempt leaves the domain while
// a backend elsewhere can serve the request; after a refusal for a rate it need not.
func TestAttemptsLeaveFailedDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := fleet(t)
		eng := engine.New(engine.Config{Table: table})
		c := engine.Call{ID: "r", Model: "m", Dialect: "openai", MaxWait: time.Hour, Needs: route.Needs(rapid.Uint32Range(0, 7).Draw(t, "needs"))}
		if eng.Arrive(start, c).Err != nil {
			return
		}
		var tried []*route.Backend
		failed := map[string]bool{}
		for {
			g := eng.Advance(start)
			if len(g) != 1 || g[0].Err != nil {
				t.Fatalf("got %+v", g)
			}
			b := g[0].Backend
			if failed[b.Domain] {
				for _, p := range table.Pools {
					for _, other := range p.Backends {
						if other.Lacks&c.Needs == 0 && !failed[other.Domain] && !slices.Contains(tried, other) {
							t.Fatalf("attempt %d is on %s in %s, where one failed, and %s in %s could serve it", g[0].Attempt, b.ID, b.Domain, other.ID, other.Domain)
						}
					}
				}
			}
			tried = append(tried, b)
			why := rapid.SampledFrom([]sluice.Reason{sluice.UpstreamTimeout, sluice.UpstreamLimited}).Draw(t, "why")
			if why == sluice.UpstreamTimeout {
				failed[b.Domain] = true
			}
			if eng.AttemptEnded(start, "r", engine.Result{Reason: why}).Step == engine.Fail {
				break
			}
		}
		for _, p := range table.Pools {
			for _, b := range p.Backends {
				if len(tried) < route.MaxAttempts && b.Lacks&c.Needs == 0 && !slices.Contains(tried, b) {
					t.Fatalf("gave up after %d attempts, and %s was not tried", len(tried), b.ID)
				}
			}
		}
	})
}

// A fallback is recorded with what says that it can stand in.
func TestGrantTellsTheEvaluation(t *testing.T) {
	table := parseTable(t, "pool p\nbackend a pool=p conc=1\npool q\nbackend b pool=q conc=1\nmodel m pools=p fallback=q")
	want := &route.Evaluation{Suite: "s", Score: "0.9", Date: "2026-11-01"}
	table.Models["m"].Evaluated = map[sluice.PoolID]*route.Evaluation{"q": want}
	eng := engine.New(engine.Config{Table: table})
	eng.Arrive(start, engine.Call{ID: "r", Model: "m", Dialect: "openai", MaxWait: time.Hour})
	if g := eng.Advance(start); g[0].Evaluated != nil {
		t.Errorf("a first choice has %+v", g[0].Evaluated)
	}
	eng.AttemptEnded(start, "r", engine.Result{Reason: sluice.UpstreamTimeout})
	if g := eng.Advance(start); len(g) != 1 || g[0].Evaluated != want || !g[0].Fallback {
		t.Errorf("got %+v", g)
	}
}

// A request tries its canary first and is served elsewhere when that fails; what is
// for other tenants or classes is told as such, and never chosen.
func TestTermsOfPools(t *testing.T) {
	table := parseTable(t, "pool p\nbackend a pool=p conc=99\npool q\nbackend b pool=q conc=99\npool s\nbackend c pool=s conc=99\nmodel m pools=p,q,s")
	table.Models["m"].Terms = map[sluice.PoolID]*route.Terms{"q": {Canary: 5000}, "s": {Tenants: []sluice.TenantID{"acme"}, Classes: []sluice.Class{sluice.Interactive}}}
	eng := engine.New(engine.Config{Table: table})
	canaries := 0
	for i := range 40 {
		id := sluice.RequestID(fmt.Sprint("r", i))
		eng.Arrive(start, engine.Call{ID: id, Model: "m", Dialect: "openai", MaxWait: time.Hour, Class: sluice.Standard, Principal: sluice.Principal{Tenant: "beta", Key: "k"}})
		g := eng.Advance(start)[0]
		if g.Canary != (g.Backend.ID == "b") || g.Backend.ID == "c" {
			t.Fatalf("%s got %s, canary %v", id, g.Backend.ID, g.Canary)
		}
		left := map[sluice.BackendID]string{}
		for _, c := range g.Candidates {
			left[c.Backend] = c.Left
		}
		if left["c"] != "terms" || !g.Canary && left["b"] != "terms" {
			t.Fatalf("%s: candidates %+v", id, g.Candidates)
		}
		if g.Canary && canaries < 2 {
			canaries++
			eng.AttemptEnded(start, id, engine.Result{Reason: sluice.UpstreamConnect})
			if g := eng.Advance(start); len(g) != 1 || g[0].Backend == nil || g[0].Backend.ID != "a" || g[0].Canary {
				t.Fatalf("%s: after the canary failed: %+v", id, g)
			}
		}
		_ = eng.Settle(start, id, engine.Actual{})
	}
	if canaries == 0 {
		t.Error("no request was a canary")
	}
}

// What one attempt may hold bounds where a request goes; where it is too much
// everywhere the request is refused with the figures.
func TestMaxSpend(t *testing.T) {
	row := func(dollars int64) *price.Row { return outputAt(dollars) }
	backend := func(id sluice.BackendID, dollars int64) *route.Backend {
		return &route.Backend{ID: id, Dialect: "openai", Weight: 1, Price: row(dollars), Capacity: route.Capacity{Concurrency: 9}}
	}
	eng := engine.New(engine.Config{Table: &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"dear"}, Fallback: []sluice.PoolID{"cheap"}, MaxSpend: sluice.Dollar / 1000}},
		Pools: map[sluice.PoolID]*route.Pool{
			"dear": {ID: "dear", Backends: []*route.Backend{backend("x", 100)}}, "cheap": {ID: "cheap", Backends: []*route.Backend{backend("y", 1)}},
		},
	}})
	for _, tt := range []struct {
		output sluice.Tokens
		want   sluice.BackendID
	}{{10, "x"}, {11, "y"}, {1000, "y"}, {1001, ""}} {
		id := sluice.RequestID(fmt.Sprint("r", tt.output))
		v := eng.Arrive(start, engine.Call{
			ID: id, Model: "m", Dialect: "openai", Work: sluice.Work{Output: 1, OutputHold: tt.output, OutputBound: tt.output},
			Principal: sluice.Principal{Tenant: "t", Key: "k", Policy: &sluice.Policy{HardSpend: true}},
		})
		if tt.want == "" {
			if v.Err == nil || v.Err.Reason != sluice.NeverFits || !strings.Contains(v.Err.Msg, "at most $0.001") || !strings.Contains(v.Err.Msg, "y may cost $0.001001") {
				t.Errorf("%d tokens: got %v", tt.output, v.Err)
			}
			continue
		}
		if g := eng.Advance(start); v.Err != nil || len(g) != 1 || g[0].Backend.ID != tt.want {
			t.Errorf("%d tokens: got %v %+v, want %s", tt.output, v.Err, g, tt.want)
		}
	}
}

// A label leaves out the backends and the pools that take less, with a word of its own;
// what no backend takes is refused with what is in the way of each. A table with other
// bounds holds for what waits, at once.
func TestRiskLeavesOut(t *testing.T) {
	table := parseTable(t, "pool p\nbackend a pool=p conc=1\nbackend b pool=p conc=1\npool q\nbackend c pool=q conc=1\nmodel m pools=p fallback=q")
	table.Pools["p"].Backends[1].MaxRisk = sluice.RiskLow
	table.Models["m"].MaxRisk = map[sluice.PoolID]sluice.Risk{"p": sluice.RiskNormal}
	eng := engine.New(engine.Config{Table: table})
	arrive := func(id sluice.RequestID, own, asked sluice.Risk) engine.Verdict {
		return eng.Arrive(start, engine.Call{
			ID: id, Model: "m", Dialect: "openai", MaxWait: time.Hour, Risk: asked,
			Principal: sluice.Principal{Tenant: "t", Key: "k", Policy: &sluice.Policy{Risk: own}},
		})
	}
	for _, tt := range []struct {
		id         sluice.RequestID
		own, asked sluice.Risk
		left       []string // of a, b and, once p has nobody, c
	}{
		{"none", 0, 0, []string{"", "other"}},
		{"asked", 0, sluice.RiskNormal, []string{"", "risk"}},
		{"own", sluice.RiskNormal, sluice.RiskLow, []string{"", "risk"}},
		{"high", sluice.RiskLow, sluice.RiskHigh, []string{"risk", "risk", ""}},
	} {
		arrive(tt.id, tt.own, tt.asked)
		g := eng.Advance(start)
		if len(g) != 1 || g[0].Err != nil {
			t.Fatalf("%s: got %+v", tt.id, g)
		}
		var left []string
		for _, c := range g[0].Candidates {
			left = append(left, c.Left)
		}
		if !slices.Equal(left, tt.left) {
			t.Errorf("%s: candidates %q, want %q", tt.id, left, tt.left)
		}
		_ = eng.Settle(start, tt.id, engine.Actual{})
	}

	arrive("runs", sluice.RiskHigh, 0)
	arrive("waits", sluice.RiskHigh, 0)
	eng.Advance(start)
	tighter := parseTable(t, "pool p\nbackend a pool=p conc=1\nbackend b pool=p conc=1\npool q\nbackend c pool=q conc=1\nmodel m pools=p fallback=q")
	tighter.Models["m"].MaxRisk = map[sluice.PoolID]sluice.Risk{"p": sluice.RiskNormal, "q": sluice.RiskNormal}
	plan, err := eng.Prepare(tighter)
	if err != nil {
		t.Fatal(err)
	}
	eng.Swap(start, plan)
	if g := eng.Advance(start); len(g) != 1 || g[0].ID != "waits" || g[0].Err == nil {
		t.Errorf("what waits got %+v", g)
	}
	if v := arrive("late", 0, sluice.RiskHigh); v.Err == nil || v.Err.Reason != sluice.ModelNotAllowed || !strings.Contains(v.Err.Msg, "c takes no request of risk high") {
		t.Errorf("got %v", v.Err)
	}
}
