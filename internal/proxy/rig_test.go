package proxy

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
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
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
	"sluice/internal/fetch"
	"sluice/internal/hook"
	"sluice/internal/idempotency"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/stateful"
	"sluice/internal/upstream"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Canaries: wherever they show outside the upstream call, a secret has leaked.
const (
	clientSecret   = "slk_test_canary-of-the-client"
	upstreamSecret = "sk-canary-of-the-operator"
	promptSecret   = "canary-of-the-prompt"
)

// place is one backend of a rig.
type place struct {
	handler   http.Handler
	timeouts  upstream.Timeouts
	fallback  bool // in the model's fallback pool
	next      bool // in a pool that only shadows name
	runsOn    bool // does not stop with the connection
	drain     upstream.Drain
	dialect   wire.Dialect
	service   upstream.Service
	engine    string
	hole      bool // nothing answers the dial
	nobody    bool // nobody listens
	lostBound bool // what is lost is charged in full
	reported  bool // what it says that an answer costs is charged
	domain    string
	region    string
	lacks     route.Needs
	maxRisk   sluice.Risk
	keys      []string
	replica   bool  // keeps state by itself
	slots     int64 // 0 is found
	model     string
	price     *price.Row // of one's own
}

// setup is what a rig is made of.
type setup struct {
	places  []place
	policy  sluice.Policy
	before  func(t *testing.T, s *setup) // in the bubble, before all else
	options func(*Options)
	hooks   exchange.Hooks
	retries route.RetryPolicy
	hedge   *route.Hedging
	home    *route.Locality
	spares  map[string]int64 // headroom by region
	hold    time.Duration    // HoldTTL of the engine
	longest time.Duration    // of an attempt, as the engine is told
	event   int              // bound of one event
	buffer  int              // of connections
	choice  route.Choice
	ladder  ladder.Policy // of the pool
	sticky  route.Sticky
	salt    string // that caches are salted with
	shadows []route.Shadow
	state   *stateful.Keeper
	inspect []hook.Spec          // hooks, which the policy and the model name for themselves
	byModel []string             // of the model
	asked   http.Handler         // what serves the hooks that are services; nil has none
	web     http.Handler         // what serves the images that requests name by URL; nil has none
	front   func(*rig, *Options) // puts something in front of the exchange
	keys    *idempotency.Options // for requests that have an Idempotency-Key; nil runs each
}

// rig is a whole gateway, its backends and a client over a network in memory.
type rig struct {
	t       *testing.T
	net     *egresstest.Net
	gate    *admit.Gate
	x       *exchange.Exchange
	journal *memory
	proxy   *Proxy
	policy  *sluice.Policy
	client  *http.Client
	up      *upstream.Client

	inspector *hook.Inspector
	fetcher   *fetch.Fetcher
	keeper    *idempotency.Keeper

	mu      sync.Mutex
	records []Record
	events  []hook.Event
	seen    bytes.Buffer // all that clients, logs and the ledger got to see
}

func inBubble(t *testing.T, s setup, f func(t *testing.T, r *rig)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		if s.before != nil {
			s.before(t, &s)
		}
		r := newRig(t, s)
		stop := r.serve(s)
		f(t, r)
		stop()
		r.audit()
	})
}

