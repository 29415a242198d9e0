package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
	"sluice/internal/route"
	"sluice/internal/store"
	"sluice/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the face over a real desk and a real SQLite store, with a runner in the place of
// backends and the least of a proxy before it.
type rig struct {
	t      *testing.T
	face   *Face
	desk   *jobs.Desk
	mux    *http.ServeMux
	db     *store.DB
	bounds jobs.Bounds
	keyed  atomic.Int64 // requests with a key
}

// resets is when a budget begins anew that lines of the text "spend" have spent.
var resets = time.Now().Add(time.Hour).Truncate(time.Second)

// answers is a runner: a text "fail" in a request is 400, "wait" runs until its context
// ends, all else is answered.
func answers(ctx context.Context, r *exchange.Request, c exchange.Client) exchange.Result {
	switch {
	case bytes.Contains(r.Body, []byte(`"wait"`)):
		<-ctx.Done()
		return exchange.Result{Err: &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "it was ended"}}
	case bytes.Contains(r.Body, []byte(`"spend"`)):
		return exchange.Result{Err: &sluice.Error{
			Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetSpent, Msg: "the budget is spent",
			Refusal: &sluice.Refusal{Scope: sluice.ScopeKey, ID: "k", Limit: sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay}, Reset: resets},
		}}
	case bytes.Contains(r.Body, []byte(`"fail"`)):
		return exchange.Result{Err: sluice.Invalid("messages", "are wrong")}
	}
	u := sluice.Usage{Input: 5, Output: 3, CacheRead: 2, Reasoning: 1, Source: sluice.UsageReported}
	body := fmt.Sprintf(`{"id":"x","model":%q,"usage":{"total":11}}`, r.Head.Model)
	head := exchange.Head{Status: 200, Grant: engine.Grant{Policy: "v1", Backend: &route.Backend{ID: "b1"}}, Dropped: "max_tokens=9", Upstream: http.Header{"X-Request-Id": {"theirs"}, "Sluice-Reason": {"forged"}}}
	if err := c.Answer(&head, []byte(body)); err != nil {
		return exchange.Result{Err: sluice.AsError(err)}
	}
	return exchange.Result{Usage: u, Cost: 1000}
}

// refuse is what the exchange does with what is not run, as far as it matters here.
func refuse(_ *exchange.Request, _ exchange.Client, e *sluice.Error) exchange.Result {
	return exchange.Result{Err: e}
}

func newRig(t *testing.T, bounds jobs.Bounds) *rig {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, mux: http.NewServeMux(), db: db, bounds: bounds}
	t.Cleanup(func() { db.Close() })
	r.desk = r.second()
	keys := idempotency.New(idempotency.Options{Store: db})
	keys.Start()
	t.Cleanup(keys.Close)
	r.face = New(Options{Desk: r.desk, Keys: keys})
	for _, route := range r.face.Routes() {
		r.mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, q *http.Request) { r.serve(&route, w, q) })
	}
	return r
}

// second is a further worker on the same store.
func (r *rig) second() *jobs.Desk {
	table := &route.Table{Models: map[sluice.ModelID]*route.Model{"m": {ID: "m"}}}
	d := jobs.New(jobs.Options{
		Store: r.db, Run: answers, Refuse: refuse, Table: func() *route.Table { return table }, Bounds: r.bounds,
		Principal: func(p sluice.Principal) (sluice.Principal, error) {
			p.Policy = &sluice.Policy{Class: sluice.Interactive, Weight: 1}
			return p, nil
		},
	})
	ctx, cancel := context.WithCancel(r.t.Context())
	d.Start(ctx)
	r.t.Cleanup(func() {
		cancel()
		d.Close(ctx)
	})
	return d
}

// serve is what the proxy does for a mount, as far as it matters here.
func (r *rig) serve(route *Route, w http.ResponseWriter, q *http.Request) {
	by := Caller{ID: "req_1", Dialect: route.Dialect}
	if by.Key = q.Header.Get(idempotency.Header); by.Key != "" {
		by.ID = sluice.RequestID(fmt.Sprint("req_k", r.keyed.Add(1)))
	}
	tenant, project, _ := strings.Cut(q.Header.Get("Authorization"), "/")
	by.Principal = sluice.Principal{Tenant: sluice.TenantID(tenant), Project: sluice.ProjectID(project), Key: "k"}
	if by.Dialect == "" {
		by.Dialect = wire.OpenAI
	}
	if err := route.Serve(w, q, by); err != nil {
		status, header, body := wire.Error(by.Dialect, sluice.AsError(err), by.ID, wire.ErrorOptions{})
		for name := range header {
			w.Header().Set(name, header.Get(name))
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
}

// got is an answer.
type got struct {
	status int
	header http.Header
	body   string
}

// do asks as a tenant's project, such as "acme/web".
func (r *rig) do(who, method, path string, body io.Reader, header ...string) got {
	r.t.Helper()
	q := httptest.NewRequestWithContext(r.t.Context(), method, path, body)
	q.Header.Set("Authorization", who)
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, q)
	return got{w.Code, w.Header(), w.Body.String()}
}

const acme = "acme/web"

// as decodes an answer that must have a status.
func as[T any](t *testing.T, g got, status int) (v T) {
	t.Helper()
	if g.status != status {
		t.Fatalf("got %d %s, want %d", g.status, g.body, status)
	}
	if err := json.Unmarshal([]byte(g.body), &v); err != nil {
		t.Fatalf("%v in %s", err, g.body)
	}
	return v
}

// part is one part of a form.
type part struct{ name, file, value string }

func form(parts ...part) (kind string, body *bytes.Buffer) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, p := range parts {
		var to io.Writer
		if p.file != "" {
			to, _ = w.CreateFormFile(p.name, p.file)
		} else {
			to, _ = w.CreateFormField(p.name)
		}
		_, _ = io.WriteString(to, p.value)
	}
	w.Close()
	return w.FormDataContentType(), body
}

func (r *rig) upload(who, content string) file {
	r.t.Helper()
	kind, body := form(part{"purpose", "", "batch"}, part{"file", "in.jsonl", content})
	return as[file](r.t, r.do(who, "POST", "/v1/files", body, "Content-Type", kind), 200)
}

// until looks until an answer says so.
func (r *rig) until(what string, look func() bool) {
	r.t.Helper()
	for range 1000 {
		if look() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.t.Fatalf("it never came about that %s", what)
}

func chat(id, text string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":%q}]}}`+"\n", id, text)
}

func create(input jobs.FileID, more string) io.Reader {
	return strings.NewReader(fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"%s}`, input, more))
}

// finished is a batch that has ended.
func (r *rig) finished(who string, id jobs.JobID) (b batch) {
	r.t.Helper()
	r.until("batch "+string(id)+" ends", func() bool {
		b = as[batch](r.t, r.do(who, "GET", "/v1/batches/"+string(id), nil), 200)
		return b.Status.Ended()
	})
	return b
}
