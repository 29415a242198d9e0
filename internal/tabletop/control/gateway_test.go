package control

import (
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
)

var start = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// gateway is one with two backends, $1 for a million tokens of input and $2 of
// output, that stop with the connection or not.
func gateway(stops bool) *Gateway {
	row := &price.Row{Provider: "p", Model: "m", Version: "v", Rates: price.Rates{Input: sluice.Price(sluice.Dollar), Output: 2 * sluice.Price(sluice.Dollar)}}
	pool := &route.Pool{ID: "main"}
	for _, id := range []sluice.BackendID{"a", "b"} {
		pool.Backends = append(pool.Backends, &route.Backend{
			ID: id, Provider: "p", Model: "m", Dialect: "openai", Weight: 1, Price: row, Context: 100_000, MaxOutput: 8192,
			StopsOnCancel: stops, Capacity: route.Capacity{Concurrency: 1},
		})
	}
	return New(&route.Table{
		Version: "v", Pools: map[sluice.PoolID]*route.Pool{"main": pool},
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"main"}}},
	}, engine.Options{})
}

// asked is a request of 1,000 input tokens.
func asked() Ask {
	return Ask{
		Principal: sluice.Principal{Tenant: "t", Project: "p", Key: "k", Policy: &sluice.Policy{Weight: 1}},
		Model:     "m", Dialect: "openai", Counted: 1000, Bytes: 4000, MaxWait: time.Minute,
	}
}

// begin brings a request to its place.
func begin(t *testing.T, g *Gateway, a Ask) *Call {
	t.Helper()
	c, v := g.Arrive(start, a, 7)
	if v.Err != nil {
		t.Fatal(v.Err)
	}
	if c.Tag != 7 || g.Call(c.ID) != c {
		t.Fatalf("%+v", c)
	}
	place(t, g, c)
	return c
}

func place(t *testing.T, g *Gateway, c *Call) {
	t.Helper()
	grants := g.Advance(start)
	if len(grants) != 1 || grants[0].ID != c.ID || grants[0].Err != nil {
		t.Fatalf("grants: %+v", grants)
	}
	g.Begin(start, c, grants[0], false)
}

// empty fails if anything is held.
func empty(t *testing.T, g *Gateway) {
	t.Helper()
	v := g.Look(start, engine.Zoom{}, 100)
	if v.Open != 0 || v.Running != 0 || g.Open() != 0 || len(v.Top) != 0 {
		t.Errorf("held: %+v", v)
	}
}

const nano = sluice.Nano(1000) // of a token of input

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		stops bool
		end   func(g *Gateway, c *Call) Ended
		in    sluice.Tokens
		out   sluice.Tokens
		from  sluice.UsageSource
	}{
		{"complete", true, func(g *Gateway, c *Call) Ended { return g.Complete(start, c, 1010, 200, 300) }, 1010, 300, sluice.UsageReported},
		{"its client leaves", true, func(g *Gateway, c *Call) Ended {
			g.Tokens(start, c, 1010, 0, 100)
			return g.End(start, c, 1010, 0, sluice.Cancelled, sluice.ClientGone, false)
		}, 1000, 100, sluice.UsageEstimated},
		{"its client leaves before anything came", true, func(g *Gateway, c *Call) Ended {
			return g.End(start, c, 1010, 0, sluice.Cancelled, sluice.ClientGone, false)
		}, 1000, 0, sluice.UsageEstimated},
		{"its client leaves, and the backend goes on", false, func(g *Gateway, c *Call) Ended {
			g.Tokens(start, c, 1010, 0, 100)
			return g.End(start, c, 1010, 0, sluice.Cancelled, sluice.ClientGone, false)
		}, 1000, 256, sluice.UsageEstimated}, // half of what nothing is known of
		{"it breaks after content", true, func(g *Gateway, c *Call) Ended {
			g.Tokens(start, c, 1010, 0, 100)
			if n := g.Failed(start, c, 1010, 0, Failure{Reason: sluice.UpstreamTruncated}); n.Step != engine.Fail {
				t.Error("an attempt follows content")
			}
			return g.End(start, c, 1010, 0, sluice.Failed, sluice.UpstreamTruncated, false)
		}, 1000, 100, sluice.UsageEstimated},
		{"it is refused for good", true, func(g *Gateway, c *Call) Ended {
			f := Failure{Reason: sluice.UpstreamRefused, Refused: true, Final: true}
			g.Failed(start, c, 1010, 0, f)
			return g.End(start, c, 1010, 0, sluice.Failed, f.Reason, true)
		}, 0, 0, sluice.UsageNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gateway(c.stops)
			call := begin(t, g, asked())
			e := c.end(g, call)
			u := e.Usage
			if u.InputTotal() != c.in || u.OutputTotal() != c.out || u.Source != c.from || e.Twice || e.Late {
				t.Errorf("got %+v, want %d in, %d out, %v", e, c.in, c.out, c.from)
			}
			if want := nano * (sluice.Nano(c.in) + 2*sluice.Nano(c.out)); e.Cost != want {
				t.Errorf("cost %v, want %v", e.Cost, want)
			}
			empty(t, g)
		})
	}
}

