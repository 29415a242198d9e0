package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

func TestErrorsSpeakTheDialect(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
		for _, tt := range []struct {
			method, path, key, version string
			status                     int
			kind                       string
			reason                     string
		}{
			{"POST", "/v1/chat/completions", "wrong", "", 401, "", "unauthenticated"},
			{"POST", "/v1/chat/completions", "", "", 401, "", "unauthenticated"},
			{"POST", "/v1/messages", "wrong", "2023-06-01", 401, "authentication_error", "unauthenticated"},
			{"POST", "/v1/chat/completions", clientSecret, "", 400, "invalid_request_error", "invalid_request"},
			{"POST", "/v1/messages", clientSecret, "2023-06-01", 400, "invalid_request_error", "invalid_request"},
			{"GET", "/v1/chat/completions", clientSecret, "", 405, "", "method_not_allowed"},
			{"GET", "/v1/messages", clientSecret, "2023-06-01", 405, "", "method_not_allowed"},
			{"DELETE", "/v1/models", clientSecret, "", 405, "", "method_not_allowed"},
			{"POST", "/v1/nothing", clientSecret, "", 404, "", "not_found"},
			{"POST", "/v1/nothing", clientSecret, "2023-06-01", 404, "not_found_error", "not_found"},
			{"POST", "//v1/chat/completions", clientSecret, "", 404, "", "not_found"},
			{"POST", "//v1/messages", clientSecret, "2023-06-01", 404, "not_found_error", "not_found"},
			{"POST", "/v1/../v1/messages", clientSecret, "2023-06-01", 404, "not_found_error", "not_found"},
			{"POST", "/v1/./chat/completions", clientSecret, "", 404, "", "not_found"},
			{"POST", "/v1/chat/completions/", clientSecret, "", 404, "", "not_found"},
			{"GET", "", clientSecret, "", 404, "", "not_found"},
			{"GET", "/v1/models/nope", clientSecret, "", 404, "", "model_not_found"},
			{"GET", "/v1/models", "wrong", "", 401, "", "unauthenticated"},
		} {
			req, _ := http.NewRequestWithContext(t.Context(), tt.method, "http://gateway"+tt.path, strings.NewReader(`{}`))
			if tt.version != "" {
				req.Header.Set("anthropic-version", tt.version)
				req.Header.Set("x-api-key", tt.key)
			} else if tt.key != "" {
				req.Header.Set("authorization", "Bearer "+tt.key)
			}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			var e struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal(body, &e); err != nil || e.Error.Message == "" {
				t.Errorf("%s %s: %q is no error", tt.method, tt.path, body)
			}
			if resp.StatusCode != tt.status || tt.kind != "" && e.Error.Type != tt.kind || resp.Header.Get("Sluice-Reason") != tt.reason || resp.Header.Get("Sluice-Request-Id") == "" {
				t.Errorf("%s %s: got %d %s, reason %q", tt.method, tt.path, resp.StatusCode, body, resp.Header.Get("Sluice-Reason"))
			}
			if (e.Type == "error") != (tt.version != "") {
				t.Errorf("%s %s: the wrong dialect: %s", tt.method, tt.path, body)
			}
			if tt.status == 405 && resp.Header.Get("Allow") == "" {
				t.Errorf("%s %s: no Allow", tt.method, tt.path)
			}
			r.want(sluice.Rejected, r.last().Final.Reason, tt.status)
		}
	})
}

// What the mux refuses by itself is refused in the dialect, with an id.
func TestConnectIsRefusedInTheDialect(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
		for _, target := range []string{"b0:80", "/v1/chat/completions"} {
			conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, "CONNECT "+target+" HTTP/1.1\r\nHost: b0:80\r\nConnection: close\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			conn.Close()
			if _, code, _ := errorOf(t, string(body)); resp.StatusCode != 405 || code != "method_not_allowed" || resp.Header.Get("Sluice-Request-Id") == "" {
				t.Errorf("%s: got %d %s", target, resp.StatusCode, body)
			}
		}
	})
}

