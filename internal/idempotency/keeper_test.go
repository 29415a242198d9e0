package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/idempotency/idempotencytest"
	"sluice/internal/store"
	"sluice/internal/store/storetest"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records is a Recorder that writes nothing down.
type records struct{}

func (records) Refuse(_ *exchange.Request, _ exchange.Client, e *sluice.Error) exchange.Result {
	return exchange.Result{Err: e}
}

func (records) Replayed(_ context.Context, _ *exchange.Request, of exchange.Replay) exchange.Result {
	res := exchange.Result{Head: of.Head, Pass: of.Pass}
	if of.Deliver == nil {
		res.Err = &sluice.Error{Reason: sluice.UpstreamRefused}
	} else if err := of.Deliver(); err != nil {
		res.Err = sluice.AsError(err)
	}
	return res
}

// client keeps what it gets.
type client struct {
	head *exchange.Head
	body bytes.Buffer
}

func (c *client) Events(h *exchange.Head, p []byte) error {
	c.head = h
	c.body.Write(p)
	return nil
}

func (c *client) Answer(h *exchange.Head, body []byte) error { return c.Events(h, body) }
func (c *client) Committed() bool                            { return c.head != nil }

func request(id, key, body string) *exchange.Request {
	r := &exchange.Request{
		ID: sluice.RequestID(id), Principal: sluice.Principal{Tenant: "acme"}, Head: &wire.Head{Op: wire.Chat, Model: "m"}, Body: []byte(body), Header: http.Header{},
	}
	if key != "" {
		r.Header[idempotency.Header] = []string{key}
	}
	return r
}

// backend answers after a time, and counts.
type backend struct {
	takes time.Duration
	n     atomic.Int64
}

func (b *backend) run(_ context.Context, r *exchange.Request, c exchange.Client) exchange.Result {
	n := b.n.Add(1)
	time.Sleep(b.takes)
	err := c.Answer(&exchange.Head{Status: 200}, fmt.Appendf(nil, "answer %d to %s", n, r.Body))
	if err != nil {
		return exchange.Result{Err: sluice.AsError(err)}
	}
	return exchange.Result{}
}

func keeper(t testing.TB, s idempotency.Store, next exchange.Runner, o idempotency.Options) *idempotency.Keeper {
	t.Helper()
	o.Next, o.Store, o.Record = next, s, records{}
	k := idempotency.New(o)
	k.Start()
	t.Cleanup(k.Close)
	return k
}

// Two replicas on one store that are asked at once, many times, run each key once.
func TestReplicasRunOnce(t *testing.T) {
	for name, fresh := range map[string]storetest.Fresh{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := fresh(t)
			one := storetest.Open(t, dsn, store.Options{})
			two := one // of SQLite there is one process
			if name == "postgres" {
				two = storetest.Open(t, dsn, store.Options{})
			}
			var back backend
			replicas := [...]*idempotency.Keeper{keeper(t, one, back.run, idempotency.Options{}), keeper(t, two, back.run, idempotency.Options{})}
			const keys, tries = 8, 12
			var wg sync.WaitGroup
			var answers, busy atomic.Int64
			for key := range keys {
				for try := range tries {
					wg.Go(func() {
						var c client
						res := replicas[try%2].Run(t.Context(), request(fmt.Sprintf("req_%d_%d", key, try), fmt.Sprint("k", key), "x"), &c)
						switch {
						case res.Err == nil && strings.HasSuffix(c.body.String(), " to x"):
							answers.Add(1)
						case res.Err != nil && res.Err.Reason == sluice.IdempotencyInFlight:
							busy.Add(1)
						default:
							t.Errorf("got %v, %q", res.Err, c.body.String())
						}
					})
				}
			}
			wg.Wait()
			if n := back.n.Load(); n != keys {
				t.Errorf("%d calls for %d keys", n, keys)
			}
			if answers.Load() < keys || answers.Load()+busy.Load() != keys*tries {
				t.Errorf("%d answers and %d refusals of %d", answers.Load(), busy.Load(), keys*tries)
			}
			for key := range keys { // each replica gives the answer of the other
				var a, b client
				replicas[0].Run(t.Context(), request("req_a", fmt.Sprint("k", key), "x"), &a)
				replicas[1].Run(t.Context(), request("req_b", fmt.Sprint("k", key), "x"), &b)
				if a.body.String() != b.body.String() || a.head.Replayed == "" || a.head.Replayed != b.head.Replayed {
					t.Errorf("key %d: %q and %q", key, a.body.String(), b.body.String())
				}
			}
		})
	}
}

