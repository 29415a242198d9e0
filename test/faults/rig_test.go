package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/app"
	"sluice/internal/auth"
	"sluice/internal/fakellm"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	trustTestAuthority()
	goleak.VerifyTestMain(m)
}

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// size is how large a test is, from the environment.
func size(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: write a whole number from 1", name, v)
	}
	return n
}

// eventually polls until ok, and fails the test if that never comes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// backend is one backend of a gateway under test.
type backend struct {
	name, url string // url without the version
	fallback  bool
	timeouts  string // such as "idle: 2s"
}

// layout is what a gateway under test is made of.
type layout struct {
	backends []backend
	top      string // further top-level lines
	soft     string // further fields of the plan whose spend is soft
	capacity int    // of each backend; 0 is 4096
	options  func(*app.Options)
}

// The two tenants: one whose spend is hard and one whose is soft.
const hard, soft = "hard", "soft"

// gateway is a gateway under test and what outlives it: its directory and keys.
type gateway struct {
	t    *testing.T
	file string
	data string
	env  map[string]string // what its configuration refers to
	log  *transcript

	addr, adminAddr string
	app             *app.App // in this process
	proc            *process // or in another
	client          *http.Client
	options         func(*app.Options)
}

// transcript is what a gateway has said.
type transcript struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// prepare writes a configuration. Nothing runs yet.
func prepare(t *testing.T, l layout) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{
		t: t, file: filepath.Join(dir, "sluice.yaml"), data: filepath.Join(dir, "data"), env: map[string]string{}, log: &transcript{}, options: l.options,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}},
	}
	for _, tenant := range []string{hard, soft} {
		minted, err := auth.Mint("test")
		must(t, err)
		g.env[keyVariable(tenant)] = minted.Key.Reveal()
	}
	g.env["DATA"] = g.data
	g.configure(l)
	t.Cleanup(func() {
		g.end()
		g.client.CloseIdleConnections()
		if t.Failed() {
			said := g.log.String()
			t.Logf("the gateway's log ends with:\n%s", said[max(0, len(said)-8<<10):])
		}
	})
	return g
}

func keyVariable(tenant string) string { return strings.ToUpper(tenant) + "_KEY" }

// configure writes the configuration file.
func (g *gateway) configure(l layout) {
	g.t.Helper()
	var b strings.Builder
	if l.capacity == 0 {
		l.capacity = 4096
	}
	if !strings.Contains(l.top, "lame_duck") {
		l.top += "\nlame_duck: 0s"
	}
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ndata: ${DATA}\nlog: {level: warn}\n%s\nproviders:\n", l.top)
	for _, k := range l.backends {
		fmt.Fprintf(&b, "  p-%s: {dialect: openai, engine: other, base_url: %q, price: {input: $1, output: $2}, timeouts: {%s}}\n", k.name, k.url+"/v1", k.timeouts)
	}
	main, spare := "", ""
	for _, k := range l.backends {
		line := fmt.Sprintf("      - {name: %s, provider: p-%[1]s, model: sim-small, context: 128k, max_output: 8k, capacity: {concurrency: %d}}\n", k.name, l.capacity)
		if k.fallback {
			spare += line
		} else {
			main += line
		}
	}
	model := "{pools: [main]}"
	if spare != "" {
		spare, model = "  spare:\n    backends:\n"+spare, "{pools: [main], fallback: [{pool: spare, allow_unevaluated: true}]}"
	}
	fmt.Fprintf(&b, `pools:
  main:
    backends:
%s%smodels:
  m: %s
plans:
  hard: {spend: hard, limits: {spend_per_day: $1000}}
  soft: {spend: soft%s}
tenants:
  hard: {plan: hard, keys: {main: {secret: "${HARD_KEY}"}}}
  soft: {plan: soft, keys: {main: {secret: "${SOFT_KEY}"}}}
`, main, spare, model, l.soft)
	must(g.t, os.WriteFile(g.file, []byte(b.String()), 0o600))
}

// start runs it in this process.
func start(t *testing.T, l layout) *gateway {
	t.Helper()
	g := prepare(t, l)
	g.start()
	return g
}

func (g *gateway) start() {
	g.t.Helper()
	o := app.Options{
		ConfigPath: g.file, Stderr: g.log,
		Getenv: func(name string) (string, bool) { v, ok := g.env[name]; return v, ok },
	}
	if g.options != nil {
		g.options(&o)
	}
	a, err := app.New(g.t.Context(), o)
	must(g.t, err, a.Start(g.t.Context()))
	g.app, g.addr, g.adminAddr = a, a.Addr(), a.AdminAddr()
}