func newRig(t *testing.T, s setup) *rig {
	r := &rig{t: t, net: &egresstest.Net{Buffer: s.buffer}, journal: &memory{}}
	row := &price.Row{Provider: "p", Model: "up", Version: "v1", WebSearch: 10_000_000_000_000, Rates: price.Rates{Input: 1_000_000_000, Output: 2_000_000_000}}
	main, spare, next := &route.Pool{ID: "main", Choice: s.choice, Ladder: s.ladder}, &route.Pool{ID: "spare"}, &route.Pool{ID: "next"}
	targets := map[sluice.BackendID]*upstream.Target{}
	for i, p := range s.places {
		if p.dialect == "" {
			p.dialect = wire.OpenAI
		}
		id := sluice.BackendID(fmt.Sprintf("b%d", i))
		b := &route.Backend{
			ID: id, Provider: "p", Model: "up", Dialect: string(p.dialect), Weight: 1, Price: row, Context: 200_000, MaxOutput: 4096, StopsOnCancel: !p.runsOn,
			Longest: s.longest, Domain: p.domain, Region: p.region, Lacks: p.lacks, MaxRisk: p.maxRisk, Replica: p.replica, Capacity: route.Capacity{Concurrency: p.slots},
		}
		if p.model != "" {
			b.Model = p.model
		}
		if p.price != nil {
			b.Price = p.price
		}
		pool := main
		if p.fallback {
			pool = spare
		}
		if p.next {
			pool = next
		}
		pool.Backends = append(pool.Backends, b)
		base, _ := url.Parse("http://" + string(id) + "/v1")
		targets[id] = &upstream.Target{BaseURL: base, APIKey: sluice.NewSecret(upstreamSecret), Dialect: p.dialect, Engine: p.engine, Timeouts: p.timeouts, LostBound: p.lostBound, ChargeReported: p.reported, Service: p.service, Drain: p.drain, Keys: map[string]sluice.Secret{}, SaltKey: sluice.NewSecret(s.salt)}
		for _, k := range p.keys {
			b.Keys = append(b.Keys, route.Key{ID: k})
			targets[id].Keys[k] = sluice.NewSecret(upstreamSecret + "-" + k)
		}
	}
	table := &route.Table{
		Version: "t1", Retries: s.retries, Pools: map[sluice.PoolID]*route.Pool{"main": main, "next": next},
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"main"}, Sticky: s.sticky, Shadows: s.shadows, Hedge: s.hedge, Locality: s.home}}, Headroom: s.spares,
	}
	if len(spare.Backends) > 0 {
		table.Pools["spare"] = spare
		table.Models["m"].Fallback = []sluice.PoolID{"spare"}
	}
	r.gate = admit.New(engine.New(engine.Config{Table: table, Options: engine.Options{HoldTTL: s.hold}}), admit.Options{})
	r.up = upstream.New(upstream.Options{Dialer: egress.New(egress.Options{Dial: r.net.Dial})})
	if s.inspect != nil {
		r.inspector = hook.New(hook.Options{Dialer: egress.New(egress.Options{Dial: r.net.Dial}), Told: r.told})
		r.inspector.Use(s.inspect)
		table.Models["m"].Hooks = s.byModel
	}
	r.fetcher = fetch.New(egress.New(egress.Options{Dial: r.net.Dial, Lookup: lookUp}), nil)
	x := exchange.New(exchange.Options{
		Inspect: r.inspector, Gate: r.gate, Journal: r.journal, Learned: estimate.New(estimate.Options{}), Upstream: r.up,
		Table: func() *route.Table { return table },
		Target: func(id sluice.BackendID) (*upstream.Target, bool) {
			tg, ok := targets[id]
			return tg, ok
		},
		EventLimit: s.event, Hooks: s.hooks, State: s.state, Fetch: r.fetcher.Get,
	})
	r.x = x
	r.policy = &s.policy
	if r.policy.Weight == 0 {
		r.policy.Weight = 1
	}
	o := Options{
		Run: x.Run, Table: func() *route.Table { return table },
		Identify: func(credential string) (sluice.Principal, error) {
			if credential != clientSecret {
				return sluice.Principal{}, &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated, Msg: "the API key is unknown"}
			}
			return sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "ci", Policy: r.policy}, nil
		},
		Log: r.log,
	}
	if s.keys != nil {
		s.keys.Next, s.keys.Record = x.Run, x
		r.keeper = idempotency.New(*s.keys)
		r.keeper.Start()
		o.Run = r.keeper.Run
	}
	if s.options != nil {
		s.options(&o)
	}
	if s.front != nil {
		s.front(r, &o)
	}
	r.proxy = New(o)
	r.client = &http.Client{Transport: &http.Transport{DialContext: r.net.Dial, DisableCompression: true}}
	return r
}

// change puts another policy into force: one never changes.
func (r *rig) change(f func(p *sluice.Policy)) {
	p := *r.policy
	f(&p)
	r.policy = &p
}