// A key is free again once the lease of a process that died has ended, and not before; a
// process that lives keeps it however long its request takes.
func TestLeaseOfADeadProcess(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &idempotencytest.Store{}
		back := backend{takes: 10 * time.Minute}
		alive := keeper(t, s, back.run, idempotency.Options{})
		done := make(chan exchange.Result)
		go func() { done <- alive.Run(t.Context(), request("req_1", "long", "x"), &client{}) }()
		// What a process did that is not there any more.
		now := time.Now()
		dead := idempotency.Claim{Mark: idempotency.MarkOf("acme", "chat", "dead"), Tenant: "acme", Request: "req_0", Now: now, Until: now.Add(idempotency.Lease)}
		if _, err := s.ClaimKey(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		quick := keeper(t, s, (&backend{}).run, idempotency.Options{})
		time.Sleep(idempotency.Lease - time.Millisecond)
		for _, key := range []string{"long", "dead"} {
			if res := quick.Run(t.Context(), request("req_2", key, "x"), &client{}); res.Err == nil || res.Err.Kind != sluice.KindConflict {
				t.Errorf("%s: got %v while its lease lasts", key, res.Err)
			}
		}
		time.Sleep(time.Millisecond)
		if res := quick.Run(t.Context(), request("req_3", "dead", "y"), &client{}); res.Err != nil {
			t.Errorf("got %v after the lease", res.Err)
		}
		for range 8 {
			time.Sleep(time.Minute)
			res := quick.Run(t.Context(), request("req_4", "long", "x"), &client{})
			if res.Err == nil || res.Err.Reason != sluice.IdempotencyInFlight || res.Err.RetryAfter != idempotency.Lease {
				t.Fatalf("got %v of a request that runs", res.Err)
			}
		}
		<-done
		var c client
		if res := quick.Run(t.Context(), request("req_5", "long", "x"), &c); res.Err != nil || c.head.Replayed != "req_1" {
			t.Errorf("got %v, %+v", res.Err, c.head)
		}
	})
}

// A claim that was taken over, since it could not be renewed, keeps nothing.
func TestLostLease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &idempotencytest.Store{}
		slow, quick := backend{takes: 2 * time.Minute}, backend{}
		told := map[idempotency.Event]int{}
		one := keeper(t, s, slow.run, idempotency.Options{Told: func(e idempotency.Event) { told[e]++ }})
		two := keeper(t, s, quick.run, idempotency.Options{})
		done := make(chan *client)
		go func() {
			var c client
			one.Run(t.Context(), request("req_1", "k", "x"), &c)
			done <- &c
		}()
		synctest.Wait()
		s.Fail(errors.New("unreachable"))
		time.Sleep(time.Minute)
		s.Fail(nil)
		var c client
		if res := two.Run(t.Context(), request("req_2", "k", "x"), &c); res.Err != nil {
			t.Fatal(res.Err)
		}
		if first := <-done; first.head.Dropped != "idempotency-key" || told[idempotency.Lost] != 1 {
			t.Errorf("the first is told %q, %v", first.head.Dropped, told)
		}
		var again client
		if two.Run(t.Context(), request("req_3", "k", "x"), &again); again.body.String() != c.body.String() || again.head.Replayed != "req_2" {
			t.Errorf("then %q of %s", again.body.String(), again.head.Replayed)
		}
	})
}