// Client libraries poll the list of models: it takes nothing of any limit, and none
// is in its way.
func TestModelsAreFreeOfLimits(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 1, usage: usage(9, 1)}}},
		policy: sluice.Policy{Limits: limits(sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerDay, Amount: 2})},
	}, func(t *testing.T, r *rig) {
		list := func() {
			req := r.request(ask{path: "/v1/models"})
			req.Method, req.Body, req.ContentLength = "GET", nil, 0
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 || resp.Header.Get("X-Ratelimit-Limit-Requests") != "" {
				t.Errorf("got %d %v", resp.StatusCode, resp.Header)
			}
		}
		for range 3 {
			list()
		}
		for i, want := range []int{200, 200, 429} {
			if g := r.do(ask{}); g.status != want {
				t.Errorf("request %d: got %d %s", i, g.status, g.body)
			}
		}
		list()
	})
}

// A refusal tells the counters, as an answer does.
func TestRefusalHasRateHeaders(t *testing.T) {
	for _, tt := range []struct {
		name     string
		limit    sluice.Limit
		path     string
		body     string
		dialect  wire.Dialect
		header   string
		want     string
		occupied bool
	}{
		{"rate", sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerDay, Amount: 1}, "", "", wire.OpenAI, "X-Ratelimit-Remaining-Requests", "0", false},
		{"rate", sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerDay, Amount: 1}, "/v1/messages", `{"model":"m","max_tokens":5,"messages":[]}`, wire.Anthropic, "Anthropic-Ratelimit-Requests-Remaining", "0", false},
		{"concurrency", sluice.Limit{Dimension: sluice.Concurrency, Amount: 1}, "", "", wire.OpenAI, "X-Ratelimit-Remaining-Requests", "8", true},
	} {
		var sent string
		inBubble(t, setup{
			places: []place{{handler: both{tt.dialect, &sent}, dialect: tt.dialect}},
			policy: sluice.Policy{Limits: limits(tt.limit, sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerHour, Amount: 10})},
		}, func(t *testing.T, r *rig) {
			if tt.occupied {
				g, err := r.gate.Admit(t.Context(), engine.Call{ID: "other", Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "ci", Policy: r.policy}, Model: "m", Dialect: "openai"})
				if err != nil {
					t.Fatal(err)
				}
				defer g.Release(sluice.ClientGone)
			} else if g := r.do(ask{path: tt.path, body: tt.body}); g.status != 200 {
				t.Fatalf("got %d %s", g.status, g.body)
			}
			g := r.do(ask{path: tt.path, body: tt.body, header: http.Header{"Sluice-Max-Wait": {"0"}}})
			if g.status != 429 || g.header.Get(tt.header) != tt.want {
				t.Errorf("%s %s: got %d %v, want %s: %s", tt.dialect, tt.name, g.status, g.header, tt.header, tt.want)
			}
		})
	}
}

