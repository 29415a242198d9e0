package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/admit"
	"sluice/internal/auth"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/exchange"
	"sluice/internal/fakellm"
	"sluice/internal/fleet"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/proxy"
	"sluice/internal/route"
	"sluice/internal/sched"
	"sluice/internal/upstream"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long leaves a test out under the race detector, which many thousand moments of a
// bubble's time make fail (golang.org/issue/78156), and which finds no more in it
// than in the other tests.
func long(t *testing.T) {
	t.Helper()
	if racing {
		t.Skip("too long for the race detector")
	}
}

// plan is what a site is made of.
type plan struct {
	backends []backend
	sharing  sched.Policy
	queue    route.QueueBounds
	tenants  map[sluice.TenantID]sluice.Policy
	retries  route.RetryPolicy
	output   int64         // typical output of a request that its bound does not cut; 0: the bound always cuts
	event    int64         // most tokens in one event; 0: 16
	ladder   ladder.Policy // of the pool; with one the last backend is pool small, of model mini
	speaks   string        // engine that the gateway takes the backends for: vllm tells its usage in every event
}

// backend is one engine and what the gateway believes that it can hold.
type backend struct {
	engine   fleet.Profile
	capacity route.Capacity
}

// site is a gateway, its provider and its clients.
type site struct {
	t        *testing.T
	net      egresstest.Net
	provider *fakellm.Server
	gate     *admit.Gate
	admin    *admin.API
	table    *route.Table
	client   *http.Client
	ctx      context.Context // of clients
	cancel   context.CancelFunc
	log      history
	bodies   bodies
	run      exchange.Runner // what the front runs requests by
	moves    moves           // of ladders
}

// endless is a typical output that every bound cuts.
const endless = 40_000

// at runs f with a site in a bubble, and judges what holds after every run: all has
// ended, once, and what the ledger says is what the provider says.
func at(t *testing.T, p plan, f func(t *testing.T, s *site)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := newSite(t, &p)
		stop := s.serve(&p)
		ended := false
		defer func() {
			s.cancel() // those that still wait, after a failure
			stop()
			if ended {
				s.audit()
			}
		}()
		f(t, s)
		ended = true
	})
}

func newSite(t *testing.T, p *plan) *site {
	s := &site{t: t}
	s.ctx, s.cancel = context.WithCancel(t.Context())
	s.log.start = time.Now()
	base, _ := url.Parse("http://provider/v1")
	target := &upstream.Target{BaseURL: base, Dialect: wire.OpenAI, Engine: p.speaks, Timeouts: upstream.Timeouts{Headers: time.Hour, FirstToken: time.Hour, Idle: time.Hour, Total: 2 * time.Hour}}
	output := p.output
	if output == 0 {
		output = endless
	}
	event := cmp.Or(p.event, 16)
	var models []fakellm.Model
	for i, b := range p.backends {
		id := fmt.Sprintf("b%d", i)
		models = append(models, fakellm.Model{Name: id, Engine: &b.engine, Output: output, MaxEvent: event})
	}
	s.table = newTable(p)
	var err error
	if s.provider, err = fakellm.New(fakellm.Options{Models: models, Seed: 7, Strict: true, Book: 1}); err != nil {
		t.Fatal(err)
	}
	hooks := s.log.admission()
	hooks.Tier = s.moves.note
	s.gate = admit.New(engine.New(engine.Config{Table: s.table}), admit.Options{Hooks: hooks})
	s.admin = newAdmin(t, s.gate)
	s.client = &http.Client{Transport: &http.Transport{DialContext: s.net.Dial, DisableCompression: true, MaxIdleConnsPerHost: 1000}}
	s.log.target = func(sluice.BackendID) (*upstream.Target, bool) { return target, true }
	return s
}

// newTable is the routing table of a plan: one pool of its backends behind model m.
func newTable(p *plan) *route.Table {
	row := &price.Row{Provider: "sim", Model: "up", Version: "v1", Rates: price.Rates{Input: 1_000_000_000, Output: 2_000_000_000}}
	pool := &route.Pool{ID: "main", Sharing: p.sharing, Queue: p.queue}
	for i, b := range p.backends {
		id := fmt.Sprintf("b%d", i)
		pool.Backends = append(pool.Backends, &route.Backend{
			ID: sluice.BackendID(id), Provider: "sim", Model: id, Dialect: "openai", Weight: 1, Price: row,
			Context: 131_072, MaxOutput: 16_384, Capacity: b.capacity, StopsOnCancel: true,
		})
	}
	if p.ladder.Mode != ladder.Off {
		return withLadder(p, pool)
	}
	return &route.Table{
		Version: "t1", Retries: p.retries, NoBreakers: p.retries.Unbounded, Pools: map[sluice.PoolID]*route.Pool{"main": pool},
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"main"}}},
	}
}