// webAddress is where web.example is.
const webAddress = "93.184.216.34"

// lookUp resolves names of the web.
func lookUp(_ context.Context, host string) ([]netip.Addr, error) {
	to, ok := map[string]string{"web.example": webAddress, "inside.example": "10.0.0.1"}[host]
	if !ok {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(to)}, nil
}

// serve starts the gateway and the backends. What it returns ends them.
func (r *rig) serve(s setup) (stop func()) {
	var wg sync.WaitGroup
	var servers []*http.Server
	for i, p := range s.places {
		addr := fmt.Sprintf("b%d:80", i)
		switch {
		case p.hole:
			r.net.Blackhole(addr)
		case !p.nobody:
			srv := &http.Server{Handler: p.handler, ErrorLog: log.New(io.Discard, "", 0)}
			servers = append(servers, srv)
			l := r.net.Listen(addr)
			wg.Go(func() { srv.Serve(l) })
		}
	}
	if s.asked != nil {
		srv := &http.Server{Handler: s.asked, ErrorLog: log.New(io.Discard, "", 0)}
		servers = append(servers, srv)
		hooks := r.net.Listen("hook:80")
		wg.Go(func() { srv.Serve(hooks) })
	}
	if s.web != nil {
		srv := &http.Server{Handler: s.web, ErrorLog: log.New(io.Discard, "", 0)}
		servers = append(servers, srv)
		web := r.net.Listen(webAddress + ":80")
		wg.Go(func() { srv.Serve(web) })
	}
	l := r.net.Listen("gateway:80")
	wg.Go(func() { r.proxy.Serve(l) })
	return func() {
		r.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r.x.Close()
		if err := r.proxy.Shutdown(ctx); err != nil {
			r.t.Errorf("shutdown: %v", err)
		}
		r.up.Close()
		r.fetcher.Close()
		if r.keeper != nil {
			r.keeper.Close()
		}
		if r.inspector != nil {
			r.inspector.Close()
		}
		for _, srv := range servers {
			srv.Close()
		}
		wg.Wait()
		r.gate.Close()
		time.Sleep(24 * time.Hour) // what sleeps in a handler, and net/http's lingering, ends
	}
}

func (r *rig) told(e hook.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *rig) log(rec *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, *rec)
	fmt.Fprintf(&r.seen, "%+v %v %s\n", *rec, rec.Err, rec.Final.Detail)
}

// audit judges what holds after every test: all is settled, recorded once, and
// nothing has leaked.
func (r *rig) audit() {
	r.t.Helper()
	if v := r.gate.Dump(10); v.Open != 0 || v.Running != 0 {
		r.t.Errorf("%d requests are still open, %d running", v.Open, v.Running)
	}
	r.journal.audit(r.t)
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := map[sluice.RequestID]bool{}
	for _, rec := range r.records {
		if ids[rec.Final.Request] {
			r.t.Errorf("request %s was logged twice", rec.Final.Request)
		}
		ids[rec.Final.Request] = true
	}
	for _, e := range r.journal.entries {
		fmt.Fprintf(&r.seen, "%+v %s\n", e, e.Detail)
	}
	for _, canary := range []string{clientSecret, upstreamSecret, promptSecret} {
		if bytes.Contains(r.seen.Bytes(), []byte(canary)) {
			r.t.Errorf("cW2: %q is in what clients, logs or the ledger got to see", canary)
		}
	}
}

// last is the record of the last request that ended.
func (r *rig) last() Record {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) == 0 {
		r.t.Fatal("no request was logged")
	}
	return r.records[len(r.records)-1]
}

// only makes rec the last record, once all has ended.
func (r *rig) only(rec Record) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records[:0], rec)
}

