package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/route"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// The faults of a backend by their row of docs/faults.md: what the client sees,
// what the ledger says with soft and with hard spend, and that nothing stays
// behind, in virtual time. Where a test of another name shows a row, the table has
// that name.

// showing runs the exits of a row. Before content, each is tried again with a
// fallback, which must answer as if nothing had happened.
func showing(t *testing.T, exits ...exit) {
	t.Helper()
	for _, e := range exits {
		t.Run(e.row, func(t *testing.T) {
			for _, hard := range []bool{false, true} {
				s := e.setup
				s.policy.HardSpend = hard
				inBubble(t, s, func(t *testing.T, r *rig) { e.check(t, r, hard) })
			}
			if e.status != http.StatusOK {
				fallsBack(t, e.setup, e.ask)
			}
		})
	}
}

func fallsBack(t *testing.T, s setup, a ask) {
	t.Helper()
	s.places = append(slices.Clone(s.places), place{handler: talk{chunks: 2, usage: usage(9, 2)}, fallback: true})
	inBubble(t, s, func(t *testing.T, r *rig) {
		g := r.do(a)
		if g.status != 200 || g.err != nil || g.header.Get("Sluice-Backend") != "b1" || a.stream && (content(g.body) != " tok tok" || strings.Count(g.body, "[DONE]") != 1) {
			t.Errorf("with a fallback: got %d %v from %q: %s", g.status, g.err, g.header.Get("Sluice-Backend"), g.body)
		}
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		if es := r.journal.of(rec.Final.Request); len(es) != 2 || es[0].Final || es[0].Outcome != sluice.Failed || !es[1].Final {
			t.Errorf("with a fallback: entries %+v", es)
		}
	})
}

var streamed = ask{stream: true}

func TestFault_U1_NoConnection(t *testing.T) {
	showing(t,
		exit{row: "refused", setup: setup{places: []place{{nobody: true}}}, outcome: sluice.Failed, reason: sluice.UpstreamConnect, status: 502},
		exit{row: "no route", setup: setup{places: []place{{hole: true, timeouts: upstream.Timeouts{Connect: time.Second}}}}, ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamConnect, status: 502},
	)
}

// limited is a backend that answers 429 with a Retry-After, as it is.
func limited(after string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow down, org-secret","type":"requests","param":null,"code":"rate_limit_exceeded"}}`)
	})
}

// A limit of the provider is told with its time, within bounds, and the backend is
// left alone for as long as it asked, up to five minutes.
func TestFault_U4_Limited(t *testing.T) {
	for _, tt := range []struct {
		name, after string
		told        string        // to the client
		paced       time.Duration // how long the backend gets nothing; 0: as where no time is told
	}{
		{"seconds", "7", "7", 7 * time.Second},
		{"date", "Sat, 01 Jan 2000 00:00:20 GMT", "20", 20 * time.Second}, // a bubble begins at midnight
		{"fraction", "0.5", "1", 500 * time.Millisecond},
		{"zero", "0", "1", 0},
		{"negative", "-5", "1", 0},
		{"no number", "soon", "1", 0},
		{"absurd", "99999999", "60", 5 * time.Minute},
		{"absurd date", "Wed, 21 Oct 2099 07:28:00 GMT", "60", 5 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{places: []place{{handler: limited(tt.after)}}}, func(t *testing.T, r *rig) {
				now := ask{stream: true, header: http.Header{"Sluice-Max-Wait": {"0"}}}
				g := r.do(now)
				if g.status != 503 || g.header.Get("Retry-After") != tt.told || strings.Contains(g.body, "org-secret") || g.took != 0 {
					t.Errorf("got %d, Retry-After %q after %v: %s", g.status, g.header.Get("Retry-After"), g.took, g.body)
				}
				if rec := r.want(sluice.Failed, sluice.UpstreamLimited, 503); rec.Cost != 0 || rec.Usage.Source != sluice.UsageNone {
					t.Errorf("took %+v at %v", rec.Usage, rec.Cost)
				}
				least, most := tt.paced, tt.paced
				if tt.paced == 0 { // it backs off
					least, most = route.FirstBackOff/2, route.FirstBackOff
				}
				time.Sleep(least - time.Millisecond)
				r.do(now)
				r.want(sluice.Rejected, sluice.NoBackend, 503)
				time.Sleep(most - least + time.Millisecond)
				r.do(now)
				r.want(sluice.Failed, sluice.UpstreamLimited, 503)
			})
			fallsBack(t, one(limited(tt.after)), streamed)
		})
	}
}

