package transcripts

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/auth"
	"sluice/internal/catalog"
	"sluice/internal/config"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/proxy"
	"sluice/internal/route"
	up "sluice/internal/upstream"
)

// clientKey is the credential of the tenant that every transcript has which declares
// none.
const clientKey = "slk_test_0123456789_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_0fE55R"

// everywhere is where the upstream listens: all that the gateway dials leads there.
const everywhere = "upstream:80"

// tenant is that tenant.
const tenant = "\ntenants: {acme: {keys: {ci: {secret: \"${SLUICE_KEY}\"}}}}\n"

// result is what became of a transcript's request.
type result struct {
	sent    []string // in order
	client  string   // status, headers and body, as a transcript tells them
	body    []byte   // of the answer
	status  int
	kind    string // content type of the answer
	aborted bool
	entries []ledger.Entry
	parked  []string
}

// environment finds the variables of a configuration: those of the file env beside it,
// by lines of NAME=value, and for all others a secret that shows where it went.
func environment(dir string) config.Env {
	known := map[string]string{"SLUICE_KEY": clientKey}
	text, _ := os.ReadFile(filepath.Join(dir, "env")) // most have none
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			known[name] = value
		}
	}
	return func(name string) (string, bool) {
		if v, ok := known[name]; ok {
			return v, true
		}
		return "secret-of-" + name, true
	}
}

// catalogue looks models up in the catalogue beside a configuration; nil if there is
// none.
func catalogue(t *testing.T, dir string) func(provider, model string) (config.Known, bool) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, "catalog.jsonl"))
	if err != nil {
		return nil
	}
	c, err := catalog.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return func(provider, model string) (config.Known, bool) {
		e, ok := c.Lookup(provider, model, time.Now())
		return config.Known{Price: e.Price, Context: e.Context, MaxOutput: e.MaxOutput, Lacks: e.Lacks}, ok
	}
}

// eventLimit bounds one event in bytes: less than by default, so that a test of what is
// beyond it is cheap.
const eventLimit = 256 << 10