// counters are the caller's, as the engine has them beside one request.
func (r *rig) counters() []engine.LimitState {
	r.t.Helper()
	g, err := r.gate.Admit(r.t.Context(), engine.Call{
		ID: "probe", Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "ci", Policy: r.policy}, Model: "m", Dialect: "openai", Free: true,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	defer g.Release(sluice.ClientGone)
	return g.Limits().States(nil)
}

// want checks how the last request ended.
func (r *rig) want(o sluice.Outcome, reason sluice.Reason, status int) Record {
	r.t.Helper()
	rec := r.last()
	f := rec.Final
	if f.Outcome != o || f.Reason != reason || f.Status != status {
		r.t.Errorf("ended %v %q with status %d, want %v %q %d (%v)", f.Outcome, f.Reason, f.Status, o, reason, status, rec.Err)
	}
	return rec
}

// ask is one request of a client.
type ask struct {
	method string // default POST; another has no body
	path   string // default /v1/chat/completions
	body   string // default a chat of model m
	stream bool
	header http.Header
	ctx    context.Context
	max    int
}

func (r *rig) request(a ask) *http.Request {
	if a.path == "" {
		a.path = "/v1/chat/completions"
	}
	if a.body == "" {
		a.body = `{"model":"m","messages":[{"role":"user","content":"` + promptSecret + `"}]`
		if a.stream {
			a.body += `,"stream":true`
		}
		if a.max == 0 {
			a.max = 1000
		}
		a.body += fmt.Sprintf(`,"max_tokens":%d}`, a.max)
	}
	if a.ctx == nil {
		a.ctx = r.t.Context()
	}
	if a.method == "" {
		a.method = "POST"
	}
	if a.method != "POST" {
		a.body = ""
	}
	req, err := http.NewRequestWithContext(a.ctx, a.method, "http://gateway"+a.path, strings.NewReader(a.body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+clientSecret)
	maps.Copy(req.Header, a.header)
	return req
}

// got is what a client got.
type got struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
	took   time.Duration
}

func (r *rig) do(a ask) got {
	start := time.Now()
	resp, err := r.client.Do(r.request(a))
	if err != nil {
		return got{err: err, took: time.Since(start)}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	g := got{resp.StatusCode, resp.Header, string(b), err, time.Since(start)}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.seen, "%v %s %v\n", g.header, g.body, g.err)
	return g
}

// errorOf reads the dialect's error body.
func errorOf(t *testing.T, body string) (kind, code, message string) {
	t.Helper()
	var e struct {
		Error struct {
			Type, Message string
			Code          any
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("%q is no error body: %v", body, err)
	}
	return e.Error.Type, fmt.Sprint(e.Error.Code), e.Error.Message
}

// memory is a journal in memory.
type memory struct {
	mu       sync.Mutex
	begun    map[sluice.RequestID]int
	dispatch []ledger.Dispatch
	checks   []ledger.Checkpoint
	entries  []ledger.Entry
	broken   error
}

func (m *memory) Begin(r ledger.Reserve, d ledger.Dispatch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	if m.begun == nil {
		m.begun = map[sluice.RequestID]int{}
	}
	m.begun[r.Request]++
	m.dispatch = append(m.dispatch, d)
	return nil
}

func (m *memory) Dispatch(d ledger.Dispatch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dispatch = append(m.dispatch, d)
	return m.broken
}

func (m *memory) Checkpoint(c ledger.Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checks = append(m.checks, c)
	return m.broken
}

func (m *memory) Settle(e ledger.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = append(m.entries, e)
	return nil
}

func (m *memory) Sync(context.Context) error { return nil }

// of are the entries of a request.
func (m *memory) of(id sluice.RequestID) (out []ledger.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.Request == id {
			out = append(out, e)
		}
	}
	return out
}

func (m *memory) audit(t *testing.T) {
	t.Helper()
	type attempt struct {
		id sluice.RequestID
		n  int
	}
	entries, finals := map[attempt]int{}, map[sluice.RequestID]int{}
	for _, e := range m.entries {
		entries[attempt{e.Request, e.Attempt}]++
		if e.Final {
			finals[e.Request]++
		}
		if e.CostHigh < e.Cost || e.Cost < 0 {
			t.Errorf("%s: cost %v, high %v", e.Request, e.Cost, e.CostHigh)
		}
	}
	for _, d := range m.dispatch {
		if n := entries[attempt{d.Request, d.Attempt}]; n != 1 && m.broken == nil {
			t.Errorf("attempt %d of %s has %d entries, want 1", d.Attempt, d.Request, n)
		}
	}
	for id, n := range finals {
		if n != 1 {
			t.Errorf("%s has %d final entries, want 1", id, n)
		}
	}
	for id := range m.begun {
		if finals[id] != 1 {
			t.Errorf("%s has %d final entries, want 1", id, finals[id])
		}
	}
}

// talk is a scripted backend of the OpenAI dialect.
type talk struct {
	before time.Duration // before the headers
	first  time.Duration // after them
	gap    time.Duration // between chunks
	chunks int           // of content, " tok" each
	usage  string        // the usage object; empty for none
	end    string        // "" done, "cut", "clean", "hang", "error"
	text   string
}

func (k talk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	ctx := r.Context()
	pause := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	if k.text == "" {
		k.text = " tok"
	}
	if !pause(k.before) {
		return
	}
	w.Header().Set("X-Request-Id", "up-1")
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "application/json")
		told := ""
		if k.usage != "" {
			told = `,"usage":` + k.usage
		}
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]%s}`,
			strings.Repeat(k.text, k.chunks), told)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(s string) {
		io.WriteString(w, "data: "+s+"\n\n")
		w.(http.Flusher).Flush()
	}
	chunk := func(delta, finish string) {
		send(fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish))
	}
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	if !pause(k.first) {
		return
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	for i := range k.chunks {
		if i > 0 && !pause(k.gap) {
			return
		}
		chunk(fmt.Sprintf(`{"content":%q}`, k.text), "null")
	}
	switch k.end {
	case "cut":
		panic(http.ErrAbortHandler)
	case "clean":
		return
	case "hang":
		<-ctx.Done()
		return
	case "error":
		send(`{"error":{"message":"boom","type":"server_error","code":null,"param":null}}`)
		return
	}
	chunk(`{}`, `"stop"`)
	if k.usage != "" {
		send(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[],"usage":` + k.usage + `}`)
	}
	send("[DONE]")
}

