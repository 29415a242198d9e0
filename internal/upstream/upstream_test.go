package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a client and one backend over a network in memory.
type rig struct {
	net    *egresstest.Net
	client *Client
	target *Target
}

func inBubble(t *testing.T, h http.HandlerFunc, f func(t *testing.T, r *rig)) {
	bubble.Test(t, func(t *testing.T) {
		n := &egresstest.Net{}
		srv := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // only then does net/http notice a client that leaves
			r.Body = io.NopCloser(bytes.NewReader(body))
			h(w, r)
		})}
		l := n.Listen("backend:80")
		done := make(chan struct{})
		go func() { srv.Serve(l); close(done) }()
		base, _ := url.Parse("http://backend/v1")
		r := &rig{net: n, client: New(Options{Dialer: egress.New(egress.Options{Dial: n.Dial})}), target: &Target{BaseURL: base, Dialect: wire.OpenAI}}
		f(t, r)
		r.client.Close()
		srv.Close()
		<-done
		time.Sleep(time.Hour) // handlers that sleep, and net/http's lingering, end
	})
}

func (r *rig) do(ctx context.Context, stream bool) (*Answer, error) {
	return r.client.Do(ctx, r.target, Request{Path: "/chat/completions", Body: []byte(`{"model":"m"}`), Stream: stream})
}

func stream(w http.ResponseWriter, every time.Duration, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	for i := range n {
		fmt.Fprintf(w, "data: %d\n\n", i)
		w.(http.Flusher).Flush()
		time.Sleep(every)
	}
}

// pump reads a stream, counting one token for each read.
func pump(a *Answer) (reads int, err error) {
	buf := make([]byte, 64)
	for {
		n, err := a.Read(buf)
		if n > 0 {
			reads++
			a.Progress(sluice.Tokens(reads))
		}
		if err != nil {
			return reads, err
		}
	}
}

func wantReason(t *testing.T, err error, want sluice.Reason) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Reason != want {
		t.Fatalf("got error %v, want reason %v", err, want)
	}
	if e.Public().Msg == "" || e.Public().Reason != want {
		t.Errorf("%v has no public message", want)
	}
	return e
}

func TestStreamDeadlines(t *testing.T) {
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	headersOnly := func(w http.ResponseWriter, r *http.Request) {
		stream(w, 0, 0)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, tt := range []struct {
		name     string
		handler  http.HandlerFunc
		timeouts Timeouts
		reads    int
		after    time.Duration
		want     sluice.Reason
	}{
		{"no headers", silent, Timeouts{Headers: 2 * time.Second}, 0, 2 * time.Second, sluice.UpstreamTimeout},
		{"no headers, first token sooner", silent, Timeouts{Headers: 9 * time.Second, FirstToken: 3 * time.Second}, 0, 3 * time.Second, sluice.UpstreamTimeout},
		{"no first token", headersOnly, Timeouts{FirstToken: 7 * time.Second, Idle: 2 * time.Second}, 0, 7 * time.Second, sluice.UpstreamTimeout},
		{"idle", func(w http.ResponseWriter, r *http.Request) {
			stream(w, time.Second, 3)
			<-r.Context().Done()
		}, Timeouts{Idle: 5 * time.Second}, 3, 7 * time.Second, sluice.UpstreamStalled},
		{
			"cS3 slow", func(w http.ResponseWriter, r *http.Request) { stream(w, 1200*time.Millisecond, 60) },
			Timeouts{Idle: 5 * time.Second, Rate: 5, Window: 10 * time.Second},
			9, 10 * time.Second, sluice.UpstreamStalled,
		},
		{
			"fast enough", func(w http.ResponseWriter, r *http.Request) { stream(w, 180*time.Millisecond, 150) },
			Timeouts{Idle: 5 * time.Second, Rate: 5, Window: 10 * time.Second},
			150, 27 * time.Second, sluice.ReasonNone,
		},
		{
			"total", func(w http.ResponseWriter, r *http.Request) { stream(w, time.Second, 600) },
			Timeouts{Total: 4500 * time.Millisecond},
			5, 4500 * time.Millisecond, sluice.UpstreamTimeout,
		},
		{
			"done", func(w http.ResponseWriter, r *http.Request) { stream(w, time.Second, 3) },
			Timeouts{},
			3, 3 * time.Second, sluice.ReasonNone,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.handler, func(t *testing.T, r *rig) {
				r.target.Timeouts = tt.timeouts
				start := time.Now()
				a, err := r.do(t.Context(), true)
				reads := 0
				if err == nil {
					defer a.Close()
					if !a.Events {
						t.Error("not seen as a stream of events")
					}
					reads, err = pump(a)
				}
				if got := time.Since(start); got != tt.after {
					t.Errorf("ended after %v, want %v", got, tt.after)
				}
				if reads != tt.reads {
					t.Errorf("got %d reads, want %d", reads, tt.reads)
				}
				if tt.want == sluice.ReasonNone {
					if err != io.EOF {
						t.Errorf("got %v, want the end", err)
					}
					return
				}
				if e := wantReason(t, err, tt.want); !e.Sent {
					t.Error("not marked as sent")
				}
			})
		})
	}
}

