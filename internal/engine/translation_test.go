package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

// twoDialects is a model of two backends of the client's dialect and one of another,
// each with room for one request.
func twoDialects() *engine.Engine {
	free := &price.Row{Rates: price.Rates{Input: -1, Output: -1}}
	p := &route.Pool{ID: "p"}
	for _, d := range []string{"anthropic", "openai", "openai"} {
		p.Backends = append(p.Backends, &route.Backend{
			ID: sluice.BackendID(fmt.Sprint(d, len(p.Backends))), Dialect: d, Weight: 1, Price: free, Lacks: route.NeedCache, Capacity: route.Capacity{Concurrency: 1},
		})
	}
	return engine.New(engine.Config{Table: &route.Table{
		Pools:  map[sluice.PoolID]*route.Pool{"p": p},
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"p"}}},
	}})
}

// Requests fill the backends of their own dialect first. One that translates goes on
// to the others where those are full, and waits for nothing; one that does not waits.
func TestOwnDialectFirst(t *testing.T) {
	for _, err := range []*sluice.Error{nil, sluice.Invalid("seed", "has no place")} {
		eng := twoDialects()
		var got []string
		for i := range 3 {
			v := eng.Arrive(start, engine.Call{
				ID: sluice.RequestID(fmt.Sprint("r", i)), Model: "m", Dialect: "openai", MaxWait: -1, Needs: route.NeedTools,
				Others: []route.Translation{{Dialect: "anthropic", Needs: route.NeedTools, Err: err}},
			})
			if v.Err != nil {
				t.Fatal(v.Err)
			}
			for _, g := range eng.Advance(start) {
				got = append(got, g.Backend.Dialect)
				for _, c := range g.Candidates {
					if c.Backend == "anthropic0" && err != nil && (c.Left != string(route.LeftTranslate) || c.Field != "seed") {
						t.Errorf("it is explained as %+v", c)
					}
				}
			}
		}
		want := "[openai openai anthropic]"
		if err != nil {
			want = "[openai openai]"
		}
		if fmt.Sprint(got) != want {
			t.Errorf("with %v: got %v, want %s", err, got, want)
		}
	}
}

// Nothing is decided of a request whose translations are untried, but that a backend of
// its own dialect takes it at once.
func TestUntriedTranslations(t *testing.T) {
	eng := twoDialects()
	call := func(id string) engine.Call {
		return engine.Call{ID: sluice.RequestID(id), Model: "m", Dialect: "openai", MaxWait: -1, Others: []route.Translation{{Dialect: "anthropic", Untried: true}}}
	}
	for i := range 2 {
		if v := eng.Arrive(start, call(fmt.Sprint("r", i))); v.Translate || v.Err != nil {
			t.Fatalf("got %+v while there is room", v)
		}
		g := eng.Advance(start)
		if len(g) != 1 || g[0].Backend.Dialect != "openai" || g[0].Candidates[0].Left != string(route.LeftOther) {
			t.Fatalf("granted %+v", g)
		}
	}
	c := call("r2")
	if v := eng.Arrive(start, c); !v.Translate || v.Err != nil || v.Pool != "" {
		t.Errorf("got %+v without room", v)
	}
	c.Others = []route.Translation{{Dialect: "anthropic"}} // under the same id: nothing is known of it
	if v := eng.Arrive(start, c); v.Err != nil || v.Translate {
		t.Errorf("got %+v", v)
	}
	if g := eng.Advance(start); len(g) != 1 || g[0].Backend.Dialect != "anthropic" {
		t.Errorf("granted %+v", g)
	}
	next := eng.AttemptEnded(start, "r0", engine.Result{Reason: sluice.UpstreamError, Others: []route.Translation{{Dialect: "anthropic"}}})
	if next.Step != engine.Queue {
		t.Errorf("after a failure: %+v, want it to wait for the other dialect", next)
	}
}

// A request that no backend of its own dialect serves, and that does not translate, is
// refused for the field; one that lacks something everywhere else is told both.
func TestRefusedForTheTranslation(t *testing.T) {
	eng := twoDialects()
	others := []route.Translation{{Dialect: "openai", Err: sluice.Invalid("top_k", "has no place there")}}
	v := eng.Arrive(start, engine.Call{ID: "a", Model: "m", Dialect: "gemini", Others: others})
	if v.Err == nil || v.Err.Param != "top_k" {
		t.Errorf("got %v", v.Err)
	}
	v = eng.Arrive(start, engine.Call{ID: "b", Model: "m", Dialect: "anthropic", Needs: route.NeedCache, Others: others})
	if v.Err == nil || v.Err.Reason != sluice.CapabilityMissing || !strings.Contains(v.Err.Msg, "anthropic0 lacks cache; openai1 speaks the openai dialect, and top_k has no place there") {
		t.Errorf("got %v", v.Err)
	}
	v = eng.Arrive(start, engine.Call{ID: "c", Model: "m", Dialect: "gemini"})
	if v.Err == nil || !strings.Contains(v.Err.Msg, "no backend serves in the gemini dialect") {
		t.Errorf("got %v", v.Err)
	}
}
