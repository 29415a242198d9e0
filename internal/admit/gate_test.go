package admit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/test/bubble"
)

// table is a model m in a pool of one backend per number of slots, and a fallback
// pool of one slot.
func table(slots ...int64) *route.Table {
	pool := &route.Pool{ID: "p"}
	for i, n := range slots {
		pool.Backends = append(pool.Backends, backend(fmt.Sprint("b", i), n))
	}
	return &route.Table{
		Version: "v1",
		Models: map[sluice.ModelID]*route.Model{
			"m": {ID: "m", Pools: []sluice.PoolID{"p"}, Fallback: []sluice.PoolID{"f"}},
		},
		Pools: map[sluice.PoolID]*route.Pool{"p": pool, "f": {ID: "f", Backends: []*route.Backend{backend("spare", 1)}}},
	}
}

func backend(id string, slots int64) *route.Backend {
	return &route.Backend{
		ID: sluice.BackendID(id), Dialect: "openai", Weight: 1, Capacity: route.Capacity{Concurrency: slots},
		Price: &price.Row{Rates: price.Rates{Output: 10 * price0}},
	}
}

const price0 = sluice.Price(sluice.Dollar)

func newGate(t *testing.T, tb *route.Table, h admit.Hooks) *admit.Gate {
	g := admit.New(engine.New(engine.Config{Table: tb, Options: engine.Options{HoldTTL: 10 * time.Minute}}), admit.Options{Hooks: h})
	t.Cleanup(g.Close)
	return g
}

var ids atomic.Int64

func call(key string, p *sluice.Policy) engine.Call {
	return engine.Call{
		ID: sluice.RequestID(fmt.Sprint("r", ids.Add(1))), Model: "m", Dialect: "openai", MaxWait: -1,
		Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: sluice.KeyID(key), Policy: p},
		Work:      sluice.Work{Input: 100, OutputHold: 100, OutputBound: 100},
	}
}

func limits(hard bool, l ...sluice.Limit) *sluice.Policy {
	p := &sluice.Policy{HardSpend: hard}
	p.Limits[sluice.ScopeKey] = l
	return p
}

func mustAdmit(t *testing.T, g *admit.Gate, c engine.Call) *admit.Grant {
	t.Helper()
	grant, err := g.Admit(t.Context(), c)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return grant
}

func settle(t *testing.T, g *admit.Grant) {
	t.Helper()
	if err := g.Settle(engine.Actual{Usage: sluice.Usage{Input: 100, Output: 10}}); err != nil {
		t.Errorf("settle: %v", err)
	}
}

func reasonOf(err error) sluice.Reason { return sluice.AsError(err).Reason }

func waiting(g *admit.Gate) (n int) {
	for _, p := range g.Dump(10).Pools {
		n += p.Waiting
	}
	return n
}

func TestCancelWhileQueued(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(1), admit.Hooks{})
		p := limits(false, sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerHour, Amount: 1000})
		first := mustAdmit(t, g, call("k", p))
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error)
		start := time.Now()
		go func() {
			_, err := g.Admit(ctx, call("k", p))
			got <- err
		}()
		synctest.Wait()
		if n := waiting(g); n != 1 {
			t.Fatalf("%d wait, want 1", n)
		}
		cancel(nil)
		if err := <-got; reasonOf(err) != sluice.ClientGone || sluice.AsError(err).Kind != sluice.KindCancelled {
			t.Errorf("got %v, want client_gone", err)
		}
		if d := time.Since(start); d != 0 || waiting(g) != 0 {
			t.Errorf("after %v %d wait, want it gone at once", d, waiting(g))
		}
		settle(t, first)
		probe := call("k", p)
		probe.Work = sluice.Work{}
		after := mustAdmit(t, g, probe)
		defer after.Release(sluice.ClientGone)
		if got := after.Limits().States(nil)[0].Remaining; got != 900 {
			t.Errorf("%d tokens remain, want all but the first request's 100", got)
		}
	})
}

