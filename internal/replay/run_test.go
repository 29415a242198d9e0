package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quantileOf(v []int64, q float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return float64(s[int(q*float64(len(s)-1))])
}

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answerWith(status int, header http.Header, body string) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

func every(d time.Duration, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{At: time.Duration(i) * d, Input: 20, Output: 5}
	}
	return rows
}

const goodStream = `data: {"choices":[{"delta":{"role":"assistant","content":""}}],"usage":null}

: a comment

data: {"choices":[{"delta":{"content":"Hello"}}]}

data: {"choices":[{"delta":{"content":" world"}}]}

data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5}}

data: [DONE]

`

// A server that stalls does not delay a single later send, and its slowness is
// charged from the intended start.
func TestLoopIsOpen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		stall := transport(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			at = append(at, time.Since(start))
			n := len(at)
			mu.Unlock()
			if n <= 5 { // the first ones hang for a minute
				time.Sleep(time.Minute)
			}
			return answerWith(200, nil, goodStream), nil
		})
		rep, err := Run(t.Context(), Options{Rows: every(100*time.Millisecond, 50), Target: "http://gateway", Speed: 2, Transport: stall})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(at)
		for i, got := range at {
			if want := time.Duration(i) * 50 * time.Millisecond; got != want {
				t.Fatalf("request %d was sent at %s, want %s", i, got, want)
			}
		}
		if rep.Sent != 50 || rep.Completed != 50 || rep.Lost != 0 || rep.Latency.Max < 59_000 || rep.Lag.Max != 0 {
			t.Errorf("report %+v", rep)
		}
	})
}

// Beyond the bound rows are dropped, never delayed.
func TestOverrunIsNotDelay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hang := transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		rep, err := Run(t.Context(), Options{Rows: every(time.Second, 10), Target: "http://gateway", Transport: hang, MaxInFlight: 3, Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Sent != 3 || rep.Overrun != 7 || rep.Failed != 3 || rep.Reasons["timeout"] != 3 || rep.Lost != 0 {
			t.Errorf("report %+v", rep)
		}
	})
}

func TestStopCutsTheRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
		defer cancel()
		hang := transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		rep, err := Run(ctx, Options{Rows: every(time.Second, 10), Target: "http://gateway", Transport: hang})
		if err != nil {
			t.Fatal(err)
		}
		if !rep.Cut || rep.Sent != 6 || rep.Cancelled != 6 || rep.Lost != 0 {
			t.Errorf("report %+v", rep)
		}
	})
}

func TestOutcomes(t *testing.T) {
	sse := func(s string) func() *http.Response { return func() *http.Response { return answerWith(200, nil, s) } }
	head := strings.TrimSuffix(goodStream, "data: [DONE]\n\n")
	tests := []struct {
		name   string
		row    Row
		answer func() *http.Response
		want   string
		reason string
	}{
		{"completed", Row{}, sse(goodStream), completed, ""},
		{"crlf", Row{}, sse(strings.ReplaceAll(goodStream, "\n", "\r\n")), completed, ""},
		{"truncated", Row{}, sse(head), failed, "truncated"},
		{"error event", Row{}, sse(head + "data: {\"error\":{\"type\":\"server_error\",\"code\":null}}\n\n"), failed, "event:server_error"},
		{"refused in a stream", Row{}, sse(": keep-alive\n\ndata: {\"error\":{\"type\":\"server_error\",\"code\":\"queue_timeout\",\"sluice\":{\"reason\":\"queue_timeout\"}}}\n\n"), rejected, "queue_timeout"},
		{"failed in a stream", Row{}, sse(head + "data: {\"error\":{\"type\":\"server_error\",\"code\":\"upstream_error\",\"sluice\":{\"reason\":\"upstream_error\"}}}\n\n"), failed, "event:upstream_error"},
		{"malformed", Row{}, sse("data: {\n\n"), failed, "connection"},
		{"left", Row{CancelAfter: 1}, sse(goodStream), cancelled, ""},
		{"limited", Row{}, func() *http.Response {
			return answerWith(429, http.Header{"Sluice-Reason": {"rate_limited"}}, "")
		}, rejected, "rate_limited"},
		{"limited, not by sluice", Row{}, func() *http.Response {
			return answerWith(429, nil, `{"error":{"type":"requests","code":"rate_limit_exceeded"}}`)
		}, rejected, "rate_limit_exceeded"},
		{"full", Row{}, func() *http.Response {
			return answerWith(503, http.Header{"Sluice-Reason": {"queue_full"}}, "")
		}, rejected, "queue_full"},
		{"upstream", Row{}, func() *http.Response {
			return answerWith(502, http.Header{"Sluice-Reason": {"upstream_error"}}, "")
		}, failed, "upstream_error"},
		{"whole", Row{Whole: true}, sse(`{"usage":{"prompt_tokens":3,"completion_tokens":4}}`), completed, ""},
		{"whole, broken", Row{Whole: true}, sse(`{"usage":`), failed, "connection"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.row.Input, tt.row.Output = 10, 5
			rep, err := Run(t.Context(), Options{
				Rows: []Row{tt.row}, Target: "http://gateway/v1/",
				Transport: transport(func(*http.Request) (*http.Response, error) { return tt.answer(), nil }),
			})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{completed: rep.Completed, cancelled: rep.Cancelled, rejected: rep.Rejected, failed: rep.Failed}
			if got[tt.want] != 1 {
				t.Errorf("got %v, want %s", got, tt.want)
			}
			if tt.reason != "" && rep.Reasons[tt.reason] != 1 {
				t.Errorf("got reasons %v, want %s", rep.Reasons, tt.reason)
			}
		})
	}
}

