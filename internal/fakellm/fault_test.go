package fakellm

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every fault, on the wire and in the book.
func TestFaults(t *testing.T) {
	broken := func(t *testing.T, a answer) {
		if a.err == nil {
			t.Errorf("the stream ends cleanly: %q", a.body)
		}
	}
	clean := func(t *testing.T, a answer) {
		if a.err != nil {
			t.Errorf("the stream is torn: %v", a.err)
		}
	}
	marker := func(t *testing.T, a answer, want bool) {
		if got := strings.Contains(a.body, "[DONE]") || strings.Contains(a.body, "event: message_stop"); got != want {
			t.Errorf("terminal marker %t, want %t: %s", got, want, a.body)
		}
	}
	status := func(want int) func(*testing.T, answer) {
		return func(t *testing.T, a answer) {
			if a.status != want || !strings.Contains(a.body, `"error"`) {
				t.Errorf("got %d %s, want %d", a.status, a.body, want)
			}
		}
	}
	contains := func(want string) func(*testing.T, answer) {
		return func(t *testing.T, a answer) {
			if !strings.Contains(a.body, want) {
				t.Errorf("no %q in %.400s", want, a.body)
			}
		}
	}
	tests := []struct {
		fault string
		end   string
		check func(t *testing.T, a answer)
	}{
		{"status=503", EndRefused, status(503)},
		{"status=401", EndRefused, status(401)},
		{"429=30", EndRefused, func(t *testing.T, a answer) {
			status(429)(t, a)
			if a.header.Get("Retry-After") != "30" {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		}},
		{"529", EndRefused, status(529)},
		{"quota", EndRefused, func(t *testing.T, a answer) {
			if a.status != 429 && a.status != 402 {
				t.Errorf("got %d", a.status)
			}
		}},
		{"503!retry-after=Wed, 21 Oct 2099 07:28:00 GMT", EndRefused, func(t *testing.T, a answer) {
			if !strings.HasPrefix(a.header.Get("Retry-After"), "Wed") {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		}},
		{"redirect", EndRefused, func(t *testing.T, a answer) {
			if a.status != http.StatusTemporaryRedirect || a.header.Get("Location") == "" {
				t.Errorf("got %d to %q", a.status, a.header.Get("Location"))
			}
		}},
		{"reset", EndFailed, func(t *testing.T, a answer) {
			if !errors.Is(a.err, syscall.ECONNRESET) && !errors.Is(a.err, io.EOF) {
				t.Errorf("got %v", a.err)
			}
		}},
		{"die-after=3", EndFailed, func(t *testing.T, a answer) { broken(t, a); marker(t, a, false) }},
		{"die-after=0", EndFailed, func(t *testing.T, a answer) { broken(t, a); marker(t, a, false) }},
		{"truncate", EndFailed, func(t *testing.T, a answer) { clean(t, a); marker(t, a, false) }},
		{"no-done", EndCompleted, func(t *testing.T, a answer) { clean(t, a); marker(t, a, false) }},
		{"no-finish", EndCompleted, func(t *testing.T, a answer) {
			marker(t, a, true)
			if strings.Contains(a.body, `"stop"`) || strings.Contains(a.body, "end_turn") {
				t.Errorf("there is a finish reason: %s", a.body)
			}
		}},
		{"error-event", EndFailed, func(t *testing.T, a answer) {
			clean(t, a)
			marker(t, a, false)
			contains(`"error":{`)(t, a)
		}},
		{"error-first", EndFailed, func(t *testing.T, a answer) {
			if n := len(events(a.body)); n != 1 {
				t.Errorf("%d events, want the error alone: %s", n, a.body)
			}
			contains(`"error":{`)(t, a)
		}},
		{"malformed", EndCompleted, contains(`{"id": "broken` + "\n\n")},
		{"usage=none", EndCompleted, func(t *testing.T, a answer) {
			if strings.Contains(a.body, `"completion_tokens":`) || strings.Contains(a.body, `"output_tokens":40`) {
				t.Errorf("there is usage: %s", a.body)
			}
		}},
		{"usage=twice", EndCompleted, func(t *testing.T, a answer) {
			if n := strings.Count(a.body, `_tokens":40`); n != 2 {
				t.Errorf("the output count comes %d times, want 2", n)
			}
		}},
		{"usage=every", EndCompleted, func(t *testing.T, a answer) {
			if n := strings.Count(a.body, `"usage":{`); n < 10 {
				t.Errorf("usage comes %d times", n)
			}
		}},
		{"usage=huge", EndCompleted, contains(`_tokens":2305843009213693951`)},
		{"usage=negative", EndCompleted, contains(`_tokens":-45`)},
		{"usage=zero", EndCompleted, func(t *testing.T, a answer) {
			if !strings.Contains(a.body, `"total_tokens":0`) && !strings.Contains(a.body, `"output_tokens":0`) {
				t.Errorf("usage is not zero: %s", a.body)
			}
		}},
		{"usage=falling", EndCompleted, contains(`_tokens":20`)},
		{"big-event=100000", EndCompleted, contains(strings.Repeat("lorem ipsum ", 8000))},
		{"byte-by-byte!text=emoji", EndCompleted, func(t *testing.T, a answer) { clean(t, a); marker(t, a, true) }},
		{"text=cjk", EndCompleted, func(t *testing.T, a answer) { marker(t, a, true) }},
		{"crlf", EndCompleted, contains("\r\n\r\n")},
		{"bom", EndCompleted, func(t *testing.T, a answer) {
			if !strings.HasPrefix(a.body, "\ufeff") {
				t.Error("no byte order mark")
			}
		}},
		{"no-space", EndCompleted, contains("data:{")},
		{"comments", EndCompleted, contains(": keep-alive\n\n")},
		{"bad-utf8", EndCompleted, contains("\xff")},
		{"gzip", EndCompleted, func(t *testing.T, a answer) {
			if a.header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("headers %v", a.header)
			}
			z, err := gzip.NewReader(strings.NewReader(a.body))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			marker(t, answer{body: string(b)}, true)
		}},
		{"wrong-type", EndCompleted, func(t *testing.T, a answer) {
			if a.header.Get("Content-Type") != "text/html" {
				t.Errorf("content type %q", a.header.Get("Content-Type"))
			}
		}},
		{"trailing", EndCompleted, contains(`{"trailing":true}`)},
		{"model=other-1", EndCompleted, contains(`"model":"other-1"`)},
		{"tier=priority", EndCompleted, contains(`"service_tier":"priority"`)},
		{"finish=content_filter", EndCompleted, contains(`content_filter`)},
		{"early", EndCompleted, func(t *testing.T, a answer) { clean(t, a); marker(t, a, true) }},
		{"pause=2:20ms!gap=1ms!first=1ms!delay=1ms", EndCompleted, func(t *testing.T, a answer) { clean(t, a); marker(t, a, true) }},
	}
	for _, tt := range tests {
		for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
			t.Run(path[4:8]+" "+tt.fault, func(t *testing.T) {
				s, url := provider(t, Options{Instant: true})
				got := post(t, url+path, chat("sim-small!tokens=40!"+tt.fault, "Hello", `,"max_tokens":1000`+streamed))
				tt.check(t, got)
				e := only(t, s)
				if e.End != tt.end {
					t.Errorf("book says %s, want %s", e.End, tt.end)
				}
				if e.Billed == (tt.end == EndRefused) {
					t.Errorf("billed %t", e.Billed)
				}
				if tt.end == EndCompleted && e.Output != 40 {
					t.Errorf("book has %d tokens, want 40", e.Output)
				}
			})
		}
	}
}