// end takes down what runs, if anything does.
func (g *gateway) end() {
	g.t.Helper()
	if g.app != nil {
		a := g.app
		g.app = nil
		if err := a.Stop(context.WithoutCancel(g.t.Context())); err != nil {
			g.t.Errorf("stop: %v", err)
		}
	}
	if g.proc != nil {
		p := g.proc
		g.proc = nil
		p.kill()
	}
}

// ask is one request of a client.
type ask struct {
	tenant string // default soft
	prompt string
	faults string // of the provider
	tokens int    // default 3
	whole  bool   // not streamed
	header http.Header
}

func (a *ask) body() string {
	if a.tokens == 0 {
		a.tokens = 3
	}
	return fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`,
		!a.whole, a.tokens, fmt.Sprintf("[[tokens=%d!%s]] %s", a.tokens, a.faults, a.prompt))
}

// got is what a client got.
type got struct {
	status int
	header http.Header
	body   string
	err    error // of connecting, or of reading the body
	took   time.Duration
}

// whole reports a streamed or plain answer that came to its end.
func (r *got) whole() bool {
	return r.status == 200 && r.err == nil && (strings.HasSuffix(r.body, "data: [DONE]\n\n") || strings.Contains(r.body, `"finish_reason":"`))
}

func (r *got) String() string {
	return fmt.Sprintf("%d %v %v …%s", r.status, r.err, r.took, r.body[max(0, len(r.body)-300):])
}

// cut reports a stream that ended in an error event and an aborted connection.
func (r *got) cut(reason sluice.Reason) bool {
	return r.status == 200 && errors.Is(r.err, io.ErrUnexpectedEOF) && !strings.Contains(r.body, "[DONE]") && strings.Contains(r.body, reason.String())
}

func (g *gateway) request(ctx context.Context, a ask) *http.Request {
	g.t.Helper()
	if a.tenant == "" {
		a.tenant = soft
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.addr+"/v1/chat/completions", strings.NewReader(a.body()))
	must(g.t, err)
	req.Header.Set("Authorization", "Bearer "+g.env[keyVariable(a.tenant)])
	maps.Copy(req.Header, a.header)
	return req
}

// do sends a request and reads its answer to the end.
func (g *gateway) do(a ask) (r got) {
	g.t.Helper()
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	resp, err := g.client.Do(g.request(g.t.Context(), a))
	if err != nil {
		return got{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return got{status: resp.StatusCode, header: resp.Header, body: string(b), err: err}
}

// stream is a request whose first content has come.
type stream struct {
	done   chan got // one place; the whole of it, once it has ended
	cut    context.CancelFunc
	header http.Header
	events atomic.Int64 // with content, that have come
}

// open sends a streamed request and returns once content has come.
func (g *gateway) open(a ask) *stream {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.t.Context()))
	resp, err := g.client.Do(g.request(ctx, a))
	must(g.t, err)
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		cancel()
		g.t.Fatalf("a stream begins with %d %s", resp.StatusCode, b)
	}
	s := &stream{done: make(chan got, 1), cut: cancel, header: resp.Header}
	begun := make(chan struct{})
	go func() {
		defer cancel()
		defer resp.Body.Close()
		s.done <- s.read(resp, begun)
	}()
	select {
	case <-begun:
	case r := <-s.done:
		g.t.Fatalf("a stream ended before its content: %v", &r)
	case <-time.After(patience):
		cancel()
		g.t.Fatal("a stream has no content")
	}
	return s
}

// read reads a stream to its end and tells when it has begun.
func (s *stream) read(resp *http.Response, begun chan<- struct{}) got {
	var all strings.Builder
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, `"content":"`) && !strings.Contains(line, `"content":""`) && s.events.Add(1) == 1 {
			close(begun)
		}
		if err == io.EOF {
			err = nil
		} else if err == nil {
			continue
		}
		return got{status: resp.StatusCode, header: resp.Header, body: all.String(), err: err}
	}
}

// result waits for the end of a stream.
func (s *stream) result(t *testing.T) got {
	t.Helper()
	select {
	case r := <-s.done:
		return r
	case <-time.After(2 * patience):
		s.cut()
		t.Fatal("a stream does not end")
		return got{}
	}
}

// operator calls the admin API; the answer's status is 0 if there was none.
func (g *gateway) operator(method, path string, into any) int {
	g.t.Helper()
	token, err := os.ReadFile(filepath.Join(g.data, "admin-token"))
	must(g.t, err)
	req, err := http.NewRequestWithContext(context.WithoutCancel(g.t.Context()), method, "http://"+g.adminAddr+path, nil)
	must(g.t, err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := g.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		g.t.Errorf("%s %s: %v in %s", method, path, err, b)
	}
	return resp.StatusCode
}

func (g *gateway) status() (s admin.Status) {
	g.t.Helper()
	g.operator(http.MethodGet, "/admin/v1/status", &s)
	return s
}

