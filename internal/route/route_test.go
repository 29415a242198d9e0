package route_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func backend(id string, weight int64) *route.Backend {
	return &route.Backend{ID: sluice.BackendID(id), Dialect: "openai", Weight: weight, Price: &price.Row{}, Capacity: route.Capacity{Concurrency: 1000}}
}

func places(weights ...int64) (out []*route.Place) {
	for i, w := range weights {
		out = append(out, &route.Place{Backend: backend(fmt.Sprint("b", i), w)})
	}
	return out
}

func take(p *route.Place, now time.Time, n route.Need) (t route.Taken) {
	p.Take(now, &n, &t)
	return t
}

// run begins and ends an attempt.
func run(p *route.Place) {
	t := take(p, start, route.Need{})
	p.Give(&t)
}

func choose(ps []*route.Place) *route.Place {
	left := make([]route.Left, len(ps))
	for i, p := range ps {
		left[i] = p.Usable(start, &route.Need{})
	}
	var c route.Chooser
	c.Configure(route.ByLoad, route.Affinity{}, ps)
	i := c.Choose(start, left, &route.Asking{})
	if i < 0 {
		return nil
	}
	return ps[i]
}

func TestIdlePlacesShareByWeight(t *testing.T) {
	ps := places(1, 2, 4)
	got := map[sluice.BackendID]int{}
	for range 700 {
		p := choose(ps)
		run(p)
		got[p.Backend.ID]++
	}
	for i, want := range []int{100, 200, 400} {
		if n := got[ps[i].Backend.ID]; n != want {
			t.Errorf("backend %d got %d, want %d", i, n, want)
		}
	}
}

func TestLoadedPlacesShareByWeight(t *testing.T) {
	ps := places(1, 2, 4)
	for range 700 {
		take(choose(ps), start, route.Need{})
	}
	for i, want := range []int64{100, 200, 400} {
		if n := ps[i].Running(); n < want-1 || n > want+1 {
			t.Errorf("backend %d runs %d, want %d ± 1", i, n, want)
		}
	}
}

func TestEqualPlacesTakeTurns(t *testing.T) {
	ps := places(1, 1, 1)
	var got []string
	for range 6 {
		p := choose(ps)
		run(p)
		got = append(got, string(p.Backend.ID))
	}
	if want := []string{"b0", "b1", "b2", "b0", "b1", "b2"}; !slices.Equal(got, want) {
		t.Errorf("turns %v, want %v", got, want)
	}
	late := &route.Place{Backend: backend("late", 1)}
	late.Join(ps)
	ps = append(ps, late)
	n := 0
	for range 8 {
		p := choose(ps)
		run(p)
		if p == late {
			n++
		}
	}
	if n != 2 {
		t.Errorf("a new backend got %d of 8 turns among four, want 2", n)
	}
}