// Faults of an answer in one piece.
func TestFaultsOfABody(t *testing.T) {
	tests := []struct {
		fault string
		check func(a answer) bool
	}{
		{"die-after", func(a answer) bool { return a.err != nil }},
		{"truncate", func(a answer) bool { return a.err == nil && !strings.HasSuffix(a.body, "}") }},
		{"malformed", func(a answer) bool { return a.err == nil && !strings.HasSuffix(a.body, "}") }},
		{"error-event", func(a answer) bool { return a.status == 500 }},
		{"blank", func(a answer) bool { return strings.HasPrefix(a.body, "\n\n") }},
		{"drip", func(a answer) bool { return a.err == nil && strings.HasSuffix(a.body, "}") }},
		{"usage=none", func(a answer) bool { return !strings.Contains(a.body, `"usage":`) }},
		{"gzip", func(a answer) bool { return a.header.Get("Content-Encoding") == "gzip" }},
		{"cached=50", func(a answer) bool { return !strings.Contains(a.body, `"cached_tokens":0`) }},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			_, url := provider(t, Options{Instant: true})
			if got := post(t, url+"/v1/chat/completions", chat("sim-small!tokens=40!"+tt.fault, "Hello", "")); !tt.check(got) {
				t.Errorf("got %d, %v: %.300s", got.status, got.err, got.body)
			}
		})
	}
}