func TestModelsInBothDialects(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{}}, {handler: talk{}, dialect: wire.Anthropic}}}, func(t *testing.T, r *rig) {
		for _, version := range []string{"", "2023-06-01", "2026-10-21"} {
			for _, path := range []string{"/v1/models", "/v1/models/m"} {
				req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://gateway"+path, nil)
				req.Header.Set("authorization", "Bearer "+clientSecret)
				if version != "" {
					req.Header.Set("anthropic-version", version)
				}
				resp, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"m"`)) || bytes.Contains(body, []byte("display_name")) != (version != "") {
					t.Errorf("%s %q: got %d %s", path, version, resp.StatusCode, body)
				}
				r.want(sluice.Completed, sluice.ReasonNone, 200)
			}
		}
	})
}

func TestRequestHeaders(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 1, usage: usage(9, 1)}}},
		policy: sluice.Policy{Class: sluice.Standard, Models: []sluice.ModelID{"m"}},
	}, func(t *testing.T, r *rig) {
		for _, tt := range []struct {
			name, value string
			status      int
		}{
			{"Sluice-Class", "batch", 200},
			{"Sluice-Class", "interactive", 403},
			{"Sluice-Class", "gold", 400},
			{"Sluice-Max-Wait", "0", 200},
			{"Sluice-Max-Wait", "2s", 200},
			{"Sluice-Max-Wait", "-1s", 400},
			{"Sluice-Max-Wait", "soon", 400},
			{"Sluice-Task", "triage.v2", 200},
			{"Sluice-Task", "Bad Task", 400},
			{"Sluice-Labels", "a=b, c=d", 200},
			{"Sluice-Labels", "a", 400},
			{"Sluice-Labels", "a=b, a=c", 400},
			{"Sluice-Lables", "a=b", 400},
			{"Sluice-Priority", "1", 400},
			{"Sluice-Request-Id", "req_1", 400},
			{"Sluice-Run", "r1", 200},
			{"Sluice-Run", strings.Repeat("r", 129), 400},
			{"Sluice-Run", "a b", 400},
			{"Sluice-Run-Limits", "steps=1", 400},
			{"Sluice-Session", "s1", 200},
			{"Sluice-Session", "", 400},
			{"Sluice-Session", strings.Repeat("s", 129), 400},
			{"X-Session-Id", strings.Repeat("s", 129), 200},
			{"Sluice-Risk", "severe", 400},
			{"Sluice-Risk", "", 400},
			{"Sluice-Risk", "high", 200},
			{"Idempotency-Key", "k", 200},
			{"Idempotency-Key", "", 400},
			{"Idempotency-Key", "a b", 400},
			{"Idempotency-Key", strings.Repeat("k", 255), 200},
			{"Idempotency-Key", strings.Repeat("k", 256), 400},
		} {
			g := r.do(ask{header: http.Header{tt.name: {tt.value}}})
			if g.status != tt.status {
				t.Errorf("%s %s: got %d %s", tt.name, tt.value, g.status, g.body)
			}
			if tt.status >= 400 {
				if _, _, msg := errorOf(t, g.body); !strings.Contains(strings.ToLower(msg), strings.ToLower(tt.name)) {
					t.Errorf("%s: the message does not name it: %s", tt.name, msg)
				}
				if got := r.last().Final.Class; got != r.policy.Class {
					t.Errorf("%s: refused as of class %v, want the plan's", tt.name, got)
				}
			}
		}
		for name, want := range map[string]string{
			"Sluice-Lables": "did you mean sluice-labels?", "Sluice-Tsak": "did you mean sluice-task?", "Sluice-Maxwait": "did you mean sluice-max-wait?",
			"Sluice-Label": "did you mean sluice-labels?", "Sluice-": "use one of sluice-class, sluice-max-wait, sluice-task, sluice-labels, sluice-risk, sluice-run, sluice-run-limits, sluice-session",
		} {
			g := r.do(ask{header: http.Header{name: {"x"}}})
			if _, _, msg := errorOf(t, g.body); g.status != 400 || !strings.Contains(msg, strings.ToLower(name)+" is no header of a request: "+want) {
				t.Errorf("%s: got %d %s", name, g.status, msg)
			}
		}
		if g := r.do(ask{header: http.Header{"Sluice-Task": {"a", "b"}}}); g.status != 400 || !strings.Contains(g.body, "sluice-task is given twice") {
			t.Errorf("a header twice: got %d %s", g.status, g.body)
		}
		r.do(ask{header: http.Header{"Sluice-Task": {"triage"}, "Sluice-Labels": {"a=b"}, "Sluice-Class": {"batch"}}})
		if f := r.last().Final; f.Task != "triage" || len(f.Labels) != 1 || f.Class != sluice.Batch {
			t.Errorf("recorded task %q, labels %v, class %v", f.Task, f.Labels, f.Class)
		}
		if g := r.do(ask{body: `{"model":"other","messages":[]}`}); g.status != 403 {
			t.Errorf("a model that is not allowed: got %d", g.status)
		}
	})
}

// Nothing of the client's credential, addresses or sluice headers goes upstream.
func TestWhatTheBackendSees(t *testing.T) {
	var seen http.Header
	var body []byte
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Openai-Organization", "operator")
		w.Header().Set("X-Ratelimit-Remaining-Requests", "7")
		w.Header().Set("Openai-Processing-Ms", "12")
		talk{chunks: 1, usage: usage(9, 1)}.ServeHTTP(w, r)
	})
	inBubble(t, setup{places: []place{{handler: h}}}, func(t *testing.T, r *rig) {
		in := `{ "model" : "m", "messages":[{"role":"user","content":"hi"}], "x_unknown": [1, {"a":2}] }`
		g := r.do(ask{body: in, header: http.Header{"Sluice-Task": {"x"}, "X-Forwarded-For": {"10.1.1.1"}, "Cookie": {"s=1"}, "Openai-Beta": {"b"}}})
		if got := string(body); got != strings.Replace(in, `"m"`, `"up"`, 1) {
			t.Errorf("the body became %s", got)
		}
		if seen.Get("Authorization") != "Bearer "+upstreamSecret || seen.Get("Sluice-Task") != "" || seen.Get("X-Forwarded-For") != "" || seen.Get("Cookie") != "" {
			t.Errorf("the backend saw %v", seen)
		}
		for k, want := range map[string]string{"Set-Cookie": "", "Openai-Organization": "", "X-Ratelimit-Remaining-Requests": "", "Openai-Processing-Ms": "12"} {
			if got := g.header.Get(k); got != want {
				t.Errorf("the client got %s: %q, want %q", k, got, want)
			}
		}
	})
}

// A refusal that is the client's own mistake arrives as the backend wrote it.
func TestRefusalPassesAsItIs(t *testing.T) {
	body := `{"error":{"message":"max_tokens is too large","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}`
	inBubble(t, setup{places: []place{{handler: answers(400, body)}, {handler: talk{chunks: 1}, fallback: true}}}, func(t *testing.T, r *rig) {
		if g := r.do(ask{}); g.status != 400 || g.body != body || g.header.Get("Sluice-Backend") != "b0" {
			t.Errorf("got %d %s", g.status, g.body)
		}
		if n := r.net.Dials("b1:80"); n != 0 {
			t.Errorf("the fallback was dialled %d times", n)
		}
	})
}

// C6: a body that comes too slowly is refused before anything is held.
func TestC6SlowBody(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{}}}, options: func(o *Options) { o.BodyRate = 1000; o.BodyGrace = 5 * time.Second }}, func(t *testing.T, r *rig) {
		pr, pw := io.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				if _, err := pw.Write([]byte(`{"model":"m",`)); err != nil {
					return
				}
				time.Sleep(700 * time.Millisecond) // not at the moment of the refusal
			}
		})
		req := r.request(ask{})
		req.Body, req.ContentLength = pr, -1
		start := time.Now()
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		pr.Close()
		wg.Wait()
		if resp.StatusCode != 408 || time.Since(start) > 6*time.Second {
			t.Errorf("got %d %s after %v", resp.StatusCode, body, time.Since(start))
		}
		r.want(sluice.Rejected, sluice.BodyTimeout, 408)
		if v := r.gate.Dump(1); v.Open != 0 {
			t.Errorf("%d open", v.Open)
		}
	})
}

