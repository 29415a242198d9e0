package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/quota"
)

func TestHealth(t *testing.T) {
	run := Runtime{Ready: true}
	b := newBench(t, func(o *Options) { o.Runtime = func() Runtime { return run } })
	for name, c := range map[string]struct {
		run   Runtime
		want  int
		state string
	}{
		"ready":    {Runtime{Ready: true}, 200, "ready"},
		"starting": {Runtime{}, 503, "starting"},
		"degraded": {Runtime{Ready: true, Dependency: []Dependency{{Name: "store", State: "down", Detail: "10.1.2.3:5432 refused"}}}, 200, "degraded"},
		"draining": {Runtime{Ready: true, Draining: true}, 503, "draining"},
	} {
		run = c.run
		res := b.raw("GET", "/readyz?verbose", "", "", nil)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != c.want || !strings.Contains(string(body), c.state) {
			t.Errorf("%s: got %d %s, want %d", name, res.StatusCode, body, c.want)
		}
		if strings.Contains(string(body), "10.1.2.3") {
			t.Errorf("%s: an address is shown to anybody: %s", name, body)
		}
		if res := b.raw("GET", "/livez", "", "", nil); res.StatusCode != 200 {
			t.Errorf("%s: livez %d", name, res.StatusCode)
		}
	}
}

func TestStatus(t *testing.T) {
	view := engine.View{
		Policy: "p1", Open: 3, Running: 2,
		Pools: []engine.PoolView{{ID: "chat", Waiting: 1, ByClass: [sluice.NumClasses]int{1}, Oldest: 2 * time.Second, Backends: []engine.BackendView{{ID: "gpu-a", Running: 2, Concurrency: 64, Health: "cooling", RetryIn: time.Second}}}},
		Top: []engine.AccountView{{Scope: sluice.ScopeTenant, ID: "acme", Counters: []quota.CounterView{
			{Limit: sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerDay}, Used: 7, Remaining: -7}, // not limited
			{Limit: sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 100e9}, Used: 1e9, Held: 5e8, Remaining: 985e8},
		}}},
	}
	limit := 0
	b := newBench(t, func(o *Options) {
		o.View = func(n int) engine.View { limit = n; return view }
		o.Runtime = func() Runtime { return Runtime{Ready: true, Started: time.Now().Add(-time.Minute)} }
	})
	var s Status
	b.do("GET", "/admin/v1/status", "", 200, &s)
	if limit != maxRows || s.State != "ready" || s.Policy != "p1" || s.UptimeSeconds < 59 {
		t.Errorf("limit %d, %+v", limit, s)
	}
	if s.Pools[0].ByClass["interactive"] != 1 || s.Pools[0].Backends[0].Health != "cooling" || s.Pools[0].Backends[0].RetryInSeconds != 1 {
		t.Errorf("pools: %+v", s.Pools)
	}
	if n := len(s.Top[0].Counters); n != 1 {
		t.Fatalf("%d counters, want the limit alone: %+v", n, s.Top[0])
	}
	if c := s.Top[0].Counters[0]; c.Limit != "spend_per_month" || c.Used.String() != "$1.00" || c.Held.String() != "$0.50" {
		t.Errorf("counters: %+v", c)
	}
	b.do("GET", "/admin/v1/status?limit=1000", "", 200, nil)
	b.do("GET", "/admin/v1/status?limit=1001", "", 422, nil)
}

// TestStatusShowsWhatIsBroken says that a picture that is cut has what is broken
// and busy in it, and tells how much it leaves out.
func TestStatusShowsWhatIsBroken(t *testing.T) {
	var view engine.View
	for i := range 30 {
		p := engine.PoolView{ID: sluice.PoolID(fmt.Sprintf("p%02d", i))}
		for j := range 4 {
			p.Backends = append(p.Backends, engine.BackendView{ID: sluice.BackendID(fmt.Sprintf("b%d", j)), Health: "healthy"})
		}
		view.Pools = append(view.Pools, p)
		view.Top = append(view.Top, engine.AccountView{Scope: sluice.ScopeTenant, ID: fmt.Sprint(i)})
	}
	view.Pools[29].Backends[3].Health = "cooling"
	view.Pools[28].Waiting = 3
	view.Pools[27].Backends[0].Running = 2
	b := newBench(t, func(o *Options) { o.View = func(int) engine.View { return view } })
	var s Status
	b.do("GET", "/admin/v1/status?limit=3", "", 200, &s)
	if len(s.Pools) != 3 || s.MorePools != 27 || s.MoreTop != 27 || s.Pools[0].MoreBackends != 1 {
		t.Fatalf("%d pools, %d more, %d more scopes, %d more backends", len(s.Pools), s.MorePools, s.MoreTop, s.Pools[0].MoreBackends)
	}
	if s.Pools[0].Pool != "p29" || s.Pools[0].Backends[0].Backend != "b3" || s.Pools[1].Pool != "p28" || s.Pools[2].Pool != "p27" {
		t.Errorf("got %+v", s.Pools)
	}
}

type mistakes struct{ error }

func (mistakes) Details() []ProblemDetail {
	return []ProblemDetail{{Message: "unknown field", Location: "sluice.yaml:3:1 modles"}}
}

func TestReload(t *testing.T) {
	var err error
	var by Reload
	b := newBench(t, func(o *Options) {
		o.Reload = func(_ context.Context, who Reload) (Reloaded, error) {
			by = who
			return Reloaded{Version: "v2", Changed: true}, err
		}
	})
	var r Reloaded
	b.do("POST", "/admin/v1/config/reload", "", 200, &r)
	if r.Version != "v2" || !r.Changed {
		t.Errorf("got %+v", r)
	}
	if by.Author == "" || by.Reason != "" || by.Follow {
		t.Errorf("without a body it is by %+v, want the token's name", by)
	}
	b.do("POST", "/admin/v1/config/reload", `{"author":"ada","reason":" more of it ","follow":true}`, 200, &r)
	if want := (Reload{Author: "ada", Reason: "more of it", Follow: true}); by != want {
		t.Errorf("got %+v, want %+v", by, want)
	}
	b.do("POST", "/admin/v1/config/reload", `{"reason":"two\nlines"}`, 422, nil)
	err = mistakes{errors.New("bad")}
	if text := b.do("POST", "/admin/v1/config/reload", "", 422, nil); !strings.Contains(text, "sluice.yaml:3:1") || !strings.Contains(text, "nothing has changed") {
		t.Errorf("got %s", text)
	}
	err = errors.New("sluice.yaml is gone")
	if text := b.do("POST", "/admin/v1/config/reload", "", 422, nil); !strings.Contains(text, "is gone") {
		t.Errorf("got %s", text)
	}
	b.do("GET", "/admin/v1/config/reload", "", 405, nil)
	newBench(t).do("POST", "/admin/v1/config/reload", "", 409, nil)
}