// Faults that end only when the client leaves.
func TestSilence(t *testing.T) {
	for _, fault := range []string{"hang-headers", "hang-first", "stall-after=2", "never-close"} {
		t.Run(fault, func(t *testing.T) {
			s, url := provider(t, Options{Instant: true})
			client := &http.Client{Timeout: 80 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(chat("sim-small!tokens=5!"+fault, "x", streamed)))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("the answer ends")
			}
			want := EndCancelled
			if fault == "never-close" {
				want = EndCompleted
			}
			if e := only(t, s); e.End != want || e.Left == nil {
				t.Errorf("book: %+v", e)
			}
		})
	}
}

func TestEveryDocumentedFaultParses(t *testing.T) {
	for _, f := range []string{
		"ok", "status=503", "429", "429=3", "503=1", "529=2", "retry-after=x", "quota", "redirect", "reset", "hang-headers", "hang-first",
		"delay=1s", "first=1s", "gap=1s", "pause=3:1s", "die-after", "die-after=1", "stall-after", "truncate=2", "error-event", "error-first",
		"malformed", "no-done", "no-finish", "trailing", "never-close", "usage=none", "big-event", "byte-by-byte", "crlf", "bom", "no-space",
		"comments", "bad-utf8", "gzip", "wrong-type", "early", "drip", "blank", "tokens=1", "reasoning=1", "cached=50%", "cache-write=5%",
		"model=x", "tier=x", "finish=x", "text=cjk",
	} {
		if _, err := ParseBehaviour(f); err != nil {
			t.Error(err)
		}
	}
	for _, f := range []string{"nope", "status=1", "die-after=-1", "gap=x", "usage=x", "cached=101", "crlf=1", "pause=3", "text=x", strings.Repeat("crlf!", 40)} {
		if _, err := ParseBehaviour(f); err == nil {
			t.Errorf("%q is accepted", f)
		}
	}
}

func TestScript(t *testing.T) {
	script, err := ParseScript([]byte(`
seed: 7
models:
  sim-small:
    - {fault: status=503, count: 2}
    - {fault: "429=1", after: 1, count: 1}
  "*":
    - {fault: status=500, probability: 0.3}
`))
	if err != nil {
		t.Fatal(err)
	}
	_, url := provider(t, Options{Instant: true, Script: script})
	var got []int
	for range 6 {
		got = append(got, post(t, url+"/v1/chat/completions", chat("sim-small", "x", "")).status)
	}
	want := []int{503, 503, 200, 429, 200, 200}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	failed := 0
	for range 100 {
		if post(t, url+"/v1/chat/completions", chat("sim-large", "x", "")).status == 500 {
			failed++
		}
	}
	if failed < 15 || failed > 45 {
		t.Errorf("%d of 100 failed, want about 30", failed)
	}
	for _, bad := range []string{"models: {a: [{fault: nope}]}", "models: {a: [{fault: ok, probability: 2}]}", "modells: {}", "["} {
		if _, err := ParseScript([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