// compiled is a configuration in force, whose backends are called in the clear.
func compiled(t *testing.T, dir, text string) *config.Snapshot {
	t.Helper()
	if !strings.Contains(text, "\ntenants:") {
		text += tenant
	}
	c, err := config.Parse("sluice.yaml", []byte(text), environment(dir))
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.Compile(c, config.CompileOptions{Lookup: catalogue(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range s.Targets {
		base := *target.BaseURL
		base.Scheme = "http"
		target.BaseURL = &base
	}
	return s
}

// play runs a transcript's request. It runs in a bubble.
func play(t *testing.T, s *config.Snapshot, answers []*answer, req *http.Request) *result {
	t.Helper()
	var network egresstest.Net
	provider := &upstream{answers: answers}
	var wg sync.WaitGroup
	l := network.Listen(everywhere)
	wg.Go(func() { provider.serve(l) })
	res := &result{}
	client, stop := serve(t, s, &network, res)
	ask(t, client, req, res)
	stop()
	_ = l.Close()
	wg.Wait()
	provider.wg.Wait()
	res.sent = provider.sent
	if n := len(provider.answers); n > 0 {
		t.Errorf("%d answers were not asked for", n)
	}
	return res
}

// serve runs a gateway; what it returns ends it.
func serve(t *testing.T, s *config.Snapshot, network *egresstest.Net, res *result) (client *http.Client, stop func()) {
	keys := auth.Compile(auth.CompileOptions{Hasher: auth.NewHasher(s.Settings.Pepper)}, s.Records)
	table := func() *route.Table { return s.Table }
	gate := admit.New(engine.New(engine.Config{Table: s.Table}), admit.Options{})
	calls := up.New(up.Options{Dialer: egress.New(egress.Options{Dial: func(ctx context.Context, kind, _ string) (net.Conn, error) {
		return network.Dial(ctx, kind, everywhere)
	}})})
	x := exchange.New(exchange.Options{
		EventLimit: eventLimit,
		Gate:       gate, Journal: (*journal)(res), Learned: estimate.New(estimate.Options{}), Upstream: calls, Table: table,
		Target: func(id sluice.BackendID) (*up.Target, bool) { target, ok := s.Targets[id]; return target, ok },
		Hooks: exchange.Hooks{Parked: func(b sluice.BackendID, _, code string) {
			res.parked = append(res.parked, strings.TrimSpace(string(b)+" "+code))
		}},
	})
	front := proxy.New(proxy.Options{
		Run: x.Run, Table: table, NewID: func() sluice.RequestID { return "req_1" },
		Identify: func(credential string) (sluice.Principal, error) { return keys.Identify(credential, time.Now()) },
		Panic:    func(_ sluice.RequestID, v any, stack []byte) { t.Errorf("panic: %v\n%s", v, stack) },
	})
	l := network.Listen("gateway:80")
	var wg sync.WaitGroup
	wg.Go(func() { _ = front.Serve(l) })
	client = &http.Client{Transport: &http.Transport{DialContext: network.Dial, DisableCompression: true}}
	return client, func() {
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := front.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		x.Close()
		_ = calls.Close()
		wg.Wait()
		gate.Close()
		time.Sleep(time.Minute) // net/http lingers
	}
}

// quietAnswer are headers of an answer that no transcript tells: of time, of the
// gateway's own, and what every stream has.
var quietAnswer = []string{
	"Date", "Content-Length", "Cache-Control", "X-Accel-Buffering", "Sluice-Request-Id", "Sluice-Backend", "Sluice-Policy", "Sluice-Queue-Ms",
}

// ask sends the request and reads the answer to its end.
func ask(t *testing.T, client *http.Client, r *http.Request, res *result) {
	t.Helper()
	if r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" {
		r.Header.Set("Authorization", "Bearer "+clientKey)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Errorf("the gateway did not answer: %v", err)
		return
	}
	defer resp.Body.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", resp.StatusCode)
	writeHeader(&b, resp.Header, quietAnswer)
	res.status, res.kind = resp.StatusCode, resp.Header.Get("Content-Type")
	res.body, err = io.ReadAll(resp.Body)
	b.WriteString("\n" + escaped(res.body))
	if res.aborted = err != nil; res.aborted {
		b.WriteString("⟨aborted⟩")
	}
	res.client = b.String() + "\n"
}

// journal keeps the entries of a transcript's request.
type journal result

func (j *journal) Begin(ledger.Reserve, ledger.Dispatch) error { return nil }
func (j *journal) Dispatch(ledger.Dispatch) error              { return nil }
func (j *journal) Checkpoint(ledger.Checkpoint) error          { return nil }
func (j *journal) Sync(context.Context) error                  { return nil }

func (j *journal) Settle(e ledger.Entry) error {
	j.entries = append(j.entries, e)
	return nil
}

// outcome is what the ledger has of it.
func (r *result) outcome() string {
	var b strings.Builder
	for i := range r.entries {
		e := &r.entries[i]
		fmt.Fprintf(&b, "attempt %d: %v", e.Attempt, e.Outcome)
		if e.Reason != sluice.ReasonNone {
			fmt.Fprintf(&b, " %v", e.Reason)
		}
		if e.Backend != "" {
			fmt.Fprintf(&b, " at %s, %s", e.Backend, e.UpstreamModel)
		}
		b.WriteString("\n")
		line := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "\t%s: %s\n", name, value)
			}
		}
		if e.ServedModel != e.UpstreamModel {
			line("served", e.ServedModel)
		}
		line("finish", e.Finish)
		line("upstream request", e.UpstreamRequestID)
		line("usage", usageText(&e.Usage))
		line("cost", fmt.Sprintf("%v", e.Cost))
		if e.CostHigh != e.Cost {
			line("at most", fmt.Sprintf("%v", e.CostHigh))
		}
	}
	for _, p := range r.parked {
		fmt.Fprintf(&b, "parked: %s\n", p)
	}
	return b.String()
}

func usageText(u *sluice.Usage) string {
	var s strings.Builder
	s.WriteString(u.Source.String())
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"input", int64(u.Input)},
		{"cache_read", int64(u.CacheRead)},
		{"cache_write", int64(u.CacheWrite)},
		{"cache_write_1h", int64(u.CacheWrite1h)},
		{"audio_input", int64(u.AudioInput)},
		{"output", int64(u.Output)},
		{"reasoning", int64(u.Reasoning)},
		{"audio_output", int64(u.AudioOutput)},
		{"tool_calls", u.ToolCalls},
		{"web_searches", u.WebSearches},
	} {
		if c.n != 0 {
			s.WriteString(fmt.Sprintf(" %s=%d", c.name, c.n))
		}
	}
	if u.ServiceTier != "" {
		s.WriteString(" tier=" + u.ServiceTier)
	}
	if u.Anomalous {
		s.WriteString(" anomalous")
	}
	return s.String()
}
