package handover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/exchange"
	"sluice/internal/fakellm"
	"sluice/internal/handover"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/store"
	"sluice/internal/store/storetest"
	"sluice/internal/upstream"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a provider with a batch API, and a store that desks share.
type house struct {
	t        *testing.T
	net      egresstest.Net
	provider *fakellm.Server
	db       *store.DB
	dialect  wire.Dialect
	table    *route.Table
	target   *upstream.Target
	limits   []sluice.Limit                       // of the tenant
	most     int64                                // bytes of results that are read; 0 for the default
	around   func(next http.Handler) http.Handler // of the provider; nil for nothing

	mu    sync.Mutex
	asked map[string]int // of the provider, by method and what
}

// ServeHTTP notes what the provider is asked, and asks it.
func (h *house) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var what strings.Builder
	what.WriteString(r.Method)
	for part := range strings.SplitSeq(strings.TrimPrefix(r.URL.Path, "/v1"), "/") {
		if part != "" && !strings.ContainsAny(part, "-_") {
			what.WriteString(" " + part)
		}
	}
	h.mu.Lock()
	h.asked[what.String()]++
	h.mu.Unlock()
	if h.around != nil {
		h.around(h.provider).ServeHTTP(w, r)
		return
	}
	h.provider.ServeHTTP(w, r)
}

// times is how often the provider was asked for something.
func (h *house) times(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[what]
}

// made is how many batches the provider was asked for that it has made.
func (h *house) made() int {
	return len(h.provider.Account(fakellm.Filter{}).Served) / 20
}

// mangle changes the results that the provider gives.
func (h *house) mangle(change func(results []string) []string) {
	h.around = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/content") && !strings.HasSuffix(r.URL.Path, "/results") {
				next.ServeHTTP(w, r)
				return
			}
			heard := httptest.NewRecorder()
			next.ServeHTTP(heard, r)
			lines := change(strings.Split(strings.TrimSpace(heard.Body.String()), "\n"))
			w.Header().Set("Content-Type", heard.Header().Get("Content-Type"))
			all := strings.Join(lines, "\n")
			w.Header().Set("Content-Length", strconv.Itoa(len(all)))
			w.WriteHeader(heard.Code)
			_, _ = io.WriteString(w, all)
		})
	}
}

// keeper is a store of batches that may be lost to a process.
type keeper struct {
	handover.Store
	d *desk
}

func (k keeper) HandedOver(ctx context.Context, id, ref string) (bool, error) {
	if dies := k.d.dies; dies != nil {
		<-dies
		return false, errLost
	}
	return k.Store.HandedOver(ctx, id, ref)
}

// desk is one process.
type desk struct {
	*jobs.Desk
	h     *house
	agent *handover.Agent
	gate  *admit.Gate
	up    *upstream.Client
	lost  atomic.Bool
	last  engine.View   // when it ended
	dies  chan struct{} // the process dies before it knows what a provider calls a batch; nil for never

	mu      sync.Mutex
	entries []ledger.Entry
	how     map[string]int
	done    [2]int // lines that came back undone, and done
}

// books is a journal and a store that may be lost to a process.
type books struct {
	jobs.Store
	d *desk
}

var errLost = errors.New("the process is dead")

func (b books) Post(ctx context.Context, id jobs.JobID, now time.Time, posts []jobs.Posting) ([]int, error) {
	if b.d.lost.Load() {
		return nil, errLost
	}
	return b.Store.Post(ctx, id, now, posts)
}

func (b books) Beat(ctx context.Context, worker string, until time.Time) error {
	if b.d.lost.Load() {
		return errLost
	}
	return b.Store.Beat(ctx, worker, until)
}

func (b books) Retire(context.Context, string) error        { return nil }
func (b books) Begin(ledger.Reserve, ledger.Dispatch) error { return nil }
func (b books) Dispatch(ledger.Dispatch) error              { return nil }
func (b books) Checkpoint(ledger.Checkpoint) error          { return nil }
func (b books) Sync(context.Context) error                  { return nil }
func (b books) Settle(e ledger.Entry) error {
	if b.d.lost.Load() {
		return errLost
	}
	b.d.mu.Lock()
	b.d.entries = append(b.d.entries, e)
	b.d.mu.Unlock()
	return b.d.h.db.Append(context.Background(), []ledger.Entry{e})
}

