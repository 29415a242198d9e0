package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/egress"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// swift is a backend that answers at once: 100 events, or one body.
type swift struct{ event, whole, end []byte }

func newSwift() *swift {
	return &swift{
		event: []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}` + "\n\n"),
		end: []byte(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[],"usage":` + usage(9, 100) + "}\n\ndata: [DONE]\n\n"),
		whole: []byte(`{"id":"c","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat(" token", 100) + `"},"finish_reason":"stop"}],"usage":` + usage(9, 100) + `}`),
	}
}

func (s *swift) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Write(s.whole)
		return
	}
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	f := w.(http.Flusher)
	for range 100 {
		w.Write(s.event)
		f.Flush()
	}
	w.Write(s.end)
}

// nothing keeps no record, so that the path alone is measured.
type nothing struct{}

func (*nothing) Begin(ledger.Reserve, ledger.Dispatch) error { return nil }
func (*nothing) Dispatch(ledger.Dispatch) error              { return nil }
func (*nothing) Checkpoint(ledger.Checkpoint) error          { return nil }
func (*nothing) Settle(ledger.Entry) error                   { return nil }
func (*nothing) Sync(context.Context) error                  { return nil }

// gateway serves a Proxy before a backend on loopback.
func gateway(b *testing.B, backend string) (base string, stop func()) {
	u, _ := url.Parse(backend + "/v1")
	row := &price.Row{Version: "v1", Rates: price.Rates{Input: 1_000_000_000, Output: 2_000_000_000}}
	be := &route.Backend{ID: "b", Provider: "p", Model: "up", Dialect: "openai", Weight: 1, Price: row, Context: 200_000, MaxOutput: 4096, StopsOnCancel: true, Capacity: route.Capacity{Concurrency: 1000}}
	table := &route.Table{
		Version: "t1", Pools: map[sluice.PoolID]*route.Pool{"main": {ID: "main", Backends: []*route.Backend{be}}},
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"main"}}},
	}
	target := &upstream.Target{BaseURL: u, Dialect: wire.OpenAI}
	gate := admit.New(engine.New(engine.Config{Table: table}), admit.Options{})
	up := upstream.New(upstream.Options{Dialer: egress.New(egress.Options{})})
	policy := &sluice.Policy{Weight: 1, Limits: limits(
		sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1 << 40},
		sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 1 << 40},
		sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1 << 60},
	)}
	p := New(Options{
		Run: exchange.New(exchange.Options{
			Gate: gate, Journal: &nothing{}, Learned: estimate.New(estimate.Options{}), Upstream: up,
			Table:  func() *route.Table { return table },
			Target: func(sluice.BackendID) (*upstream.Target, bool) { return target, true },
		}).Run,
		Table: func() *route.Table { return table },
		Identify: func(string) (sluice.Principal, error) {
			return sluice.Principal{Tenant: "acme", Project: "default", Key: "ci", Policy: policy}, nil
		},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- p.Serve(l) }()
	return "http://" + l.Addr().String(), func() {
		p.Shutdown(b.Context())
		<-done
		up.Close()
		gate.Close()
	}
}

// The gateway's whole path against a reverse proxy that only copies.
func BenchmarkPath(b *testing.B) {
	backend := httptest.NewServer(newSwift())
	defer backend.Close()
	u, _ := url.Parse(backend.URL)
	plain := httputil.NewSingleHostReverseProxy(u)
	plain.Transport = egress.New(egress.Options{}).Transport(egress.TransportOptions{AllowPrivate: true})
	plainServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Where the body is streamed through, net/http cuts the answers of a
		// backend as fast as this one.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		plain.ServeHTTP(w, r)
	}))
	defer plainServer.Close()
	base, stop := gateway(b, backend.URL)
	defer stop()
	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":200,"messages":[{"role":"user","content":%q}]}`, stream, strings.Repeat("some words of a prompt ", 200))
		for name, url := range map[string]string{"direct": backend.URL, "reverseproxy": plainServer.URL, "sluice": base} {
			b.Run(fmt.Sprintf("stream=%v/%s", stream, name), func(b *testing.B) {
				tr := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
				defer tr.CloseIdleConnections()
				client := &http.Client{Transport: tr}
				b.ReportAllocs()
				for b.Loop() {
					req, _ := http.NewRequestWithContext(b.Context(), "POST", url+"/v1/chat/completions", strings.NewReader(body))
					req.Header.Set("Authorization", "Bearer k")
					resp, err := client.Do(req)
					if err != nil {
						b.Fatal(err)
					}
					n, err := io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if err != nil || resp.StatusCode != 200 || n < 500 {
						b.Fatalf("got %d, %d bytes, %v", resp.StatusCode, n, err)
					}
				}
			})
		}
	}
}