// A client that may wait for as long as the provider asked does, and so do those that
// come meanwhile; who may not is told when to come back.
func TestFault_U4_WaitsForThePause(t *testing.T) {
	b := newSwitched(limited("7"))
	inBubble(t, setup{places: []place{{handler: b}}}, func(t *testing.T, r *rig) {
		begun, took := time.Now(), make(chan time.Duration, 2)
		for range 2 {
			go func() {
				if g := r.do(ask{}); g.status != 200 {
					t.Errorf("got %d %s", g.status, g.body)
				}
				took <- time.Since(begun)
			}()
			synctest.Wait() // the first is refused, the second finds the backend paused
		}
		for _, wait := range []string{"0", "6s"} {
			g := r.do(ask{header: http.Header{"Sluice-Max-Wait": {wait}}})
			if g.status != 503 || g.header.Get("Retry-After") != "7" || g.took != 0 {
				t.Errorf("may wait %s: got %d, Retry-After %q after %v", wait, g.status, g.header.Get("Retry-After"), g.took)
			}
		}
		b.to(works())
		for range 2 {
			if got := <-took; got != 7*time.Second {
				t.Errorf("answered after %v, want 7s", got)
			}
		}
		if n, _ := b.took(); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
	})
}

func TestFault_U5_LimitedWithoutATime(t *testing.T) {
	impatient := ask{stream: true, header: http.Header{"Sluice-Max-Wait": {"0"}}}
	showing(t, exit{row: "rate", setup: one(limited("")), ask: impatient, outcome: sluice.Failed, reason: sluice.UpstreamLimited, status: 503})

	// Who may wait does, for longer each time, and no backend is asked twice meanwhile.
	b := newSwitched(limited(""))
	inBubble(t, setup{places: []place{{handler: b}}}, func(t *testing.T, r *rig) {
		begun, took := time.Now(), make(chan time.Duration, 1)
		go func() {
			if g := r.do(ask{}); g.status != 200 {
				t.Errorf("got %d %s", g.status, g.body)
			}
			took <- time.Since(begun)
		}()
		time.Sleep(route.FirstBackOff)
		if n, _ := b.took(); n != 2 {
			t.Errorf("%d calls within a second, want 2", n)
		}
		b.to(works())
		if got := <-took; got < 3*route.FirstBackOff/2 || got > 3*route.FirstBackOff {
			t.Errorf("answered after %v, want after two waits", got)
		}
	})
}

func TestFault_U6_ServerErrors(t *testing.T) {
	for _, status := range []int{500, 502, 503} {
		client := 502
		if status == 503 {
			client = 503
		}
		showing(t,
			exit{row: fmt.Sprint(status), setup: one(answers(status, `<html>oops</html>`)), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamError, status: client},
			exit{row: fmt.Sprint(status, " in one piece"), setup: one(answers(status, `{"error":{"message":"oops","type":"server_error"}}`)), outcome: sluice.Failed, reason: sluice.UpstreamError, status: client},
		)
	}
	// Five in a row cool the backend down for ten seconds.
	inBubble(t, one(answers(500, `x`)), func(t *testing.T, r *rig) {
		now := ask{header: http.Header{"Sluice-Max-Wait": {"0"}}}
		for range route.DefaultFailures {
			r.do(now)
			r.want(sluice.Failed, sluice.UpstreamError, 502)
		}
		r.do(now)
		r.want(sluice.Rejected, sluice.NoBackend, 503)
		time.Sleep(10 * time.Second)
		r.do(now)
		r.want(sluice.Failed, sluice.UpstreamError, 502)
	})
}