func TestBodyBound(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{}}}, options: func(o *Options) { o.MaxBody = 1 << 20 }}, func(t *testing.T, r *rig) {
		for _, declared := range []bool{true, false} {
			req := r.request(ask{body: strings.Repeat(" ", 1<<20+1)})
			if !declared {
				req.Body, req.ContentLength = io.NopCloser(req.Body), -1
			}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 413 {
				t.Errorf("declared %v: got %d", declared, resp.StatusCode)
			}
			r.want(sluice.Rejected, sluice.BodyTooLarge, 413)
		}
	})
}

func TestClientLeavesInMidBody(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
		conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer "+clientSecret+"\r\nContent-Length: 1000\r\n\r\n{\"model\":")
		time.Sleep(time.Second)
		conn.Close()
		r.want(sluice.Cancelled, sluice.ClientGone, 499)
	})
}

// cP1: the most that a large body takes is the body and its spliced copy.
func TestCP1LargeBody(t *testing.T) {
	const size = 20 << 20
	var received int64
	var peak uint64
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received, _ = io.Copy(io.Discard, r.Body)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = m.HeapAlloc
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":`+usage(900, 1)+`}`)
	})
	inBubble(t, setup{places: []place{{handler: h}}}, func(t *testing.T, r *rig) {
		body := `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", size) + `"}}]}]}`
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		g := r.do(ask{body: body})
		if g.status != 200 || received < size {
			t.Fatalf("got %d %s, %d bytes received", g.status, g.body, received)
		}
		grown := int64(peak) - int64(before.HeapAlloc)
		t.Logf("heap grew by %.1f × the body", float64(grown)/size)
		if grown > 2*size+4<<20 {
			t.Errorf("heap grew by %d MiB for a body of %d MiB", grown>>20, size>>20)
		}
	})
}