// A context that ends in the same instant as the grant gives the place back.
func TestCancelRacesWithGrant(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(1), admit.Hooks{})
		for range 100 {
			first := mustAdmit(t, g, call("k", nil))
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan *admit.Grant)
			go func() {
				grant, _ := g.Admit(ctx, call("k", nil))
				got <- grant
			}()
			synctest.Wait()
			go cancel()
			go settle(t, first)
			if grant := <-got; grant != nil {
				grant.Release(sluice.ClientGone)
			}
			cancel()
			synctest.Wait()
			if v := g.Dump(1); v.Open != 0 || v.Running != 0 {
				t.Fatalf("left over: %+v", v)
			}
		}
	})
}

func TestBurstOfAThousand(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const callers, slots, each = 1000, 10, 100 * time.Millisecond
		g := newGate(t, table(slots), admit.Hooks{})
		var running, most, served atomic.Int64
		start := time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				c := call(fmt.Sprint("k", i%17), nil)
				c.MaxWait = time.Minute
				grant, err := g.Admit(t.Context(), c)
				if err != nil {
					t.Errorf("refused: %v", err)
					return
				}
				defer grant.Release(sluice.InternalError)
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(each)
				running.Add(-1)
				served.Add(1)
				settle(t, grant)
			})
		}
		wg.Wait()
		if served.Load() != callers || most.Load() != slots {
			t.Errorf("%d served, at most %d at a time; want %d and %d", served.Load(), most.Load(), callers, slots)
		}
		if got, want := time.Since(start), callers/slots*each; got != want {
			t.Errorf("took %v, want %v: a slot stood empty while someone waited", got, want)
		}
		c := g.Dump(10).Pools[1].Counts
		if c.Enqueued != callers || c.Dispatched != callers {
			t.Errorf("counts %+v", c)
		}
	})
}

func TestQueueTimeoutIsExact(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var refused []sluice.Reason
		g := newGate(t, table(1), admit.Hooks{Refused: func(_ engine.Call, e *sluice.Error) { refused = append(refused, e.Reason) }})
		defer mustAdmit(t, g, call("k", nil)).Release(sluice.ReasonNone)
		c := call("k", nil)
		c.MaxWait = 1500 * time.Millisecond
		start := time.Now()
		_, err := g.Admit(t.Context(), c)
		if d := time.Since(start); reasonOf(err) != sluice.QueueTimeout || d != c.MaxWait {
			t.Errorf("%v after %v, want queue_timeout after %v", err, d, c.MaxWait)
		}
		c = call("k", nil)
		c.MaxWait = 0
		if _, err := g.Admit(t.Context(), c); reasonOf(err) != sluice.DeadlineUnmet || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("may not wait: %v, want deadline_unmet at once", err)
		}
		if len(refused) != 2 {
			t.Errorf("hooks saw %v, want both", refused)
		}
	})
}

// On a clock that moves between any two looks at it, as clocks do.
func TestWhoMayNotWaitGetsAFreePlace(t *testing.T) {
	for range 20 {
		g := newGate(t, table(1), admit.Hooks{})
		c := call("k", nil)
		c.MaxWait = 0
		first := mustAdmit(t, g, c)
		if err := first.Next(t.Context(), engine.Result{Reason: sluice.UpstreamConnect}); err != nil {
			t.Fatalf("second attempt: %v, want the fallback's free place", err)
		}
		first.Release(sluice.ReasonNone)
	}
}

func TestExpiryFreesThePlace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var expired []sluice.RequestID
		g := newGate(t, table(1), admit.Hooks{Expired: func(id sluice.RequestID) { expired = append(expired, id) }})
		dead := mustAdmit(t, g, call("k", nil))
		time.Sleep(4 * time.Minute)
		if dead.Progress(sluice.Usage{}).Stop {
			t.Fatal("stopped while it is alive")
		}
		start := time.Now()
		c := call("k", nil)
		c.MaxWait = time.Hour
		next := mustAdmit(t, g, c)
		if got, want := time.Since(start), 10*time.Minute; got != want {
			t.Errorf("the place became free after %v, want %v", got, want)
		}
		synctest.Wait()
		if len(expired) != 1 || expired[0] != dead.Grant().ID {
			t.Errorf("expired %v, want %v", expired, dead.Grant().ID)
		}
		if !dead.Progress(sluice.Usage{}).Stop {
			t.Error("an expired stream was not stopped")
		}
		if err := dead.Settle(engine.Actual{}); !errors.Is(err, engine.ErrLate) {
			t.Errorf("settle after expiry: %v, want ErrLate", err)
		}
		if err := dead.Settle(engine.Actual{}); !errors.Is(err, engine.ErrSettled) {
			t.Errorf("settle again: %v, want ErrSettled", err)
		}
		settle(t, next)
		next.Release(sluice.InternalError) // does nothing
	})
}

func TestNextFallsBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var events []string
		g := newGate(t, table(1, 1), admit.Hooks{
			Queued:  func(c engine.Call, v engine.Verdict) { events = append(events, "queued "+string(v.Pool)) },
			Granted: func(_ engine.Call, p engine.Grant) { events = append(events, "granted "+string(p.Backend.ID)) },
			Ended:   func(_ engine.Call, r engine.Result) { events = append(events, "ended "+r.Reason.String()) },
			Settled: func(engine.Call, engine.Actual, error) { events = append(events, "settled") },
		})
		grant := mustAdmit(t, g, call("k", nil))
		for _, want := range []sluice.BackendID{"b1", "spare"} {
			if err := grant.Next(t.Context(), engine.Result{Reason: sluice.UpstreamError}); err != nil {
				t.Fatal(err)
			}
			if got := grant.Grant(); got.Backend.ID != want || got.Fallback != (want == "spare") {
				t.Errorf("next place %s, fallback=%v; want %s", got.Backend.ID, got.Fallback, want)
			}
		}
		if err := grant.Next(t.Context(), engine.Result{Reason: sluice.UpstreamError}); !errors.Is(err, admit.ErrNoAttempt) {
			t.Errorf("all tried: %v, want ErrNoAttempt", err)
		}
		settle(t, grant)
		want := "[queued p granted b0 ended upstream_error granted b1 ended upstream_error granted spare ended upstream_error settled]"
		if got := fmt.Sprint(events); got != want {
			t.Errorf("hooks\n got %s\nwant %s", got, want)
		}
	})
}

// While it waits for a further attempt its context may end: the request stays open
// until its owner settles what the failed attempt took.
func TestNextEndsWithItsContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(1), admit.Hooks{})
		spare := mustAdmit(t, g, call("k", nil))
		if err := spare.Next(t.Context(), engine.Result{Reason: sluice.UpstreamError}); err != nil {
			t.Fatal(err) // it has the only slot of the fallback pool now
		}
		grant := mustAdmit(t, g, call("k", nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := grant.Next(ctx, engine.Result{Reason: sluice.UpstreamError})
		if reasonOf(err) != sluice.QueueTimeout || sluice.AsError(err).Kind != sluice.KindTimeout {
			t.Errorf("next: %v, want the context's end", err)
		}
		settle(t, grant)
		settle(t, spare)
		if v := g.Dump(1); v.Open != 0 || v.Running != 0 {
			t.Errorf("left over: %+v", v)
		}
	})
}

func TestDrain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(1), admit.Hooks{})
		running := mustAdmit(t, g, call("k", nil))
		queued := make(chan *admit.Grant)
		go func() {
			grant, _ := g.Admit(t.Context(), call("k", nil))
			queued <- grant
		}()
		synctest.Wait()
		g.Drain()
		if _, err := g.Admit(t.Context(), call("k", nil)); reasonOf(err) != sluice.ShuttingDown {
			t.Errorf("new: %v, want shutting_down", err)
		}
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			settle(t, running)
			grant := <-queued
			time.Sleep(time.Second)
			settle(t, grant)
		}()
		if err := g.Idle(t.Context()); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("idle after %v: %v, want 2s", time.Since(start), err)
		}
		if err := g.Idle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestIdleEndsWithItsContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(1), admit.Hooks{})
		defer mustAdmit(t, g, call("k", nil)).Release(sluice.ReasonNone)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Idle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("idle: %v, want the deadline", err)
		}
	})
}

func TestCloseRefusesWhatWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(1), admit.Hooks{})
		running := mustAdmit(t, g, call("k", nil))
		got := make(chan error)
		go func() {
			_, err := g.Admit(t.Context(), call("k", nil))
			got <- err
		}()
		synctest.Wait()
		g.Close()
		if err := <-got; reasonOf(err) != sluice.ShuttingDown {
			t.Errorf("waiting: %v, want shutting_down", err)
		}
		settle(t, running)
		if v := g.Dump(1); v.Open != 0 {
			t.Errorf("%d open after all have ended", v.Open)
		}
		g.Close()
	})
}

func TestSwapAllOrNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(1), admit.Hooks{})
		defer mustAdmit(t, g, call("k", nil)).Release(sluice.ReasonNone)
		got := make(chan *admit.Grant)
		go func() {
			grant, _ := g.Admit(t.Context(), call("k", nil))
			got <- grant
		}()
		synctest.Wait()
		bad := table(1)
		bad.Version = "bad"
		bad.Models["m"].Pools = []sluice.PoolID{"nowhere"}
		if err := g.Swap(bad); err == nil || g.Dump(1).Policy != "v1" {
			t.Fatalf("swap: %v, policy %s", err, g.Dump(1).Policy)
		}
		good := table(2)
		good.Version = "v2"
		if err := g.Swap(good); err != nil {
			t.Fatal(err)
		}
		grant := <-got // the second slot takes the one that waited
		if p := grant.Grant(); p.Policy != "v2" || p.Backend.ID != "b0" {
			t.Errorf("granted %+v, want a slot of v2", p)
		}
		settle(t, grant)
	})
}

func TestObserveTakesABackendOutAndBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tb := table(1)
		tb.Models["m"].Fallback = nil
		g := newGate(t, tb, admit.Hooks{})
		g.Observe(engine.Signal{Backend: "b0", Pause: 30 * time.Second})
		if _, err := g.Admit(t.Context(), call("k", nil)); reasonOf(err) != sluice.NoBackend || sluice.AsError(err).RetryAfter != 30*time.Second {
			t.Errorf("paused: %v, want no_backend for 30s", err)
		}
		time.Sleep(30 * time.Second)
		settle(t, mustAdmit(t, g, call("k", nil)))
	})
}

func TestCase_cL4_FiftyAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(100), admit.Hooks{})
		p := limits(true, sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1_000_000}) // 100 tokens at $10 per million
		var ok atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				grant, err := g.Admit(t.Context(), call("k", p))
				if err != nil {
					if r := reasonOf(err); r != sluice.BudgetHeld {
						t.Errorf("refused with %v, want budget_held", r)
					}
					return
				}
				defer grant.Release(sluice.InternalError)
				ok.Add(1)
				time.Sleep(time.Second)
				if err := grant.Settle(engine.Actual{Cost: 1_000_000}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if ok.Load() != 1 {
			t.Errorf("%d succeeded on a balance for one", ok.Load())
		}
	})
}

func TestCase_cL13_ExactlyTheLimitPasses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(16), admit.Hooks{})
		p := limits(false, sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerHour, Amount: 1000})
		var calls, passed atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for calls.Add(1) <= 1300 {
					grant, err := g.Admit(t.Context(), call("k", p))
					if err != nil {
						continue
					}
					time.Sleep(10 * time.Millisecond)
					settle(t, grant)
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		if passed.Load() != 1000 {
			t.Errorf("%d passed, want 1000", passed.Load())
		}
	})
}

func TestCase_cD2_AbortedStreams(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate(t, table(100), admit.Hooks{})
		p := limits(false, sluice.Limit{Dimension: sluice.Concurrency, Amount: 3})
		var wg sync.WaitGroup
		for range 10 { // three run, seven wait their turn; each is aborted after a second
			wg.Go(func() {
				grant, err := g.Admit(t.Context(), call("k", p))
				if err != nil {
					t.Errorf("refused: %v", err)
					return
				}
				time.Sleep(time.Second)
				_ = grant.Settle(engine.Actual{Usage: sluice.Usage{Input: 100, Output: 3}, Outcome: sluice.Cancelled, Reason: sluice.ClientGone})
			})
		}
		wg.Wait()
		start := time.Now()
		c := call("k", p)
		c.MaxWait = 0
		settle(t, mustAdmit(t, g, c))
		if time.Since(start) != 0 {
			t.Error("the next call had to wait")
		}
	})
}