func TestFault_U7_Overloaded(t *testing.T) {
	body := `{"error":{"message":"Overloaded","type":"overloaded_error"}}`
	showing(t, exit{row: "529", setup: one(answers(529, body)), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamLimited, status: 503})
	// It is not tried again at once, there or by this request.
	inBubble(t, one(answers(529, body)), func(t *testing.T, r *rig) {
		r.do(ask{})
		if n := r.last().Final.Attempt; n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}

// A mistake of the client's own comes back as the backend wrote it; nobody else
// is asked.
func TestFault_U8_Refused(t *testing.T) {
	for status, code := range map[int]string{400: "invalid_value", 404: "model_not_found", 413: "context_length_exceeded", 422: "unprocessable"} {
		body := fmt.Sprintf(`{"error":{"message":"told to the client","type":"invalid_request_error","param":"x","code":%q}}`, code)
		inBubble(t, setup{places: []place{{handler: answers(status, body)}, {handler: talk{chunks: 1}, fallback: true}}}, func(t *testing.T, r *rig) {
			g := r.do(streamed)
			if g.status != status || g.body != body || r.net.Dials("b1:80") != 0 {
				t.Errorf("got %d %s, the fallback was dialled %d times", g.status, g.body, r.net.Dials("b1:80"))
			}
			if rec := r.want(sluice.Failed, sluice.UpstreamRefused, status); rec.Cost != 0 {
				t.Errorf("%d costs %v", status, rec.Cost)
			}
		})
	}
	for _, status := range []int{401, 403} { // the operator's credential: TestParkedBackend has the rest
		inBubble(t, one(answers(status, `{"error":{"message":"key sk-live of org-7","type":"authentication_error"}}`)), func(t *testing.T, r *rig) {
			if g := r.do(streamed); g.status != 503 || strings.Contains(g.body, "sk-live") {
				t.Errorf("%d: got %d %s", status, g.status, g.body)
			}
			r.want(sluice.Failed, sluice.UpstreamRefused, 503)
		})
	}
}

func TestFault_U9_NoHeaders(t *testing.T) {
	up := newSilent()
	showing(t,
		exit{row: "streamed", setup: timed(up, upstream.Timeouts{Headers: time.Second}), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated},
		exit{row: "in one piece", setup: timed(up, upstream.Timeouts{Total: time.Second}), outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated, output: true},
	)
	inBubble(t, timed(newSilent(), upstream.Timeouts{Headers: time.Second}), func(t *testing.T, r *rig) {
		if g := r.do(streamed); g.took != time.Second {
			t.Errorf("told after %v", g.took)
		}
	})
}

func TestFault_U10_NoFirstToken(t *testing.T) {
	showing(t,
		exit{row: "nothing", setup: timed(talk{first: time.Hour}, upstream.Timeouts{FirstToken: time.Second}), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated},
		exit{row: "a role, and nothing", setup: timed(talk{end: "hang"}, upstream.Timeouts{FirstToken: time.Second}), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated},
	)
}

// While a stream stalls its client gets comments; at the deadline it is told, and
// what came stays what it was.
func TestFault_U11_Stall(t *testing.T) {
	showing(t, exit{row: "silence", setup: timed(talk{chunks: 3, end: "hang"}, upstream.Timeouts{Idle: time.Second}), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamStalled, status: 200, source: estimated, output: true})
	s := timed(talk{chunks: 3, end: "hang"}, upstream.Timeouts{Idle: 40 * time.Second})
	s.places = append(s.places, place{handler: talk{chunks: 9}, fallback: true})
	inBubble(t, s, func(t *testing.T, r *rig) {
		g := r.do(streamed)
		wantCut(t, g)
		if content(g.body) != " tok tok tok" || strings.Count(g.body, ": keep-alive\n\n") != 2 || !strings.Contains(g.body, "upstream_stalled") || g.took != 40*time.Second || r.net.Dials("b1:80") != 0 {
			t.Errorf("after %v: %q", g.took, g.body)
		}
	})
}

// raw is a backend that writes an answer below HTTP and closes.
func raw(answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, answer)
		_ = conn.Close()
	})
}

const rawHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// delta is one event of a stream.
func delta(fields, finish string) string {
	return fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}`+"\n\n", fields, finish)
}

func TestFault_U12_Truncated(t *testing.T) {
	e := exit{ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTruncated, status: 200, source: estimated, output: true}
	with := func(row string, h http.Handler) exit {
		e := e
		e.row, e.setup = row, one(h)
		return e
	}
	begun := chunk(delta(`"content":"Hello wor"`, "null"))
	showing(t,
		with("clean end", talk{chunks: 3, end: "clean"}),
		with("reset", talk{chunks: 3, end: "cut"}),
		with("half an event", raw(rawHead+begun+chunk(`data: {"id":"c","choices":[{"in`)+"0\r\n\r\n")),
		with("half a chunk", raw(rawHead+begun+"100\r\ndata: {")),
		with("a chunk that is none", raw(rawHead+begun+"zz\r\n")),
		with("finish reason of one choice of two", raw(rawHead+begun+chunk(strings.Replace(delta(`"content":"x"`, "null"), `"index":0`, `"index":1`, 1)+delta("", `"stop"`))+"0\r\n\r\n")),
	)
	showing(t,
		exit{row: "before content", setup: one(raw(rawHead + "0\r\n\r\n")), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTruncated, status: 502, source: estimated},
		exit{row: "shorter than declared", setup: one(raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")), outcome: sluice.Failed, reason: sluice.UpstreamTruncated, status: 502, source: estimated, output: true},
	)
}

// An answer that has its finish reason is whole without [DONE], which is added.
func TestFault_U13_NoTerminalMarker(t *testing.T) {
	script := delta(`"role":"assistant","content":"Hello"`, "null") + delta("", `"stop"`)
	for name, told := range map[string]string{"no usage": "", "usage": `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[],"usage":` + usage(9, 1) + "}\n\n"} {
		inBubble(t, one(raw(rawHead+chunk(script+told)+"0\r\n\r\n")), func(t *testing.T, r *rig) {
			if g := r.do(streamed); g.err != nil || g.body != script+"data: [DONE]\n\n" {
				t.Errorf("%s: got %v %q", name, g.err, g.body)
			}
			want := map[bool]sluice.UsageSource{true: estimated, false: reported}[told == ""]
			if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Usage.Source != want || rec.Cost == 0 {
				t.Errorf("%s: took %+v", name, rec.Usage)
			}
		})
	}
}

func TestFault_U14_NoFinishReason(t *testing.T) {
	script := delta(`"role":"assistant","content":"Hello"`, "null") + "data: [DONE]\n\n"
	inBubble(t, one(raw(rawHead+chunk(script)+"0\r\n\r\n")), func(t *testing.T, r *rig) {
		if g := r.do(streamed); g.err != nil || g.body != script {
			t.Errorf("got %v %q", g.err, g.body)
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Usage.Source != estimated || rec.Usage.Output == 0 {
			t.Errorf("took %+v", rec.Usage)
		}
	})
}

func TestFault_U15_ErrorInA200BeforeContent(t *testing.T) {
	showing(t,
		exit{row: "after a role", setup: one(talk{end: "error"}), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502, source: estimated},
		exit{row: "alone", setup: one(raw(rawHead + chunk(`data: {"error":{"message":"boom","type":"server_error","code":null,"param":null}}`+"\n\n") + "0\r\n\r\n")), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502, source: estimated},
		exit{row: "in one piece", setup: one(answers(200, `{"error":{"message":"boom","type":"server_error","code":null,"param":null}}`)), outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502, source: estimated},
	)
}

func TestFault_U16_ErrorAfterContent(t *testing.T) {
	showing(t, exit{row: "error", setup: one(talk{chunks: 3, end: "error"}), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamError, status: 200, source: estimated, output: true})
}

// What is no JSON never reaches a client.
func TestFault_U17_Malformed(t *testing.T) {
	bad := "data: {\"id\":\"c\",\"choices\":[{]}\n\n"
	showing(t,
		exit{row: "before content", setup: one(raw(rawHead + chunk(bad) + "0\r\n\r\n")), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamMalformed, status: 502, source: estimated},
		exit{row: "after content", setup: one(raw(rawHead + chunk(delta(`"content":"Hello"`, "null")+bad) + "0\r\n\r\n")), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamMalformed, status: 200, source: estimated, output: true},
		exit{row: "in one piece", setup: one(answers(200, `{"id":`)), outcome: sluice.Failed, reason: sluice.UpstreamMalformed, status: 502, source: estimated, output: true},
	)
	inBubble(t, one(raw(rawHead+chunk(delta(`"content":"Hello"`, "null")+bad)+"0\r\n\r\n")), func(t *testing.T, r *rig) {
		if g := r.do(streamed); strings.Contains(g.body, "[{]") {
			t.Errorf("the client got %q", g.body)
		}
	})
}

// However its lines end and are cut, a stream means the same, and its bytes are
// the backend's.
func TestFault_U18_Framing(t *testing.T) {
	plain := delta(`"role":"assistant","content":""`, "null") + delta(`"content":"héllo 👩‍👩‍👧 世界"`, "null") + delta("", `"stop"`) + "data: [DONE]\n\n"
	for name, script := range map[string]string{
		"LF": plain, "CRLF": strings.ReplaceAll(plain, "\n", "\r\n"), "CR": strings.ReplaceAll(plain, "\n", "\r"), "byte order mark": "\ufeff" + plain,
		"no space": strings.ReplaceAll(plain, "data: ", "data:"), "fields": strings.ReplaceAll(plain, "data: ", "id: 1\x00\nretry: 5\nnone\ndata: "),
		"lines": strings.ReplaceAll(plain, `,"choices"`, ",\ndata: \"choices\""), "comments": strings.ReplaceAll(plain, "data: ", ": note\ndata: "),
	} {
		for _, piece := range []int{1, 3, 1 << 20} {
			inBubble(t, one(inPieces(script, piece)), func(t *testing.T, r *rig) {
				g := r.do(streamed)
				if g.err != nil || g.body != script {
					t.Errorf("%s in pieces of %d: %v %q", name, piece, g.err, g.body)
				}
				if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Usage.Output < 5 {
					t.Errorf("%s in pieces of %d: counted %+v", name, piece, rec.Usage)
				}
			})
		}
	}
}

func inPieces(script string, n int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for part := range slices.Chunk([]byte(script), n) {
			_, _ = w.Write(part)
			w.(http.Flusher).Flush()
		}
	})
}

func TestFault_U19_InvalidUTF8(t *testing.T) {
	script := delta(`"content":"a`+"\xe7\xbd"+`b"`, "null") + delta("", `"stop"`) + "data: [DONE]\n\n"
	inBubble(t, one(inPieces(script, 1<<20)), func(t *testing.T, r *rig) {
		g := r.do(streamed)
		if g.err != nil || !utf8.ValidString(g.body) || content(g.body) != "a\ufffdb" {
			t.Errorf("got %v %q", g.err, g.body)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
}

func TestFault_U20_LargeEvent(t *testing.T) {
	large := setup{event: 4 << 10, places: []place{{handler: talk{chunks: 1, text: strings.Repeat("x", 8<<10)}}}}
	showing(t, exit{row: "after content", setup: setup{event: 4 << 10, places: []place{{handler: raw(rawHead + chunk(delta(`"content":"Hello"`, "null")+delta(`"content":"`+strings.Repeat("x", 8<<10)+`"`, "null")) + "0\r\n\r\n")}}}, ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTooLarge, status: 200, source: estimated, output: true})
	showing(t, exit{row: "before content", setup: large, ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTooLarge, status: 502, source: estimated})
}

func TestFault_U21_Compressed(t *testing.T) {
	encoded := func(kind string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", kind)
			_, _ = w.Write(make([]byte, 1<<20))
		})
	}
	for _, kind := range []string{"gzip", "br", "zstd"} {
		showing(t,
			exit{row: kind, setup: one(encoded(kind)), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamMalformed, status: 502, source: estimated},
			exit{row: kind + " in one piece", setup: one(encoded(kind)), outcome: sluice.Failed, reason: sluice.UpstreamMalformed, status: 502, source: estimated, output: true},
		)
	}
}

func TestFault_U22_NoUsage(t *testing.T) {
	showing(t,
		exit{row: "streamed", setup: one(talk{chunks: 3}), ask: streamed, status: 200, source: estimated, output: true},
		exit{row: "in one piece", setup: one(talk{chunks: 3}), status: 200, source: estimated, output: true},
	)
}

// told runs one request against a scripted provider and compares what was charged
// with the provider's book.
func told(t *testing.T, fault string, check func(t *testing.T, rec Record, total fakellm.Total)) {
	t.Helper()
	for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %s stream=%v", fault, d, stream), func(t *testing.T) {
				var p *fakellm.Server
				inBubble(t, withProvider(setup{places: []place{{dialect: d}}}, &p), func(t *testing.T, r *rig) {
					defer p.Close()
					a := chat(stream, "[["+fault+"]] say something")
					if d == wire.Anthropic {
						a = claudeChat(stream, "[["+fault+"]] say something")
					}
					if g := r.do(a); g.status != 200 || g.err != nil {
						t.Errorf("got %d %v", g.status, g.err)
					}
					time.Sleep(time.Minute)
					check(t, r.want(sluice.Completed, sluice.ReasonNone, 200), p.Account(fakellm.Filter{}).Total)
				})
			})
		}
	}
}