// P12: a panic is one request's failure, and its stack is told once.
func TestFault_P12_Panic(t *testing.T) {
	var stacks []string
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 3, gap: time.Second, usage: usage(9, 3)}}},
		options: func(o *Options) {
			o.Table = nil // what lists models panics
			o.Panic = func(id sluice.RequestID, v any, stack []byte) {
				stacks = append(stacks, fmt.Sprint(id, v, string(stack)))
			}
		},
	}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		var g got
		wg.Go(func() { g = r.do(ask{stream: true}) })
		synctest.Wait()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://gateway/v1/models", nil)
		req.Header.Set("authorization", "Bearer "+clientSecret)
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 500 {
			t.Errorf("got %d", resp.StatusCode)
		}
		r.want(sluice.Failed, sluice.InternalError, 500)
		wg.Wait()
		if g.status != 200 || g.err != nil {
			t.Errorf("the other request got %d %v", g.status, g.err)
		}
		if len(stacks) != 1 || !strings.HasPrefix(stacks[0], "req_") || !strings.Contains(stacks[0], "listModels") {
			t.Errorf("told of %q", stacks)
		}
	})
}

// count_tokens goes to a backend that can count. Where messages go to backends of
// another dialect it is answered with the estimate, and no backend is asked.
func TestCountTokens(t *testing.T) {
	a := ask{path: "/v1/messages/count_tokens", body: `{"model":"m","messages":[{"role":"user","content":"one two three four five"}]}`}
	inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
		g := r.do(a)
		var count struct {
			InputTokens int64 `json:"input_tokens"`
		}
		if err := json.Unmarshal([]byte(g.body), &count); err != nil || g.status != 200 || count.InputTokens < 5 || count.InputTokens > 50 {
			t.Errorf("got %d %s", g.status, g.body)
		}
		if r.net.Dials("b0:80") != 0 {
			t.Error("a backend was asked")
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Cost != 0 || rec.Final.Attempt != 0 {
			t.Errorf("it is recorded as %+v", rec.Final)
		}
	})
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: answers(200, `{"input_tokens":42}`)}}}, func(t *testing.T, r *rig) {
		if g := r.do(a); g.status != 200 || g.body != `{"input_tokens":42}` {
			t.Errorf("got %d %s", g.status, g.body)
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Cost != 0 || rec.Usage.Total() != 0 {
			t.Errorf("took %+v", rec.Usage)
		}
	})
}

// C8, C10: what is no request, or no body, ends with a 400 or its like and
// reaches nobody.
func TestHostileRequests(t *testing.T) {
	auth := "Host: gateway\r\nAuthorization: Bearer " + clientSecret + "\r\n"
	post := "POST /v1/chat/completions HTTP/1.1\r\n" + auth
	body := func(b string) string { return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, len(b), b) }
	inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
		for name, raw := range map[string]string{
			"bare LF in a header":  "POST /v1/chat/completions HTTP/1.1\nHost: gateway\n Authorization: x\n\n",
			"two lengths":          post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
			"negative length":      post + "Content-Length: -2\r\n\r\n{}",
			"bad chunk":            post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
			"unknown encoding":     post + "Transfer-Encoding: gzip\r\n\r\n{}",
			"space in a name":      post + "Content-Length : 2\r\n\r\n{}",
			"64 KiB header":        post + "X-Long: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
			"no host":              "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
			"depth":                body(`{"model":"m","messages":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`),
			"key twice":            body(`{"model":"m","model":"other","messages":[]}`),
			"key in another case":  body(`{"model":"m","Model":"other","messages":[]}`),
			"number out of range":  body(`{"model":"m","max_tokens":1e400,"messages":[]}`),
			"lone surrogate":       body(`{"model":"\ud800","messages":[]}`),
			"invalid UTF-8":        body("{\"model\":\"m\xff\",\"messages\":[]}"),
			"trailing data":        body(`{"model":"m","messages":[]} {}`),
			"not an object":        body(`[]`),
			"credential twice":     "POST /v1/chat/completions HTTP/1.1\r\n" + auth + "Authorization: Bearer other\r\nContent-Length: 2\r\n\r\n{}",
			"compressed body":      post + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
			"model name with path": body(`{"model":"../../admin","messages":[]}`),
		} {
			conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
			if err != nil {
				t.Fatal(err)
			}
			go io.WriteString(conn, raw)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if resp.StatusCode < 400 || resp.StatusCode == 500 {
				t.Errorf("%s: got %d", name, resp.StatusCode)
			}
			conn.Close()
		}
		if n := r.net.Dials("b0:80"); n != 0 {
			t.Errorf("a backend was dialled %d times", n)
		}
	})
}