func TestEligible(t *testing.T) {
	ask := route.Ask{Dialect: "openai", Work: sluice.Work{Input: 1000, OutputHold: 100, OutputBound: 100}}
	for _, c := range []struct {
		name string
		edit func(*route.Backend, *route.Ask)
		want route.Left
	}{
		{"plain", func(*route.Backend, *route.Ask) {}, route.Chosen},
		{"other dialect", func(b *route.Backend, _ *route.Ask) { b.Dialect = "anthropic" }, route.LeftDialect},
		{"translated", func(b *route.Backend, a *route.Ask) {
			b.Dialect, a.Others = "anthropic", []route.Translation{{Dialect: "anthropic"}}
		}, route.Chosen},
		{"what it needs when translated", func(b *route.Backend, a *route.Ask) {
			b.Dialect, b.Lacks, a.Needs = "anthropic", route.NeedCache|route.NeedTools, route.NeedCache
			a.Others = []route.Translation{{Dialect: "gemini"}, {Dialect: "anthropic", Needs: route.NeedTools}}
		}, route.LeftLacks},
		{"not translated", func(b *route.Backend, a *route.Ask) {
			b.Dialect, a.Others = "anthropic", []route.Translation{{Dialect: "anthropic", Err: sluice.Invalid("seed", "x")}}
		}, route.LeftTranslate},
		{"its own dialect asks for no translation", func(_ *route.Backend, a *route.Ask) {
			a.Others = []route.Translation{{Dialect: "openai", Err: sluice.Invalid("seed", "x")}}
		}, route.Chosen},
		{"weight 0", func(b *route.Backend, _ *route.Ask) { b.Weight = 0 }, route.LeftDrained},
		{"short context", func(b *route.Backend, _ *route.Ask) { b.Context = 999 }, route.LeftContext},
		{"little memory", func(b *route.Backend, _ *route.Ask) { b.Capacity.KVTokens = 999 }, route.LeftContext},
		{"no price", func(b *route.Backend, _ *route.Ask) { b.Price = nil }, route.LeftUnpriced},
		{"ceiling", func(b *route.Backend, _ *route.Ask) { b.Price, b.Ceiling = nil, &price.Row{} }, route.Chosen},
		{"no price, nothing billed", func(b *route.Backend, a *route.Ask) { b.Price, a.Free = nil, true }, route.Chosen},
	} {
		b, a := backend("b", 1), ask
		c.edit(b, &a)
		if got := route.Eligible(b, &a); got != c.want {
			t.Errorf("%s: left %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPlaceFits(t *testing.T) {
	p := &route.Place{Backend: backend("b", 1)}
	p.Backend.Capacity = route.Capacity{Concurrency: 2, KVTokens: 1000, PrefillTokens: 500}
	first := take(p, start, route.Need{KV: 600, Prefill: 400})
	if got := p.Usable(start, &route.Need{KV: 100, Prefill: 200}); got != route.LeftFull {
		t.Errorf("prefill of 200 beside 400 of 500: %q, want full", got)
	}
	p.Answered(&first)
	if got := p.Usable(start, &route.Need{KV: 100, Prefill: 200}); got != route.Chosen {
		t.Errorf("after the first token: %q, want usable", got)
	}
	if got := p.Usable(start, &route.Need{KV: 401}); got != route.LeftFull {
		t.Errorf("KV of 401 beside 600 of 1000: %q, want full", got)
	}
	second := take(p, start, route.Need{KV: 1})
	if got := p.Usable(start, &route.Need{}); got != route.LeftFull {
		t.Errorf("third of two slots: %q, want full", got)
	}
	p.Give(&first)
	p.Give(&second)
	huge := take(p, start, route.Need{KV: 9999, Prefill: 9999}) // clamped, so it runs alone
	if got := p.Usable(start, &route.Need{KV: 1}); got != route.LeftFull {
		t.Errorf("beside one that fills it: %q, want full", got)
	}
	p.Give(&huge)
	if p.Running() != 0 || p.KV() != 0 || p.Prefill() != 0 {
		t.Errorf("left over: %d, %d, %d", p.Running(), p.KV(), p.Prefill())
	}
}

func TestVisit(t *testing.T) {
	m := &route.Model{Pools: []sluice.PoolID{"a", "b"}, Fallback: []sluice.PoolID{"c", "d"}}
	for _, c := range []struct {
		from sluice.PoolID
		want string
	}{
		{"", "a b c* d*"}, {"a", "a b c* d*"}, {"b", "b a c* d*"}, {"d", "d* a b c*"},
	} {
		var got []string
		m.Visit(c.from, func(p sluice.PoolID, fallback bool) bool {
			s := string(p)
			if fallback {
				s += "*"
			}
			got = append(got, s)
			return false
		})
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("from %q: %s, want %s", c.from, s, c.want)
		}
	}
}

func TestRetryable(t *testing.T) {
	for why := range sluice.Reason(sluice.NumReasons) {
		want := slices.Contains([]sluice.Reason{
			sluice.UpstreamConnect, sluice.UpstreamTLS, sluice.UpstreamLimited, sluice.UpstreamError, sluice.UpstreamTimeout,
			sluice.UpstreamStalled, sluice.UpstreamTruncated, sluice.UpstreamMalformed, sluice.UpstreamTooLarge, sluice.UpstreamRedirect,
		}, why)
		if got := route.Retryable(why); got != want {
			t.Errorf("%v: retryable %v, want %v", why, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	good := func() *route.Table {
		return &route.Table{
			Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}}},
			Pools:  map[sluice.PoolID]*route.Pool{"p": {ID: "p", Backends: []*route.Backend{backend("b", 1)}}},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		edit func(*route.Table)
		want string
	}{
		{"unknown pool", func(t *route.Table) { t.Models["m"].Fallback = []sluice.PoolID{"x"} }, `names the pool "x"`},
		{"no pool", func(t *route.Table) { t.Models["m"].Pools = nil }, "has no pool"},
		{"shared backend", func(t *route.Table) {
			t.Pools["q"] = &route.Pool{ID: "q", Backends: t.Pools["p"].Backends}
		}, "belongs to one pool"},
		{"too many backends", func(t *route.Table) {
			for i := range sched.MaxBackends {
				t.Pools["p"].Backends = append(t.Pools["p"].Backends, backend(fmt.Sprint("c", i), 1))
			}
		}, `pool "p" has 257 backends, more than 256`},
		{"negative weight", func(t *route.Table) { t.Pools["p"].Backends[0].Weight = -1 }, "negative weight"},
		{"misfiled", func(t *route.Table) { t.Pools["p"].ID = "q" }, "under another name"},
		{"key twice", func(t *route.Table) { t.Pools["p"].Backends[0].Keys = []route.Key{{ID: "k"}, {ID: "k"}} }, "credential without a name of its own"},
		{"breaker", func(t *route.Table) { t.Breaker.Share = 1001 }, "breaker out of range"},
		{"limit of zero", func(t *route.Table) { t.Fleet = []sluice.Limit{{Window: sluice.PerDay}} }, "positive amount"},
		{"gauge with a window", func(t *route.Table) {
			t.Models["m"].Limits = []sluice.Limit{{Dimension: sluice.Concurrency, Window: sluice.PerDay, Amount: 1}}
		}, "limit concurrency per day"},
	} {
		table := good()
		c.edit(table)
		if err := table.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := (*route.Table)(nil).Validate(); err == nil {
		t.Error("a missing table is valid")
	}
}
