package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/app"
	"sluice/internal/auth"
	"sluice/internal/egress/egresstest"
	"sluice/internal/fakellm"
)

// setup is what a run's gateway and provider are made of.
type setup struct {
	clients []string        // a tenant with one key for each
	fleet   fakellm.Options // the provider's
	engine  string          // of the provider, as the configuration says; empty for a hosted one
	net     *egresstest.Net // where all of it is, nil for TCP
	stops   bool            // whether it stops with the connection, as the configuration says
}

// The prices of the configuration, in nano-dollars per million tokens.
const (
	inputPrice  = 100_000_000
	outputPrice = 400_000_000
)

// gateway is a whole gateway before a scripted provider.
type gateway struct {
	t       *testing.T
	net     *egresstest.Net
	client  *http.Client // of the admin API
	app     *app.App
	fleet   *fakellm.Server
	data    string
	keys    map[string]sluice.Secret // by client
	tenants map[sluice.TenantID]bool
	log     *lockedLog
	stop    func() error // takes the gateway down, once
}

// lockedLog keeps the end of the gateway's log for failures.
type lockedLog struct {
	mu   sync.Mutex
	tail []byte
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, p...)
	if extra := len(l.tail) - 16<<10; extra > 0 {
		l.tail = l.tail[extra:]
	}
	return len(p), nil
}

// start brings up a provider and a gateway before it.
func start(t *testing.T, s setup) *gateway {
	t.Helper()
	if testing.Short() {
		t.Skip("a replay takes most of a minute")
	}
	g := &gateway{t: t, net: s.net, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, data: t.TempDir(), keys: map[string]sluice.Secret{}, tenants: map[sluice.TenantID]bool{}, log: &lockedLog{}}
	url := g.provider(s.fleet)
	env := map[string]string{}
	file := filepath.Join(g.data, "sluice.yaml")
	if err := os.WriteFile(file, []byte(g.configuration(s, url, env)), 0o600); err != nil {
		t.Fatal(err)
	}
	o := app.Options{
		ConfigPath: file, Data: filepath.Join(g.data, "data"), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Stderr: g.log,
		Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
	if s.net != nil {
		o.Listen, o.AdminListen, o.Dial = "127.0.0.1:8080", "127.0.0.1:8081", s.net.Dial
		o.Bind = func(address string) (net.Listener, error) { return s.net.Listen(address), nil }
		g.client.Transport.(*http.Transport).DialContext = s.net.Dial
	}
	var err error
	g.app, err = app.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	g.stop = sync.OnceValue(func() error { return g.app.Stop(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() {
		_ = g.stop()
		if t.Failed() {
			t.Logf("the gateway's log ends with:\n%s", g.log.tail)
		}
	})
	if err := g.app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// provider serves a fakellm and returns its address.
func (g *gateway) provider(o fakellm.Options) string {
	fleet, err := fakellm.New(o)
	if err != nil {
		g.t.Fatal(err)
	}
	l := net.Listener(nil)
	if g.net != nil {
		l = g.net.Listen("127.0.0.1:8000")
	} else if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		g.t.Fatal(err)
	}
	server := &http.Server{Handler: fleet, ErrorLog: log.New(io.Discard, "", 0)}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	g.t.Cleanup(func() {
		_ = server.Close()
		fleet.Close()
		served.Wait()
	})
	g.fleet = fleet
	return "http://" + l.Addr().String()
}

// configuration is the gateway's file: both dialects of one provider behind one
// model, and a tenant for each client.
func (g *gateway) configuration(s setup, url string, env map[string]string) string {
	var b strings.Builder
	fmt.Fprint(&b, "lame_duck: 0s\nlog: {level: warn}\nproviders:\n")
	for _, dialect := range []string{"openai", "anthropic"} {
		fmt.Fprintf(&b, "  %s: {dialect: %[1]s, base_url: %q, price: {input: $0.10, output: $0.40}, timeouts: {connect: 1m, headers: 5m}, stops_on_cancel: %t", dialect, url+"/v1", s.stops)
		if s.engine != "" {
			fmt.Fprintf(&b, ", engine: %s", s.engine)
		}
		fmt.Fprint(&b, "}\n")
	}
	fmt.Fprint(&b, `pools:
  chat:
    backends:
      - {name: openai, provider: openai, model: sim-small, context: 128k, max_output: 8k, capacity: {concurrency: 2048}}
      - {name: anthropic, provider: anthropic, model: sim-small, context: 128k, max_output: 8k, capacity: {concurrency: 2048}}
models:
  fast: {pools: [chat]}
plans:
  plain: {class: interactive}
tenants:
`)
	for i, c := range s.clients {
		minted, err := auth.Mint("test")
		if err != nil {
			g.t.Fatal(err)
		}
		name := fmt.Sprintf("KEY_%d", i)
		env[name] = minted.Key.Reveal()
		g.keys[c], g.tenants[sluice.TenantID(c)] = minted.Key, true
		fmt.Fprintf(&b, "  %s: {plan: plain, keys: {main: {secret: \"${%s}\"}}}\n", c, name)
	}
	return b.String()
}

// status asks the admin API for the picture of the gateway.
func (g *gateway) status(ctx context.Context) (s admin.Status) {
	g.t.Helper()
	token, err := os.ReadFile(filepath.Join(g.data, "data", "admin-token"))
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.app.AdminAddr()+"/admin/v1/status", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		g.t.Fatalf("the admin API answers %s", res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		g.t.Fatal(err)
	}
	return s
}

// quiet waits until provider and gateway have ended everything, within patience.
func (g *gateway) quiet() admin.Status {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	if err := g.fleet.Await(ctx, func(total fakellm.Total) bool { return total.Running == 0 }); err != nil {
		g.t.Fatalf("the provider still runs %d requests", g.fleet.Account(fakellm.Filter{Limit: 1}).Total.Running)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s := g.status(context.WithoutCancel(ctx))
		if s.Open == 0 && s.Journal.Open == 0 && s.Journal.LagEntries == 0 {
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s
		}
	}
}

// patience is how long what has ended for its client may take to be settled.
const patience = time.Minute