// A tenant's flood of keys displaces its own, and not another's.
func TestFloodDisplacesItself(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &idempotencytest.Store{}
		var back backend
		k := keeper(t, s, back.run, idempotency.Options{Limits: idempotency.Limits{MaxBytes: 1 << 10, PerTenant: 100 << 10, Total: 150 << 10}})
		ask := func(tenant sluice.TenantID, n int) (replayed bool) {
			r := request(fmt.Sprintf("req_%s_%d_%d", tenant, n, time.Now().UnixNano()), fmt.Sprint("k", n), "x")
			r.Principal.Tenant = tenant
			var c client
			if res := k.Run(t.Context(), r, &c); res.Err != nil {
				t.Fatal(res.Err)
			}
			return c.head.Replayed != ""
		}
		for n := range 20 {
			ask("quiet", n)
		}
		for n := range 5000 {
			ask("loud", n)
			time.Sleep(10 * time.Millisecond)
		}
		for n := range 20 {
			if !ask("quiet", n) {
				t.Errorf("the quiet tenant has lost key %d", n)
			}
		}
		synctest.Wait()
		if l := k.Level(); l.Bytes > 150<<10 || l.Held != 0 {
			t.Errorf("%+v", l)
		}
		all, done := s.Rows()
		if all != done || all*idempotency.Overhead > 150<<10 {
			t.Errorf("%d keys, %d answers", all, done)
		}
	})
}

// A request without a key costs nothing.
func TestWithoutAKey(t *testing.T) {
	s := &idempotencytest.Store{}
	calls := 0
	k := idempotency.New(idempotency.Options{Store: s, Record: records{}, Next: func(context.Context, *exchange.Request, exchange.Client) exchange.Result {
		calls++
		return exchange.Result{}
	}})
	r, c, ctx := request("req_1", "", "x"), &client{}, t.Context()
	if n := testing.AllocsPerRun(100, func() { k.Run(ctx, r, c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.Calls() != 0 || calls == 0 {
		t.Errorf("%d calls of the store, %d of what answers", s.Calls(), calls)
	}
}

func TestStoreInMemory(t *testing.T) {
	storetest.IdempotencyStore(t, func() idempotency.Store { return &idempotencytest.Store{} })
}

// No two keys have one mark.
func TestMarksAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[ab\x00]{0,3}`)
		a := [3]string{part.Draw(t, "t"), part.Draw(t, "o"), part.Draw(t, "k")}
		b := [3]string{part.Draw(t, "t2"), part.Draw(t, "o2"), part.Draw(t, "k2")}
		one, two := idempotency.MarkOf(sluice.TenantID(a[0]), a[1], a[2]), idempotency.MarkOf(sluice.TenantID(b[0]), b[1], b[2])
		if (one == two) != (a == b) {
			t.Fatalf("%q and %q", a, b)
		}
		if back, err := idempotency.ParseMark(one.String()); err != nil || back != one {
			t.Fatal(back, err)
		}
	})
}

// What is dropped brings all within their bounds, takes from nobody who has less than
// another that keeps more, and is no more than an eighth beyond what is needed.
func TestExcess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		has := rapid.MapOfN(rapid.Map(rapid.StringMatching(`[a-f]`), func(s string) sluice.TenantID { return sluice.TenantID(s) }), rapid.Int64Range(0, 1<<20), 0, 6).Draw(t, "has")
		b := idempotency.Bounds{PerTenant: rapid.Int64Range(1<<12, 1<<20).Draw(t, "per"), Total: rapid.Int64Range(1<<12, 1<<22).Draw(t, "total")}
		out := idempotency.Excess(has, b)
		total, most, smallestCut := int64(0), int64(0), int64(1<<62)
		for tenant, n := range has {
			left := n - out[tenant]
			if out[tenant] < 0 || left < 0 || left > b.PerTenant {
				t.Fatalf("%s has %d of %d left", tenant, left, n)
			}
			total += left
			most = max(most, left)
			if out[tenant] > 0 {
				smallestCut = min(smallestCut, left)
			}
		}
		if total > b.Total {
			t.Fatalf("%d are left, of %d", total, b.Total)
		}
		if cap := b.PerTenant - b.PerTenant/8; smallestCut < min(most, cap) {
			t.Fatalf("one is left with %d, another with %d", smallestCut, most)
		}
	})
}