// The time that the caller spends away from the backend is not the backend's.
func TestSlowCallerIsNotAStall(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) { stream(w, 0, 3) }, func(t *testing.T, r *rig) {
		r.target.Timeouts = Timeouts{Idle: time.Second, Rate: 100, Window: 2 * time.Second}
		a, err := r.do(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		buf := make([]byte, 4)
		for {
			n, err := a.Read(buf)
			if n > 0 {
				a.Progress(1)
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestAnswerInOnePiece(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(90 * time.Second)
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	}, func(t *testing.T, r *rig) {
		r.target.Timeouts = Timeouts{Headers: 2 * time.Second} // of streams alone
		a, err := r.do(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if got, err := a.ReadAll(); err != nil || string(got) != `{"model":"m"}` {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    sluice.Reason
	}{
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
		}, sluice.UpstreamRedirect},
		{"encoding", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write([]byte("x"))
		}, sluice.UpstreamMalformed},
		{"too large", func(w http.ResponseWriter, r *http.Request) {
			for range 40 {
				w.Write(make([]byte, 1<<20))
			}
		}, sluice.UpstreamTooLarge},
		{"too large, declared", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "99000000")
			w.Write([]byte("x"))
		}, sluice.UpstreamTooLarge},
		{"headers too large", func(w http.ResponseWriter, r *http.Request) {
			for i := range 40 {
				w.Header().Set(fmt.Sprintf("x-%d", i), strings.Repeat("x", 4000))
			}
		}, sluice.UpstreamTooLarge},
		{"cut before headers", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, sluice.UpstreamConnect},
		{"cut in the body", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, sluice.UpstreamTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.handler, func(t *testing.T, r *rig) {
				a, err := r.do(t.Context(), false)
				if err == nil {
					_, err = a.ReadAll()
					a.Close()
				}
				if e := wantReason(t, err, tt.want); e.Sent != (tt.want != sluice.UpstreamRedirect) {
					t.Errorf("sent is %v", e.Sent)
				}
			})
		})
	}
}

func TestErrorAnswerIsReadBounded(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(429)
		w.Write(make([]byte, 100<<10))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, func(t *testing.T, r *rig) {
		start := time.Now()
		a, err := r.do(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if a.Status != 429 || len(a.Refusal) != maxErrorAnswer || a.Header.Get("Retry-After") != "7" || time.Since(start) != 0 {
			t.Errorf("got status %d, %d bytes after %v", a.Status, len(a.Refusal), time.Since(start))
		}
	})
}

func TestConnectFailures(t *testing.T) {
	inBubble(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, r *rig) {
		r.net.Blackhole("hole:80")
		for host, after := range map[string]time.Duration{"nobody": 0, "hole": 2 * time.Second, "169.254.169.254": 0, "10.0.0.1.": 0} {
			u, _ := url.Parse("http://" + host + "/v1")
			tg := &Target{BaseURL: u, Dialect: wire.OpenAI, Timeouts: Timeouts{Connect: 2 * time.Second}}
			start := time.Now()
			_, err := r.client.Do(t.Context(), tg, Request{Path: "/x"})
			if e := wantReason(t, err, sluice.UpstreamConnect); e.Sent || time.Since(start) != after {
				t.Errorf("%s: sent %v after %v", host, e.Sent, time.Since(start))
			}
		}
	})
}

func TestCancelReachesTheWireAtOnce(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		var gone time.Time
		inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			gone = time.Now()
		}, func(t *testing.T, r *rig) {
			cause := errors.New("left")
			ctx, cancel := context.WithCancelCause(t.Context())
			var left time.Time
			time.AfterFunc(time.Second, func() { left = time.Now(); cancel(cause) })
			if _, err := r.do(ctx, streaming); err != cause {
				t.Errorf("got %v, want the cause, of a request that was sent", err)
			}
			synctest.Wait()
			if gone.IsZero() || gone.Sub(left) != 0 {
				t.Errorf("backend saw it %v after", gone.Sub(left))
			}
		})
	}
}

// What is given up before it has a connection was never sent.
func TestGivenUpUnsent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.net.Blackhole("hole:80")
		r.target.BaseURL = &url.URL{Scheme: "http", Host: "hole", Path: "/v1"}
		cause := errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := r.do(ctx, true); !errors.Is(err, cause) || !errors.Is(err, ErrUnsent) {
			t.Errorf("got %v, want the cause, unsent", err)
		}
	})
}