// What waits for its pool's ladder is told of the tier however it ends, be it in a stream
// that has its status already.
func TestTierOfWhatIsDeferred(t *testing.T) {
	s := setup{places: []place{{handler: talk{chunks: 2, usage: usage(9, 2)}}}, policy: sluice.Policy{Class: sluice.Batch}, ladder: ladder.Default(ladder.Act)}
	inBubble(t, s, func(t *testing.T, r *rig) {
		pin := func(to ladder.Tier) {
			if _, err := r.gate.Operate(engine.Order{Pool: "main", Pin: &ladder.Pin{Tier: to, Author: "ann", Reason: "drill", Expires: time.Now().Add(time.Hour)}}); err != nil {
				t.Fatal(err)
			}
		}
		pin(ladder.Defer)
		g := r.do(ask{stream: true, header: http.Header{"Sluice-Max-Wait": {"40s"}}})
		wantCut(t, g)
		if !strings.Contains(g.body, `: sluice {"reason":"queue_timeout","tier":3}`+"\n\n") || g.took != 40*time.Second {
			t.Errorf("got %q after %v", g.body, g.took)
		}
		g = r.do(ask{header: http.Header{"Sluice-Max-Wait": {"40s"}}})
		if g.status != 503 || g.header.Get("Sluice-Tier") != "3" || g.header.Get("Sluice-Reason") != "queue_timeout" {
			t.Errorf("in one piece: %d %v", g.status, g.header)
		}
		patient := http.Header{"Sluice-Max-Wait": {"10m"}}
		var left got
		var wg sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		wg.Go(func() { left = r.do(ask{ctx: ctx, header: patient}) })
		wg.Go(func() { g = r.do(ask{header: patient}) })
		time.Sleep(10 * time.Second)
		leave()
		synctest.Wait()
		r.journal.mu.Lock()
		e := r.journal.entries[len(r.journal.entries)-1]
		r.journal.mu.Unlock()
		if e.Outcome != sluice.Cancelled || e.Tier != ladder.Defer || !strings.Contains(string(e.Detail), `"did":["defer"],"why":"pin","by":"ann","reason":"drill"`) {
			t.Errorf("its client has left (%v): %v, tier %v, %s", left.err, e.Outcome, e.Tier, e.Detail)
		}
		pin(ladder.None)
		wg.Wait()
		if g.status != 200 || g.header.Get("Sluice-Tier") != "3" {
			t.Errorf("served in the end: %d %v", g.status, g.header)
		}
	})
}

// A stream that waits in the queue is kept alive, and told of its end in it.
func TestKeepAliveInTheQueue(t *testing.T) {
	s := setup{places: []place{{handler: talk{chunks: 2, gap: 5 * time.Minute, usage: usage(9, 2)}, timeouts: upstream.Timeouts{Idle: time.Hour}}}}
	inBubble(t, gauge(s), func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		wg.Go(func() { r.do(ask{stream: true}) })
		synctest.Wait()
		g := r.do(ask{stream: true, header: http.Header{"Sluice-Max-Wait": {"40s"}}})
		wantCut(t, g)
		if g.took != 40*time.Second || strings.Count(g.body, ": keep-alive") != 2 || !strings.Contains(g.body, `"error"`) {
			t.Errorf("got %q after %v", g.body, g.took)
		}
		g = r.do(ask{header: http.Header{"Sluice-Max-Wait": {"40s"}}})
		if g.status != 429 || g.err != nil {
			t.Errorf("an answer in one piece was committed early: %d %v", g.status, g.err)
		}
		wg.Wait()
	})
}