func usage(in, out int) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, in, out, in+out)
}

// claude is a scripted backend of the Anthropic dialect: what it is sent after
// the start, as it is.
type claude struct {
	start string // usage of message_start
	texts int    // content deltas
	gap   time.Duration
	delta string // usage of message_delta; "cut" ends the stream before it
}

func (k claude) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Request-Id", "up-2")
	send := func(name, data string) {
		io.WriteString(w, "event: "+name+"\ndata: "+data+"\n\n")
		w.(http.Flusher).Flush()
	}
	send("message_start", `{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"up","content":[],"stop_reason":null,"stop_sequence":null,"usage":`+k.start+`}}`)
	send("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for range k.texts {
		send("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" tok"}}`)
		select {
		case <-r.Context().Done():
			return
		case <-time.After(k.gap):
		}
	}
	if k.delta == "cut" {
		panic(http.ErrAbortHandler)
	}
	send("content_block_stop", `{"type":"content_block_stop","index":0}`)
	told := ""
	if k.delta != "" {
		told = `,"usage":` + k.delta
	}
	send("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null}`+told+`}`)
	send("message_stop", `{"type":"message_stop"}`)
}

// answers is a backend that answers every request with a status and body.
func answers(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// silent is a backend that reads and says nothing until its client leaves, and
// notes when that was.
type silent struct{ gone chan time.Time }

func newSilent() *silent { return &silent{make(chan time.Time, 100)} }

func (s *silent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	s.gone <- time.Now()
}

// content joins the content of a stream's chunks.
func content(stream string) string {
	var out strings.Builder
	sc := bufio.NewScanner(strings.NewReader(stream))
	sc.Buffer(nil, 8<<20)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		var c struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) > 0 {
			out.WriteString(c.Choices[0].Delta.Content)
		}
	}
	return out.String()
}

var errCut = io.ErrUnexpectedEOF

func wantCut(t *testing.T, g got) {
	t.Helper()
	if !errors.Is(g.err, errCut) {
		t.Errorf("the connection ended with %v, want it aborted", g.err)
	}
}