// A request that is given up while it gets its connection was sent exactly when
// the backend can have seen it.
func TestGivenUpOnTheWay(t *testing.T) {
	for range 100 {
		seen := false
		inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			seen = true
			<-r.Context().Done()
		}, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			r.client = New(Options{Dialer: egress.New(egress.Options{Dial: func(dial context.Context, network, addr string) (net.Conn, error) {
				c, err := r.net.Dial(dial, network, addr)
				go cancel()
				return c, err
			}})})
			_, err := r.do(ctx, true)
			synctest.Wait()
			if !errors.Is(err, context.Canceled) || seen && errors.Is(err, ErrUnsent) {
				t.Fatalf("got %v, the backend has seen it: %v", err, seen)
			}
		})
	}
}

func TestWhatIsSent(t *testing.T) {
	var got *http.Request
	inBubble(t, func(w http.ResponseWriter, r *http.Request) { got = r }, func(t *testing.T, r *rig) {
		client := http.Header{
			"Authorization": {"Bearer client"}, "X-Api-Key": {"client"}, "Cookie": {"c"}, "Sluice-Class": {"batch"},
			"Connection": {"x"}, "X-Forwarded-For": {"1.2.3.4"}, "Idempotency-Key": {"k"},
		}
		send := func() {
			a, err := r.client.Do(t.Context(), r.target, Request{Path: "/messages", Body: []byte("{}"), Header: client, Stream: true})
			if err != nil {
				t.Fatal(err)
			}
			a.ReadAll()
			a.Close()
		}
		r.target.APIKey = sluice.NewSecret("sk-real")
		send()
		want := map[string]string{
			"Authorization": "Bearer sk-real", "Accept": "text/event-stream", "Content-Type": "application/json",
			"X-Api-Key": "", "Cookie": "", "Sluice-Class": "", "X-Forwarded-For": "", "Idempotency-Key": "", "Accept-Encoding": "identity",
		}
		for k, v := range want {
			if got.Header.Get(k) != v {
				t.Errorf("openai %s: got %q, want %q", k, got.Header.Get(k), v)
			}
		}
		if got.URL.Path != "/v1/messages" || got.ContentLength != 2 || got.Host != "backend" {
			t.Errorf("got %s, length %d, host %s", got.URL, got.ContentLength, got.Host)
		}
		r.target.Dialect = wire.Anthropic
		send()
		for k, v := range map[string]string{"Authorization": "", "X-Api-Key": "sk-real", "Anthropic-Version": AnthropicVersion} {
			if got.Header.Get(k) != v {
				t.Errorf("anthropic %s: got %q, want %q", k, got.Header.Get(k), v)
			}
		}
	})
}

func TestTLSFailureIsNamed(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	u, _ := url.Parse(srv.URL)
	c := New(Options{Dialer: egress.New(egress.Options{})})
	defer c.Close()
	_, err := c.Do(t.Context(), &Target{BaseURL: u, Dialect: wire.OpenAI}, Request{Path: "/x"})
	if e := wantReason(t, err, sluice.UpstreamTLS); e.Sent {
		t.Error("marked as sent")
	}
}

func TestValidate(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1": "", "http://10.0.0.5:8000/v1": "",
		"ftp://x/": "must start with", "https:///v1": "no host", "https://a:b@c/v1": "credentials", "https://x/v1?a=b": "query", "https://x/v1#f": "query or fragment",
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		err = (&Target{BaseURL: u, Dialect: wire.OpenAI}).Validate()
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) && want != "" {
			t.Errorf("%s: got %v, want %q", base, err, want)
		}
	}
	if err := (&Target{}).Validate(); err == nil {
		t.Error("no base_url: accepted")
	}
}

// Engines that take a salt are sent one for each tenant, made of the operator's secret;
// no other backend is sent any.
func TestCacheSalt(t *testing.T) {
	salts := map[string]bool{}
	for _, tt := range []struct {
		engine  string
		dialect wire.Dialect
		salted  bool
	}{{"vllm", wire.OpenAI, true}, {"sglang", wire.OpenAI, true}, {"sglang", wire.Anthropic, false}, {"llamacpp", wire.OpenAI, false}, {"", wire.OpenAI, false}} {
		target := &Target{Engine: tt.engine, Dialect: tt.dialect, SaltKey: sluice.NewSecret("operator's")}
		for _, tenant := range []sluice.TenantID{"a", "b"} {
			salt := target.CacheSalt(tenant)
			if (salt != "") != tt.salted || strings.Contains(salt, "operator") {
				t.Errorf("%s in the %s dialect: %q", tt.engine, tt.dialect, salt)
			}
			if salts[salt] = true; target.CacheSalt(tenant) != salt {
				t.Error("a tenant has two salts")
			}
		}
	}
	if len(salts) != 3 { // of two tenants, and none
		t.Errorf("salts %v", salts)
	}
	if salt := (&Target{Engine: "vllm", Dialect: wire.OpenAI}).CacheSalt("a"); salt != "" {
		t.Errorf("without a secret: %q", salt)
	}
}