func TestRequestsOfBothDialects(t *testing.T) {
	for _, dialect := range []Dialect{OpenAI, Anthropic} {
		var got []*http.Request
		var bodies []string
		var mu sync.Mutex
		record := transport(func(r *http.Request) (*http.Response, error) {
			b, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			got, bodies = append(got, r), append(bodies, string(b))
			return answerWith(429, nil, ""), nil
		})
		_, err := Run(t.Context(), Options{
			Rows: []Row{{Input: 500, Output: 42, Client: "a", Task: "t"}}, Target: "http://gateway", Dialect: dialect, Transport: record,
			Keys: map[string]sluice.Secret{"a": sluice.NewSecret("key-a")},
		})
		if err != nil {
			t.Fatal(err)
		}
		r, b := got[0], bodies[0]
		for _, want := range []string{`"model":"sim-small"`, `"max_tokens":42`, `"stream":true`, `[[tokens=42]]`, `"a"`} {
			if !strings.Contains(b, want) {
				t.Errorf("%s: no %s in %s", dialect, want, b)
			}
		}
		key := r.Header.Get("Authorization") + r.Header.Get("x-api-key")
		if !strings.HasSuffix(key, "key-a") || r.Header.Get("sluice-task") != "t" {
			t.Errorf("%s: headers %v", dialect, r.Header)
		}
		if n := len(strings.Fields(b)) + strings.Count(b, "."); n < 480 || n > 500 {
			t.Errorf("%s: %d words and stops for 500 tokens", dialect, n)
		}
	}
}

func TestKeysGoRoundByClient(t *testing.T) {
	d := &driver{clients: map[string]int{}}
	for _, k := range []string{"k0", "k1"} {
		d.o.Pool = append(d.o.Pool, sluice.NewSecret(k))
	}
	for _, tt := range []struct{ client, want string }{{"a", "k0"}, {"b", "k1"}, {"a", "k0"}, {"c", "k0"}, {"b", "k1"}, {"", "k1"}, {"", "k0"}} {
		if got := d.key(tt.client).Reveal(); got != tt.want {
			t.Errorf("client %q has %s, want %s", tt.client, got, tt.want)
		}
	}
}

// Same seed, same requests.
func TestAbortsAreSeeded(t *testing.T) {
	draw := func(seed uint64) []int {
		d := &driver{o: Options{Abort: 0.25, AbortWithin: 20}, dice: newDice(seed, 3)}
		var out []int
		for range 1000 {
			r := Row{}
			d.shape(&r)
			out = append(out, r.CancelAfter)
		}
		return out
	}
	a := draw(1)
	if !slices.Equal(a, draw(1)) || slices.Equal(a, draw(2)) {
		t.Error("aborts do not follow the seed")
	}
	aborts := 0
	for _, n := range a {
		if n > 0 {
			aborts++
		}
	}
	if aborts < 200 || aborts > 300 {
		t.Errorf("%d of 1000 leave, want about 250", aborts)
	}
}