// TestFurtherAttempt: what a failed attempt took is charged once, with the next.
func TestFurtherAttempt(t *testing.T) {
	g := gateway(true)
	c := begin(t, g, asked())
	first := c.Place.Backend.ID
	if n := g.Failed(start, c, 1010, 0, Failure{Reason: sluice.UpstreamError}); n.Step != engine.Queue || c.Running() {
		t.Fatalf("%+v", n)
	}
	place(t, g, c)
	if c.Place.Backend.ID == first || c.Attempts != 2 {
		t.Errorf("attempt %d on %s after %s", c.Attempts, c.Place.Backend.ID, first)
	}
	if e := g.Complete(start, c, 1010, 0, 50); e.Usage.InputTotal() != 2010 || e.Usage.OutputTotal() != 50 || e.Cost != nano*2110 {
		t.Errorf("%+v", e)
	}
	empty(t, g)
}

// TestWaits: who leaves a queue, or is told that it waits in vain, has used nothing.
func TestWaits(t *testing.T) {
	g := gateway(true)
	a, b := begin(t, g, asked()), begin(t, g, asked())
	c, v := g.Arrive(start, asked(), 0)
	if v.Err != nil || len(g.Advance(start)) != 0 {
		t.Fatal("it got a place that there is not")
	}
	if e := g.Leave(start, c, sluice.ClientGone); e.Cost != 0 || e.Twice {
		t.Errorf("%+v", e)
	}
	late := asked()
	late.MaxWait = time.Second
	d, _ := g.Arrive(start, late, 0)
	grants := g.Advance(start.Add(2 * time.Second))
	if len(grants) != 1 || grants[0].ID != d.ID || grants[0].Err == nil {
		t.Fatalf("%+v", grants)
	}
	g.Refused(d, grants[0].Err.Reason)
	g.Complete(start, a, 1000, 0, 1)
	g.Complete(start, b, 1000, 0, 1)
	empty(t, g)
}

// TestReports: a stream is told of with its first token, every 64, and with the
// first one a second after the last report.
func TestReports(t *testing.T) {
	g := gateway(true)
	c := begin(t, g, asked())
	at := start
	told := func(n sluice.Tokens, after time.Duration) sluice.Tokens {
		at = at.Add(after)
		g.Tokens(at, c, 1000, 0, n)
		return c.told
	}
	for i, x := range []struct {
		n     sluice.Tokens
		after time.Duration
		want  sluice.Tokens
	}{{1, 0, 1}, {64, 0, 1}, {65, 0, 65}, {70, 900 * time.Millisecond, 65}, {71, 100 * time.Millisecond, 71}, {134, 0, 71}, {135, 0, 135}} {
		next, due := c.NextReport()
		should := x.n >= next || !at.Add(x.after).Before(due)
		if got := told(x.n, x.after); got != x.want || should != (got == x.n) {
			t.Errorf("%d: told of %d, want %d; it said that it waits for %d or %v", i, got, x.want, next, due)
		}
	}
}

// TestHardBudgetInSteps: a hard budget holds an answer in steps, and cuts it where
// there is no room for the next.
func TestHardBudgetInSteps(t *testing.T) {
	g := gateway(true)
	a := asked()
	a.Bound = 8000
	p := &sluice.Policy{Weight: 1, HardSpend: true}
	// The input's bound, and 2,000 tokens of output.
	p.Limits[sluice.ScopeKey] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(nano * (4000 + 2*2000))}}
	a.Principal.Policy = p
	c := begin(t, g, a)
	if c.Most() != 8000 || c.heldTo != engine.StepTokens {
		t.Fatalf("at most %d, held to %d", c.Most(), c.heldTo)
	}
	for n := sluice.Tokens(1); ; n++ {
		if d, short := g.Tokens(start, c, 1000, 0, n); short {
			if n < 1700 || n > 2000 || c.heldTo > 2000 {
				t.Errorf("it was cut at %d, held to %d", n, c.heldTo)
			}
			break
		} else if d.Stop || n == 2000 {
			t.Fatalf("at %d: %+v", n, d)
		}
	}
	e := g.Shorten(start, c, 1000, 0)
	if e.Outcome != sluice.Completed || e.Reason != sluice.BudgetStop {
		t.Errorf("%+v", e)
	}
	empty(t, g)
	if _, v := g.Arrive(start, a, 0); v.Err == nil || v.Err.Reason != sluice.BudgetSpent {
		t.Errorf("the next one: %+v", v)
	}
}

// TestEstimatesAreLearned: from what backends report of answers that are whole.
func TestEstimatesAreLearned(t *testing.T) {
	g := gateway(true)
	for range 200 {
		g.Complete(start, begin(t, g, asked()), 1100, 0, 40)
	}
	c := begin(t, g, asked())
	if w := c.Work; w.Input < 1080 || w.Input > 1110 || w.Output < 35 || w.Output > 45 || w.OutputHold > 60 || w.OutputBound != 8192 {
		t.Errorf("%+v", w)
	}
	big := asked()
	big.Principal.Policy = &sluice.Policy{InputCeiling: 500}
	if _, v := g.Arrive(start, big, 0); v.Err == nil || v.Err.Reason != sluice.NeverFits {
		t.Errorf("more than its ceiling: %+v", v)
	}
}