// serve starts the gateway and the provider. What it returns ends them.
func (s *site) serve(p *plan) (stop func()) {
	up := upstream.New(upstream.Options{Dialer: egress.New(egress.Options{Dial: s.net.Dial})})
	table := func() *route.Table { return s.table }
	s.run = exchange.New(exchange.Options{
		Gate: s.gate, Journal: &s.log, Learned: estimate.New(estimate.Options{}), Upstream: up,
		Table: table, Target: s.log.target, Hooks: s.log.exchange(),
	}).Run
	front := proxy.New(proxy.Options{
		Run:   s.run,
		Table: table,
		Identify: func(credential string) (sluice.Principal, error) {
			policy, ok := p.tenants[sluice.TenantID(credential)]
			if !ok {
				return sluice.Principal{}, &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated, Msg: "the API key is unknown"}
			}
			policy.Weight = max(policy.Weight, 1)
			return sluice.Principal{Tenant: sluice.TenantID(credential), Project: sluice.DefaultProject, Key: sluice.KeyID(credential), Policy: &policy}, nil
		},
		Panic: func(id sluice.RequestID, v any, stack []byte) { s.t.Errorf("panic in %s: %v\n%s", id, v, stack) },
	})
	provider := &http.Server{Handler: s.provider, ErrorLog: log.New(io.Discard, "", 0)}
	var wg sync.WaitGroup
	far, near := s.net.Listen("provider:80"), s.net.Listen("gateway:80")
	wg.Go(func() { provider.Serve(far) })
	wg.Go(func() { front.Serve(near) })
	return func() {
		s.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := front.Shutdown(ctx); err != nil {
			s.t.Errorf("shutdown: %v", err)
		}
		up.Close()
		provider.Close()
		wg.Wait()
		s.gate.Close()
		s.provider.Close()
		time.Sleep(time.Minute) // net/http lingers
	}
}

// audit judges what holds after every run.
func (s *site) audit() {
	s.t.Helper()
	st := s.status()
	if st.Open != 0 || st.Running != 0 {
		s.t.Errorf("%d requests are still open, %d running", st.Open, st.Running)
	}
	for _, p := range st.Pools {
		if err := conserved(&p); err != nil || p.Waiting != 0 {
			s.t.Errorf("at the end %d wait: %v", p.Waiting, err)
		}
		for _, b := range p.Backends {
			if b.Running != 0 || b.KVTokens != 0 || b.PrefillTokens != 0 {
				s.t.Errorf("backend %s still holds %d requests, %d tokens of memory, %d of prefill", b.Backend, b.Running, b.KVTokens, b.PrefillTokens)
			}
		}
	}
	for _, a := range st.Top {
		s.t.Errorf("%v %s still has %d requests open", a.Scope, a.ID, a.Open)
	}
	if n := s.provider.Account(fakellm.Filter{}).Total.Running; n != 0 {
		s.t.Errorf("the provider still runs %d requests", n)
	}
	s.log.audit(s.t)
}

// conserved is the sum that holds of a pool at every step.
func conserved(p *admin.PoolStatus) error {
	if out := p.Dispatched + p.Cancelled + p.Rejected + p.Moved + int64(p.Waiting); p.Enqueued != out {
		return fmt.Errorf("enqueued %d is not dispatched %d + cancelled %d + shed %d + moved %d + waiting %d", p.Enqueued, p.Dispatched, p.Cancelled, p.Rejected, p.Moved, p.Waiting)
	}
	return nil
}

// nobody keeps what the status does not ask for.
type (
	plans   admin.Plans
	tenants admin.Tenants
	keys    admin.Keys
	books   admin.Ledger
	nobody  struct {
		plans
		tenants
		keys
		books
	}
)

func newAdmin(t *testing.T, gate *admit.Gate) *admin.API {
	api, err := admin.New(admin.Options{
		Plans: nobody{}, Tenants: nobody{}, Keys: nobody{}, Ledger: nobody{},
		Admin: func(string, time.Time) (auth.AdminToken, error) { return auth.AdminToken{ID: "test"}, nil },
		View:  gate.Dump, Look: gate.Look,
	})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// status is what an operator sees.
func (s *site) status() (st admin.Status) {
	s.t.Helper()
	s.ask("/admin/v1/status?limit=1000", &st)
	return st
}

func (s *site) ask(path string, into any) {
	s.t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Authorization", "Bearer operator")
	w := httptest.NewRecorder()
	s.admin.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil || w.Code != 200 {
		s.t.Fatalf("%s answers %d %s: %v", path, w.Code, w.Body, err)
	}
}

// pool is the only pool, as an operator sees it.
func (s *site) pool() admin.PoolStatus {
	s.t.Helper()
	return s.status().Pools[0]
}

// rate is what a limit's counter says of a tenant.
func (s *site) counter(tenant, limit string) admin.Counter {
	s.t.Helper()
	for _, a := range s.status().Top {
		if a.Scope != "tenant" || a.ID != tenant {
			continue
		}
		for _, c := range a.Counters {
			if c.Limit == limit {
				return c
			}
		}
	}
	s.t.Fatalf("the status shows no %s of %s", limit, tenant)
	return admin.Counter{}
}

// served is what of a tenant was served, by the ledger.
func (l *history) served(tenant sluice.TenantID, from, to time.Duration) (work int64, requests int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.entries {
		e := &l.entries[i]
		if end := e.Ended.Sub(l.start); e.Tenant == tenant && e.Outcome == sluice.Completed && end >= from && end < to {
			work += int64(e.Usage.InputTotal() + 2*e.Usage.OutputTotal())
			requests++
		}
	}
	return work, requests
}

var _ exchange.Journal = (*history)(nil)

// The journal of a site is its log.

func (l *history) Begin(ledger.Reserve, ledger.Dispatch) error { return nil }
func (l *history) Dispatch(ledger.Dispatch) error              { return nil }
func (l *history) Checkpoint(ledger.Checkpoint) error          { return nil }
func (l *history) Sync(context.Context) error                  { return nil }

func (l *history) Settle(e ledger.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Detail = nil
	l.entries = append(l.entries, e)
	return nil
}