func TestEqualBlocksMakeEqualPrefixes(t *testing.T) {
	a := prompt(&Row{Input: 2000, Blocks: []int64{0, 1, 2}}, 1, false)
	b := prompt(&Row{Input: 2000, Blocks: []int64{0, 1, 9}}, 2, false)
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if n < 4000 || n > 6000 {
		t.Errorf("the prompts share %d bytes, want about two blocks", n)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	d := rand.New(rand.NewPCG(1, 1))
	var all []int64
	for range 20_000 {
		v := int64(d.ExpFloat64() * 1e8)
		all = append(all, v)
		h.add(time.Duration(v))
	}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		want := quantileOf(all, q)
		if got := float64(h.quantile(q)); got < want*0.985 || got > want*1.015 {
			t.Errorf("p%g is %g, want %g", q*100, got, want)
		}
	}
	for _, v := range []uint64{0, 1, 127, 128, 255, 256, 1e9, 1<<63 - 1} {
		i := bucket(v)
		if c := ceiling(i); c < v || float64(c-v) > float64(v)/128+1 {
			t.Errorf("%d lies in a bucket that ends at %d", v, c)
		}
		if i > 0 && ceiling(i-1) >= v {
			t.Errorf("%d belongs into an earlier bucket", v)
		}
	}
}

func TestReconcile(t *testing.T) {
	backend := BackendBook{Entries: []BackendEntry{
		{"r1", true, 100, 50}, {"r2", true, 200, 20}, {"r3", true, 1000, 100}, {"r4", false, 50, 0}, {"r5", true, 10, 10},
	}}
	ledger := LedgerBook{Entries: []LedgerEntry{
		{"r1", sluice.UsageReported, 100, 50},
		{"r2", sluice.UsageReported, 200, 20},
		{"r3", sluice.UsageEstimated, 1010, 99},
		{"r4", sluice.UsageNone, 0, 0},
		{"", sluice.UsageNone, 0, 0},
		{"r5", sluice.UsageReported, 10, 10},
	}}
	b := Reconcile(ledger, backend)
	if !b.Balance || b.Sources["reported"].Exact != 3 || b.Sources["estimated"].Within != 1 {
		t.Errorf("got %+v", b)
	}
	// A call that was abandoned before its headers came: matched in number and
	// input.
	ledger.Entries = append(ledger.Entries, LedgerEntry{"", sluice.UsageEstimated, 303, 77})
	backend.Entries = append(backend.Entries, BackendEntry{"r6", true, 300, 5})
	if b := Reconcile(ledger, backend); !b.Balance || b.Unnamed.Entries != 1 || b.Unnamed.BackendInput != 300 {
		t.Errorf("got %+v", b)
	}
	// Of a small sample a token or two are much; of each entry no more.
	for output, want := range map[sluice.Tokens]bool{5: true, 7: true, 3: true, 8: false, 2: false} {
		l := LedgerBook{Entries: []LedgerEntry{{"s1", sluice.UsageCounted, 9, output}}}
		if got := Reconcile(l, BackendBook{Entries: []BackendEntry{{"s1", true, 10, 5}}}); got.Balance != want || got.Sources["counted"].Entries != 1 {
			t.Errorf("%d tokens against 5: %+v", output, got)
		}
	}
	tests := []struct {
		name   string
		change func(*LedgerBook)
	}{
		{"unnamed input far off", func(l *LedgerBook) { l.Entries[6].Input = 330 }},
		{"unnamed missing", func(l *LedgerBook) { l.Entries = l.Entries[:6] }},
		{"unnamed twice", func(l *LedgerBook) { l.Entries = append(l.Entries, l.Entries[6]) }},
		{"one token off", func(l *LedgerBook) { l.Entries[0].Output++ }},
		{"estimate far off", func(l *LedgerBook) { l.Entries[2].Input = 1100 }},
		{"missing", func(l *LedgerBook) { l.Entries = l.Entries[1:] }},
		{"twice", func(l *LedgerBook) { l.Entries = append(l.Entries, l.Entries[0]) }},
		{"unknown", func(l *LedgerBook) { l.Entries[0].Provider = "r9" }},
		{"open", func(l *LedgerBook) { l.Open = 1 }},
	}
	for _, tt := range tests {
		l := LedgerBook{Entries: slices.Clone(ledger.Entries)}
		tt.change(&l)
		if Reconcile(l, backend).Balance {
			t.Errorf("%s: the books balance", tt.name)
		}
	}
}