func TestFault_U23_UsageTwice(t *testing.T) {
	for _, fault := range []string{"usage=twice", "usage=every"} {
		told(t, fault, func(t *testing.T, rec Record, total fakellm.Total) {
			if u := rec.Usage; u.Source != reported || u.InputTotal() != total.Input || u.OutputTotal() != total.Output {
				t.Errorf("charged %+v, the provider billed %d and %d", u, total.Input, total.Output)
			}
		})
	}
}

func TestFault_U24_ImpossibleUsage(t *testing.T) {
	for _, fault := range []string{"usage=huge", "usage=negative", "usage=zero", "usage=falling"} {
		told(t, fault, func(t *testing.T, rec Record, total fakellm.Total) {
			off := func(got, want sluice.Tokens) bool { return got < want*8/10 || got > want*12/10+3 }
			if u := rec.Usage; off(u.InputTotal(), total.Input) || off(u.OutputTotal(), total.Output) {
				t.Errorf("charged %+v, the provider billed %d and %d", u, total.Input, total.Output)
			}
			if fault != "usage=falling" && (!rec.Usage.Anomalous || rec.Usage.Source == reported) {
				t.Errorf("%s is %v, anomalous %v", fault, rec.Usage.Source, rec.Usage.Anomalous)
			}
		})
	}
}