// ready is the status of the data plane's readiness.
func (g *gateway) ready() int {
	g.t.Helper()
	resp, err := g.client.Get("http://" + g.addr + "/readyz")
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// quiet waits until everything has ended and is in the store.
func (g *gateway) quiet() {
	g.t.Helper()
	eventually(g.t, "all requests have ended and are in the store", func() bool {
		s := g.status()
		return s.Open == 0 && s.Journal.Open == 0 && s.Journal.LagEntries == 0
	})
}

// books are the entries in the store of a gateway that does not run, by request.
type books map[sluice.RequestID][]ledger.Entry

// books reads the store and audits it: roll-ups are right, each request has one
// final entry and each attempt one.
func (g *gateway) books() books {
	t := g.t
	t.Helper()
	g.end()
	ctx := context.WithoutCancel(t.Context())
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(g.data, "sluice.db"), store.Options{})
	must(t, err)
	defer db.Close()
	audit, err := db.Verify(ctx)
	must(t, err)
	if !audit.OK() {
		t.Errorf("the roll-ups are not the sums of the entries: %q", audit.Differences)
	}
	b := books{}
	q := ledger.RecentQuery{Owner: ledger.Everyone(), Limit: ledger.MaxRecent}
	for {
		page, err := db.Recent(ctx, q)
		must(t, err)
		for i := range page.Entries {
			e := &page.Entries[i]
			if e.Attempt <= 1 {
				b[e.Request] = []ledger.Entry{*e}
				continue
			}
			if b[e.Request], err = db.Explain(ctx, ledger.Everyone(), e.Request); err != nil {
				t.Fatal(err)
			}
		}
		if page.Next.IsZero() {
			break
		}
		q.Before = page.Next
	}
	total := int64(0)
	for id, es := range b {
		finals := 0
		for i := range es {
			total++
			if es[i].Final {
				finals++
			}
		}
		if finals != 1 {
			t.Errorf("%s has %d final entries", id, finals)
		}
	}
	if total != audit.Entries {
		t.Errorf("the requests have %d entries, the store has %d", total, audit.Entries)
	}
	return b
}

// final is the final entry of a request that has one.
func (b books) final(id string) (e ledger.Entry, ok bool) {
	for _, e := range b[sluice.RequestID(id)] {
		if e.Final {
			return e, true
		}
	}
	return e, false
}

// only is the one entry of a ledger that has one.
func (b books) only(t *testing.T) (e ledger.Entry) {
	t.Helper()
	if len(b) != 1 {
		t.Fatalf("the ledger has %d requests, want 1: %+v", len(b), b)
	}
	for _, es := range b {
		if len(es) != 1 {
			t.Fatalf("the request has %d entries, want 1: %+v", len(es), es)
		}
		e = es[0]
	}
	return e
}

// wantLost checks an entry that a restart made of an attempt that was lost.
func wantLost(t *testing.T, e ledger.Entry) {
	t.Helper()
	if e.Outcome != sluice.Expired || e.Reason != sluice.Lost || e.Attempt != 1 || e.Cost <= 0 || e.CostHigh < e.Cost || e.Usage.Input <= 0 {
		t.Errorf("lost is %v %q, attempt %d, %+v at %v (high %v)", e.Outcome, e.Reason, e.Attempt, e.Usage, e.Cost, e.CostHigh)
	}
}

// provider is a scripted provider on its own port.
type provider struct {
	*fakellm.Server
	url string
}

// serve starts a provider that answers at once but for its faults.
func serve(t *testing.T) *provider {
	t.Helper()
	s, err := fakellm.New(fakellm.Options{Instant: true, Models: []fakellm.Model{{Name: "sim-small", Ratio: 1070, MaxEvent: 1}}})
	must(t, err)
	p := &provider{Server: s}
	p.url = "http://" + serveHandler(t, s)
	t.Cleanup(s.Close)
	return p
}

// serveHandler serves a handler until the test ends and returns its address.
func serveHandler(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		served.Wait()
	})
	return l.Addr().String()
}

// running waits until so many requests run at the provider.
func (p *provider) running(t *testing.T, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Await(ctx, func(total fakellm.Total) bool { return total.Running == n }); err != nil {
		t.Fatalf("%d requests run at the provider, want %d", p.Account(fakellm.Filter{Limit: 1}).Total.Running, n)
	}
}

// reached holds the provider to so many requests, once all have ended there: their
// clients may have had the last byte before.
func (p *provider) reached(t *testing.T, n int64) {
	t.Helper()
	p.running(t, 0)
	if got := p.Account(fakellm.Filter{Limit: 1}).Total.Requests; got != n {
		t.Errorf("%d requests reached the provider, want %d", got, n)
	}
}