// The books are read again until the last requests have settled.
func TestBooksAreAwaited(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		reads := 0
		o := Options{
			Rows: every(time.Second, 1), Target: "http://gateway",
			Transport: transport(func(*http.Request) (*http.Response, error) { return answerWith(200, nil, goodStream), nil }),
			Ledger: func(context.Context, time.Time) (LedgerBook, error) {
				if reads++; reads < 4 {
					return LedgerBook{Open: 1}, nil
				}
				return LedgerBook{Entries: []LedgerEntry{{"r", sluice.UsageReported, 20, 5}}}, nil
			},
			Backends: []Backend{func(context.Context, time.Time) (BackendBook, error) {
				return BackendBook{Entries: []BackendEntry{{"r", true, 20, 5}}}, nil
			}},
		}
		rep, err := Run(t.Context(), o)
		if err != nil || rep.Books == nil || !rep.Books.Balance || reads != 4 {
			t.Errorf("got %+v, %v after %d reads", rep, err, reads)
		}
		o.Ledger = func(context.Context, time.Time) (LedgerBook, error) { return LedgerBook{}, fmt.Errorf("no") }
		rep, _ = Run(t.Context(), o)
		if rep.Books != nil || !strings.Contains(rep.BooksError, "no") {
			t.Errorf("got %+v", rep)
		}
	})
}

func TestFakeLLMBook(t *testing.T) {
	answer := `{"total":{"requests":2,"running":0},"kept":2,"served":[{"id":"r1","billed":true,"input":5,"output":6},{"id":"r2","billed":false,"input":1,"output":0}]}`
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/fakellm/served" || r.URL.Query().Get("since") == "" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer ts.Close()
	tr := &http.Transport{DisableKeepAlives: true}
	got, err := FakeLLM(ts.URL+"/v1", tr)(t.Context(), time.Now())
	if err != nil || len(got.Entries) != 2 || got.Entries[0] != (BackendEntry{"r1", true, 5, 6}) {
		t.Errorf("got %+v, %v", got, err)
	}
	answer = `{"total":{"requests":9},"kept":1,"served":[{"id":"r1"}]}`
	if _, err := FakeLLM(ts.URL, tr)(t.Context(), time.Now()); err == nil {
		t.Error("a book with a hole is accepted")
	}
}

func TestReportForms(t *testing.T) {
	rep, err := Run(t.Context(), Options{
		Rows: every(0, 3), Target: "http://gateway", Progress: io.Discard,
		Transport: transport(func(*http.Request) (*http.Response, error) { return answerWith(200, nil, goodStream), nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	rep.Books = Reconcile(LedgerBook{Entries: []LedgerEntry{{"r", sluice.UsageReported, 1, 1}}}, BackendBook{Entries: []BackendEntry{{"r", true, 1, 1}}})
	var table, js bytes.Buffer
	if err := rep.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := rep.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 completed", "60 in, 15 out", "balance"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	var back Report
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || back.Told.Output != 15 {
		t.Errorf("got %+v, %v", back, err)
	}
}

func TestBadOptions(t *testing.T) {
	good := func() Options {
		return Options{Rows: every(0, 1), Target: "http://gateway", Transport: transport(nil)}
	}
	for name, change := range map[string]func(*Options){
		"no rows":   func(o *Options) { o.Rows = nil },
		"no dialer": func(o *Options) { o.Transport = nil },
		"target":    func(o *Options) { o.Target = "gateway:8080" },
		"dialect":   func(o *Options) { o.Dialect = "gemini" },
		"abort":     func(o *Options) { o.Abort = 2 },
	} {
		o := good()
		change(&o)
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