func TestFault_U25_CacheInsideAndBeside(t *testing.T) {
	told(t, "cached=50%!cache-write=20%!reasoning=10!tokens=40", func(t *testing.T, rec Record, total fakellm.Total) {
		u := rec.Usage
		if u.Source != reported || u.Anomalous || u.InputTotal() != total.Input || u.CacheRead != total.Cached || u.CacheWrite+u.CacheWrite1h != total.Written || u.OutputTotal() != total.Output || u.Reasoning != total.Reasoning {
			t.Errorf("charged %+v, the provider billed %+v", u, total)
		}
		if u.CacheRead == 0 || u.Input != total.Input-total.Cached-total.Written {
			t.Errorf("classes are not disjoint: %+v of %+v", u, total)
		}
	})
}

func TestFault_U26_OtherModel(t *testing.T) {
	told(t, "model=other-0613", func(t *testing.T, rec Record, _ fakellm.Total) {
		if f := rec.Final; f.ServedModel != "other-0613" || f.UpstreamModel != "up" || f.PriceVersion != "v1" || rec.Usage.Source != reported {
			t.Errorf("served %q, asked for %q, priced by %q", f.ServedModel, f.UpstreamModel, f.PriceVersion)
		}
	})
}

// Arguments that were cut are no call: the client is told, whatever came before.
func TestFault_U27_CutArguments(t *testing.T) {
	begun := delta(`"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"pay","arguments":""}}]`, "null") +
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"to\":\"bob\",\"amo"}}]`, "null")
	e := exit{row: "clean end", setup: one(raw(rawHead + chunk(begun) + "0\r\n\r\n")), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamTruncated, status: 200, source: estimated, output: true}
	showing(t, e)
	inBubble(t, e.setup, func(t *testing.T, r *rig) {
		g := r.do(streamed)
		wantCut(t, g)
		if !strings.HasPrefix(g.body, begun) || !strings.Contains(g.body, "upstream_truncated") || strings.Contains(g.body, "stop") || strings.Contains(g.body, "[DONE]") {
			t.Errorf("got %q", g.body)
		}
	})
}

func TestFault_U28_Redirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		showing(t, exit{row: fmt.Sprint(status), setup: one(http.RedirectHandler("http://b9/", status)), ask: streamed, outcome: sluice.Failed, reason: sluice.UpstreamRedirect, status: 502})
	}
}

// The end is the terminal marker: what follows is not passed on, and is not waited
// for.
func TestFault_U29_DataAfterTheEnd(t *testing.T) {
	whole := delta(`"content":"Hello"`, "null") + delta("", `"stop"`) + "data: [DONE]\n\n"
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, whole+delta(`"content":"more"`, "null"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	inBubble(t, one(h), func(t *testing.T, r *rig) {
		g := r.do(streamed)
		if g.err != nil || g.body != whole || g.took > time.Second {
			t.Errorf("got %v %q after %v", g.err, g.body, g.took)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
}

func TestFault_U30_LargeOrSlowBody(t *testing.T) {
	large := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		for range upstream.DefaultMaxAnswer>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	inBubble(t, setup{places: []place{{handler: large}, {handler: talk{chunks: 1}, fallback: true}}}, func(t *testing.T, r *rig) {
		r.do(ask{})
		if rec := r.want(sluice.Failed, sluice.UpstreamTooLarge, 502); rec.Usage.Source != estimated || rec.Usage.Output == 0 || r.net.Dials("b1:80") != 0 {
			t.Errorf("took %+v", rec.Usage)
		}
	})
	drip := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}
	})
	showing(t, exit{row: "drip", setup: timed(drip, upstream.Timeouts{Total: 30 * time.Second}), outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated, output: true})
}

// C2: within 100 ms of the client's leaving the backend sees it, before any byte of
// an answer.
func TestFault_C2_LeavesBeforeTheFirstByte(t *testing.T) {
	for name, h := range map[string]func(*silent) http.Handler{
		"no headers": func(s *silent) http.Handler { return s },
		"no first token": func(s *silent) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				s.ServeHTTP(w, r)
			})
		},
	} {
		up := newSilent()
		inBubble(t, one(h(up)), func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			left := time.Now().Add(time.Second)
			r.do(ask{stream: true, ctx: ctx})
			if d := (<-up.gone).Sub(left); d > 100*time.Millisecond {
				t.Errorf("%s: the backend saw it after %v", name, d)
			}
			if rec := r.want(sluice.Cancelled, sluice.ClientGone, 499); rec.Usage.Source != estimated || rec.Cost == 0 {
				t.Errorf("%s: took %+v", name, rec.Usage)
			}
		})
	}
}

// C3: a client that leaves in mid-stream is charged what it was sent, its backend
// sees it within 100 ms, and nothing of it stays.
func TestFault_C3_LeavesInMidStream(t *testing.T) {
	gone := make(chan time.Time, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			<-r.Context().Done()
			gone <- time.Now()
		}()
		talk{chunks: 100, gap: 50 * time.Millisecond}.ServeHTTP(w, r)
	})
	inBubble(t, one(h), func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 975*time.Millisecond)
		defer cancel()
		left := time.Now().Add(975 * time.Millisecond)
		r.do(ask{stream: true, ctx: ctx})
		if d := (<-gone).Sub(left); d > 100*time.Millisecond {
			t.Errorf("the backend saw it after %v", d)
		}
		if rec := r.want(sluice.Cancelled, sluice.ClientGone, 499); rec.Usage.Output < 20 || rec.Usage.Output > 30 || rec.Usage.Input == 0 {
			t.Errorf("took %+v", rec.Usage)
		}
	})
}

// C5: readers that do not read hold what the kernel and one event hold of theirs,
// disturb nobody, and are cut.
func TestFault_C5_ManySlowReaders(t *testing.T) {
	inBubble(t, setup{buffer: 4 << 10, places: []place{{handler: talk{chunks: 400, text: strings.Repeat("x", 200), gap: 10 * time.Millisecond, usage: usage(9, 400)}}}}, func(t *testing.T, r *rig) {
		var slow []*http.Response
		for range route.DefaultConcurrency - 1 {
			resp, err := r.client.Do(r.request(streamed))
			if err != nil {
				t.Fatal(err)
			}
			slow = append(slow, resp)
		}
		var wg sync.WaitGroup
		var g got
		wg.Go(func() { g = r.do(streamed) })
		wg.Wait()
		if g.err != nil || g.took > 5*time.Second {
			t.Errorf("one that reads got %v after %v", g.err, g.took)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
		time.Sleep(DefaultWriteStall + 5*time.Second)
		synctest.Wait()
		if v := r.gate.Dump(1); v.Open != 0 {
			t.Errorf("%d are still open", v.Open)
		}
		r.want(sluice.Cancelled, sluice.ClientStalled, 200)
		for _, resp := range slow {
			resp.Body.Close()
		}
	})
}

// C6: a head that comes too slowly is cut, one whose body does is told; no place
// was taken.
func TestFault_C6_SlowHead(t *testing.T) {
	inBubble(t, one(talk{}), func(t *testing.T, r *rig) {
		conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		go func() {
			for _, c := range []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nX-Long: xxxxxxxxxxxxxxxxxxxxxx") {
				if _, err := conn.Write([]byte{c}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		_, _ = io.ReadAll(conn)
		if d := time.Since(began); d != readHeaderTimeout {
			t.Errorf("cut after %v", d)
		}
		if v := r.gate.Dump(1); v.Open != 0 || r.net.Dials("b0:80") != 0 {
			t.Error("it reached the gate")
		}
	})
}

// C10: what costs more to read than its bytes is refused within the cost of them.
func TestFault_C10_HostileBodies(t *testing.T) {
	inBubble(t, one(talk{}), func(t *testing.T, r *rig) {
		for name, body := range map[string]string{
			"depth":               `{"model":"m","messages":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
			"depth of objects":    `{"model":"m","messages":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + `}`,
			"key twice":           `{"model":"m","model":"other","messages":[]}`,
			"escaped key twice":   `{"model":"m","mod\u0065l":"other","messages":[]}`,
			"key in another case": `{"model":"m","MODEL":"other","messages":[]}`,
			"number out of range": `{"model":"m","max_tokens":1e400,"messages":[]}`,
			"huge number":         `{"model":"m","max_tokens":` + strings.Repeat("9", 100_000) + `,"messages":[]}`,
			"lone surrogate":      `{"model":"\ud800","messages":[]}`,
			"invalid UTF-8":       "{\"model\":\"m\xff\",\"messages\":[]}",
			"trailing data":       `{"model":"m","messages":[]} {}`,
			"NUL":                 "{\"model\":\"m\x00\",\"messages\":[]}",
			"n of millions":       `{"model":"m","n":1000000000,"messages":[]}`,
		} {
			if g := r.do(ask{body: body}); g.status != 400 || g.header.Get("Sluice-Reason") != sluice.InvalidRequest.String() {
				t.Errorf("%s: got %d %q %.200s", name, g.status, g.header.Get("Sluice-Reason"), g.body)
			}
		}
		if n := r.net.Dials("b0:80"); n != 0 {
			t.Errorf("a backend was dialled %d times", n)
		}
	})
}