// at runs f in a bubble with a provider whose batches have a fault, and its requests.
func at(t *testing.T, d wire.Dialect, fault string, f func(t *testing.T, h *house), requests ...fakellm.Rule) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		h := &house{t: t, dialect: d, db: storetest.Open(t, storetest.SQLite(t), store.Options{}), asked: map[string]int{}}
		script := &fakellm.Script{Models: map[string][]fakellm.Rule{"sim-small": requests}}
		if fault != "" {
			script.Models["batch"] = []fakellm.Rule{{Fault: fault}}
		}
		var err error
		if h.provider, err = fakellm.New(fakellm.Options{Seed: 7, Script: script}); err != nil {
			t.Fatal(err)
		}
		base, _ := url.Parse("http://provider/v1")
		h.target = &upstream.Target{BaseURL: base, Dialect: d, HandOver: upstream.HandOver{On: true, LeastLines: 5, Window: 6 * time.Hour, Slack: time.Hour}}
		row := &price.Row{
			Provider: "sim", Model: "sim-small", Version: "v1", Rates: price.Rates{Input: 2_000_000_000, Output: 4_000_000_000},
			Variants: map[string][]price.Tier{"batch": {{Rates: price.Rates{Input: 1_000_000_000, Output: 2_000_000_000}}}},
		}
		pool := &route.Pool{ID: "main", Backends: []*route.Backend{{ID: "b", Provider: "sim", Model: "sim-small", Dialect: string(d), Weight: 1, Price: row, Context: 131_072, MaxOutput: 4096}}}
		h.table = &route.Table{Version: "t1", Pools: map[sluice.PoolID]*route.Pool{"main": pool}, Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"main"}}}}
		server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
		var wg sync.WaitGroup
		l := h.net.Listen("provider:80")
		wg.Go(func() { server.Serve(l) })
		f(t, h)
		server.Close()
		wg.Wait()
		h.provider.Close()
		time.Sleep(time.Minute) // net/http lingers
	})
}

// start starts a process.
func (h *house) start() *desk {
	d := &desk{h: h, how: map[string]int{}}
	table := func() *route.Table { return h.table }
	target := func(sluice.BackendID) (*upstream.Target, bool) { return h.target, true }
	d.up = upstream.New(upstream.Options{MaxAnswer: 16 << 10, Dialer: egress.New(egress.Options{Dial: h.net.Dial})})
	d.gate = admit.New(engine.New(engine.Config{Table: h.table}), admit.Options{})
	d.agent = handover.New(handover.Options{Upstream: d.up, Target: target, Store: keeper{h.db, d}, MaxResults: h.most, Hooks: handover.Hooks{
		Batch: func(_ sluice.ProviderID, how string) { d.mu.Lock(); d.how[how]++; d.mu.Unlock() },
		Line: func(_ sluice.ProviderID, done bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if done {
				d.done[1]++
			} else {
				d.done[0]++
			}
		},
	}})
	b := books{h.db, d}
	x := exchange.New(exchange.Options{
		Gate: d.gate, Journal: b, Learned: estimate.New(estimate.Options{}), Upstream: d.up, Table: table, HandOver: d.agent,
		Target: target,
	})
	d.Desk = jobs.New(jobs.Options{Store: b, Run: x.Run, Table: table, Principal: func(p sluice.Principal) (sluice.Principal, error) {
		p.Policy = &sluice.Policy{Weight: 1, Mode: sluice.Enforce}
		p.Policy.Limits[sluice.ScopeTenant] = h.limits
		return p, nil
	}})
	d.Start(h.t.Context())
	return d
}

// stop ends a process in order, or kills it.
func (d *desk) stop(kill bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d.lost.Store(kill)
	if d.dies != nil {
		time.AfterFunc(time.Millisecond, func() { close(d.dies) }) // once it is stopping
	}
	d.agent.Close()
	d.Close(ctx)
	d.up.Close()
	d.last = d.gate.Look(engine.Zoom{}, 0)
	d.gate.Close()
}

// submit submits n lines.
func (d *desk) submit(n int, window time.Duration) jobs.JobID {
	t := d.h.t
	t.Helper()
	j := jobs.NewJob{Kind: jobs.OpenAIBatch, Op: wire.Chat, Endpoint: "/v1/chat/completions", Caller: sluice.Principal{Tenant: "acme", Project: "web", Key: "k"}, Window: window}
	var b strings.Builder
	for i := range n {
		if d.h.dialect == wire.Anthropic {
			j.Kind, j.Op, j.Endpoint = jobs.MessageBatch, wire.Messages, "/v1/messages"
			fmt.Fprintf(&b, `{"custom_id":"c%d","params":{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"t%d"}]}}`+"\n", i, i)
			continue
		}
		fmt.Fprintf(&b, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"t%d"}]}}`+"\n", i, i)
	}
	w, err := d.Create(t.Context(), jobs.NewFile{Tenant: "acme", Project: "web", Name: "in.jsonl", Purpose: jobs.PurposeBatch})
	if err == nil {
		err = w.Write(t.Context(), []byte(b.String()))
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j.Input = f.ID
	job, err := d.Submit(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return job.ID
}

// ended waits for a job's end.
func (h *house) ended(id jobs.JobID, most time.Duration) jobs.Job {
	h.t.Helper()
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(5 * time.Second) {
		synctest.Wait()
		j, err := h.db.Job(h.t.Context(), "", id)
		if err != nil {
			h.t.Fatal(err)
		}
		if j.State.Ended() {
			return j
		}
	}
	j, _ := h.db.Job(h.t.Context(), "", id)
	h.t.Fatalf("the job has not ended: %+v", j.Counts)
	return j
}

// billed is what the ledger's sums say that the tenant pays for.
func (h *house) billed() (requests int64, cost sluice.Nano) {
	h.t.Helper()
	rows, err := h.db.Usage(h.t.Context(), ledger.UsageQuery{Owner: ledger.Of("acme")})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range rows {
		requests, cost = requests+r.Requests, cost+r.Cost
	}
	return requests, cost
}

// without has the provider not know of some paths.
func without(suffix string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, suffix) {
				http.NotFound(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
