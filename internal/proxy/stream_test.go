package proxy

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

func TestStreamPassesByteForByte(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{chunks: 3, usage: usage(9, 3)}}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{stream: true})
		if g.status != 200 || g.err != nil || content(g.body) != " tok tok tok" || !strings.HasSuffix(g.body, "data: [DONE]\n\n") {
			t.Errorf("got %d %v %q", g.status, g.err, g.body)
		}
		if strings.Contains(g.body, "usage") {
			t.Error("usage was not asked for, and is there")
		}
		for k, want := range map[string]string{"Sluice-Backend": "b0", "Sluice-Policy": "t1", "Sluice-Queue-Ms": "0", "X-Request-Id": "up-1", "Content-Type": "text/event-stream; charset=utf-8"} {
			if got := g.header.Get(k); got != want {
				t.Errorf("%s: got %q, want %q", k, got, want)
			}
		}
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		if id := g.header.Get("Sluice-Request-Id"); id != string(rec.Final.Request) || !strings.HasPrefix(id, "req_") {
			t.Errorf("request id %q, record has %q", id, rec.Final.Request)
		}
		want := sluice.Usage{Input: 9, Output: 3, Source: sluice.UsageReported}
		if rec.Usage != want || rec.Cost != 9*1000+3*2000 || rec.Final.UpstreamRequestID != "up-1" {
			t.Errorf("got %+v at %v", rec.Usage, rec.Cost)
		}
	})
}

func TestCS1BackendDiesAfterContent(t *testing.T) {
	for _, end := range []string{"cut", "clean", "error"} {
		inBubble(t, setup{places: []place{
			{handler: talk{chunks: 1, text: "Hello wor", end: end}},
			{handler: talk{chunks: 9}, fallback: true},
		}}, func(t *testing.T, r *rig) {
			g := r.do(ask{stream: true})
			if content(g.body) != "Hello wor" {
				t.Errorf("%s: got %q", end, content(g.body))
			}
			events := strings.Split(strings.TrimSpace(g.body), "\n\n")
			if last := events[len(events)-1]; !strings.Contains(last, `"error"`) || strings.Contains(g.body, "[DONE]") {
				t.Errorf("%s: ends with %q", end, last)
			}
			wantCut(t, g)
			reason := map[string]sluice.Reason{"cut": sluice.UpstreamTruncated, "clean": sluice.UpstreamTruncated, "error": sluice.UpstreamError}[end]
			rec := r.want(sluice.Failed, reason, 200)
			if rec.Final.Attempt != 1 || rec.Usage.Output == 0 || rec.Usage.Input == 0 || rec.Usage.Source != sluice.UsageEstimated {
				t.Errorf("%s: %d attempts, %+v", end, rec.Final.Attempt, rec.Usage)
			}
			if n := r.net.Dials("b1:80"); n != 0 {
				t.Errorf("%s: the fallback was dialled %d times", end, n)
			}
		})
	}
}

func TestCS2FallbackFromASilentBackend(t *testing.T) {
	hang := newSilent()
	inBubble(t, setup{places: []place{
		{handler: hang, timeouts: upstream.Timeouts{Headers: 2 * time.Second}},
		{handler: talk{chunks: 2, usage: usage(9, 2)}, fallback: true},
	}}, func(t *testing.T, r *rig) {
		g := r.do(ask{stream: true})
		if g.status != 200 || content(g.body) != " tok tok" || g.took < 2*time.Second || g.took > 2100*time.Millisecond {
			t.Errorf("got %d %q after %v", g.status, content(g.body), g.took)
		}
		if b := g.header.Get("Sluice-Backend"); b != "b1" {
			t.Errorf("answered by %s", b)
		}
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		entries := r.journal.of(rec.Final.Request)
		if len(entries) != 2 || entries[0].Final || entries[0].Reason != sluice.UpstreamTimeout || entries[0].Usage.Source != sluice.UsageEstimated || !entries[1].Final {
			t.Errorf("entries %+v", entries)
		}
	})
}

func TestErrorBeforeContentFallsBack(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"503": answers(503, `{"error":{"message":"x"}}`), "429": answers(429, `{"error":{"message":"x"}}`),
		"in a 200 stream":         talk{end: "error"},
		"truncated":               talk{end: "cut"},
		"wrong content type":      answers(200, `<html>`),
		"role, then a clean end":  talk{end: "clean"},
		"redirect":                http.RedirectHandler("/x", http.StatusTemporaryRedirect),
		"connection closed early": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{places: []place{{handler: h}, {handler: talk{chunks: 2, usage: usage(9, 2)}, fallback: true}}}, func(t *testing.T, r *rig) {
				g := r.do(ask{stream: true})
				if g.status != 200 || content(g.body) != " tok tok" || strings.Count(g.body, "assistant") != 1 || g.err != nil {
					t.Errorf("got %d %v %q", g.status, g.err, g.body)
				}
				r.want(sluice.Completed, sluice.ReasonNone, 200)
			})
		})
	}
}

func TestCS3TooSlowIsAStall(t *testing.T) {
	inBubble(t, setup{places: []place{{
		handler:  talk{chunks: 100, gap: 1200 * time.Millisecond},
		timeouts: upstream.Timeouts{Idle: 5 * time.Second, Rate: 5, Window: 10 * time.Second},
	}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{stream: true})
		wantCut(t, g)
		if g.took != 10*time.Second {
			t.Errorf("cut after %v", g.took)
		}
		r.want(sluice.Failed, sluice.UpstreamStalled, 200)
	})
}

func TestCS5SilenceBeforeTheFirstToken(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{before: 40 * time.Second, first: 30 * time.Second, chunks: 2, usage: usage(9, 2)}}}}, func(t *testing.T, r *rig) {
		start := time.Now()
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if d := time.Since(start); d != DefaultKeepAliveAfter || resp.StatusCode != 200 {
			t.Errorf("got status %d after %v", resp.StatusCode, d)
		}
		if resp.Header.Get("Sluice-Request-Id") == "" || resp.Header.Get("Sluice-Backend") != "" {
			t.Errorf("committed with headers %v", resp.Header)
		}
		var gaps []time.Duration
		var all bytes.Buffer
		last, buf := time.Now(), make([]byte, 4096)
		for {
			n, err := resp.Body.Read(buf)
			if n > 0 {
				gaps = append(gaps, time.Since(last))
				last = time.Now()
				all.Write(buf[:n])
			}
			if err != nil {
				break
			}
		}
		if longest := slices.Max(gaps); longest > 15*time.Second {
			t.Errorf("a silence of %v, which a proxy of 60 s would still bear", longest)
		}
		body := all.String()
		if strings.Count(body, ": keep-alive\n\n") != 4 || content(body) != " tok tok" || !strings.HasSuffix(body, "[DONE]\n\n") {
			t.Errorf("got %q", body)
		}
		if !strings.Contains(body, `: sluice {"backend":"b0","policy":"t1","queue_ms":0}`+"\n\n") {
			t.Errorf("no comment tells what was decided: %q", body)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
}

func TestRejectionAfterAKeepAlive(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: newSilent(), timeouts: upstream.Timeouts{Headers: 20 * time.Second}}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{stream: true})
		wantCut(t, g)
		if g.status != 200 || !strings.HasPrefix(g.body, ": keep-alive\n\n") || !strings.Contains(g.body, `"error"`) {
			t.Errorf("got %d %q", g.status, g.body)
		}
		r.want(sluice.Failed, sluice.UpstreamTimeout, 200)
	})
}

func TestCS6EvenPace(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{chunks: 20, gap: 100 * time.Millisecond, usage: usage(9, 20)}}}}, func(t *testing.T, r *rig) {
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var gaps []time.Duration
		var last time.Time
		sc := bufio.NewScanner(resp.Body)
		for sc.Scan() {
			if !strings.Contains(sc.Text(), " tok") {
				continue
			}
			if !last.IsZero() {
				gaps = append(gaps, time.Since(last))
			}
			last = time.Now()
		}
		slices.Sort(gaps)
		if len(gaps) != 19 || gaps[0] != 100*time.Millisecond || gaps[18] != 100*time.Millisecond {
			t.Errorf("gaps %v", gaps)
		}
	})
}

func TestCS7AnyChunking(t *testing.T) {
	script := "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"héllo 👩‍👩‍👧 世界\"},\"finish_reason\":null}]}\n\n" +
		"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range len(script) {
			io.WriteString(w, script[i:i+1])
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	})
	inBubble(t, setup{places: []place{{handler: h}}}, func(t *testing.T, r *rig) {
		if g := r.do(ask{stream: true}); g.body != script || g.err != nil {
			t.Errorf("got %q %v", g.body, g.err)
		}
	})
}

func TestCS9EventsAreNotHeldBack(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{chunks: 2, gap: 500 * time.Millisecond, usage: usage(9, 2)}}}}, func(t *testing.T, r *rig) {
		start := time.Now()
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		sc := bufio.NewScanner(resp.Body)
		for sc.Scan() {
			if strings.Contains(sc.Text(), " tok") {
				break
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the first content came after %v", d)
		}
		io.Copy(io.Discard, resp.Body)
	})
}

// C5: a client that does not read holds up its own upstream alone, and is cut.
func TestC5SlowReader(t *testing.T) {
	inBubble(t, setup{buffer: 4 << 10, places: []place{{handler: talk{chunks: 100_000, text: strings.Repeat("x", 200)}}}}, func(t *testing.T, r *rig) {
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		synctest.Wait()
		time.Sleep(DefaultWriteStall)
		rec := r.want(sluice.Cancelled, sluice.ClientStalled, 200)
		if d := rec.Final.Ended.Sub(start); d > DefaultWriteStall || d < DefaultWriteStall-time.Second {
			t.Errorf("cut after %v", d)
		}
		if rec.Usage.Output == 0 || rec.Usage.Source != sluice.UsageEstimated {
			t.Errorf("usage %+v", rec.Usage)
		}
		resp.Body.Close()
	})
}

// A reader that is slow, but reads, is served to the end.
func TestSlowReaderThatReadsIsServed(t *testing.T) {
	inBubble(t, setup{buffer: 4 << 10, places: []place{{
		handler:  talk{chunks: 60, text: strings.Repeat("x", 2000), usage: usage(9, 60)},
		timeouts: upstream.Timeouts{Idle: 2 * time.Second},
	}}}, func(t *testing.T, r *rig) {
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var all bytes.Buffer
		for {
			n, err := io.CopyN(&all, resp.Body, 4<<10)
			if err != nil || n == 0 {
				break
			}
			time.Sleep(10 * time.Second)
		}
		if !strings.HasSuffix(all.String(), "[DONE]\n\n") {
			t.Errorf("the stream was cut: %q", all.String()[max(0, all.Len()-200):])
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
}

// D1: streams that outlive the grace are told, settled and aborted; the others
// end in peace.
func TestD1Shutdown(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{chunks: 200, gap: time.Second}}}}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		var g got
		wg.Go(func() { g = r.do(ask{stream: true}) })
		time.Sleep(5500 * time.Millisecond)
		r.proxy.LameDuck()
		ready, _ := r.client.Get("http://gateway/readyz")
		ready.Body.Close()
		if ready.StatusCode != 503 || !ready.Close {
			t.Errorf("readyz says %d, close %v", ready.StatusCode, ready.Close)
		}
		if live, _ := r.client.Get("http://gateway/livez"); live.StatusCode != 200 {
			t.Errorf("livez says %d", live.StatusCode)
		} else {
			live.Body.Close()
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.proxy.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("shutdown: %v", err)
		}
		wg.Wait()
		if d := time.Since(start); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("took %v", d)
		}
		wantCut(t, g)
		if !strings.Contains(g.body, "shutting_down") {
			t.Errorf("ends with %q", g.body[max(0, len(g.body)-300):])
		}
		rec := r.want(sluice.Failed, sluice.ShuttingDown, 200)
		if rec.Usage.Output == 0 {
			t.Errorf("usage %+v", rec.Usage)
		}
	})
}

// An answer that lacks nothing but its terminal marker is whole; the marker is
// added, and that is counted.
func TestMissingMarkerIsAddedAndCounted(t *testing.T) {
	stop := `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}}`
	script := tells("message_delta", stop, "message_start", `{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"up","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`,
		"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`)
	var unmarked []sluice.BackendID
	inBubble(t, setup{
		places: []place{{dialect: wire.Anthropic, handler: script}},
		hooks:  exchange.Hooks{Unmarked: func(b sluice.BackendID) { unmarked = append(unmarked, b) }},
	}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: "/v1/messages", body: `{"model":"m","max_tokens":9,"stream":true,"messages":[]}`})
		if g.err != nil || !strings.HasSuffix(g.body, stop+"\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n") {
			t.Errorf("got %v %q", g.err, g.body)
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Usage.Source != sluice.UsageReported || rec.Usage.Output != 3 || len(unmarked) != 1 {
			t.Errorf("took %+v, told of %v", rec.Usage, unmarked)
		}
	})
}

// An answer in one piece shows its first token with its last: the deadlines of a
// stream do not cut it, and its hold outlasts it.
func TestWholeAnswerOutlastsFirstToken(t *testing.T) {
	long := talk{before: 20 * time.Minute, chunks: 3, usage: usage(9, 3)}
	inBubble(t, setup{
		places: []place{{handler: long, timeouts: upstream.Timeouts{Headers: time.Second, FirstToken: 10 * time.Second, Idle: time.Second}}},
		hold:   15 * time.Minute, longest: 30 * time.Minute,
	}, func(t *testing.T, r *rig) {
		if g := r.do(ask{}); g.status != 200 || g.took != 20*time.Minute {
			t.Errorf("got %d after %v: %s", g.status, g.took, g.body)
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Final.Late {
			t.Error("its hold had expired")
		}
	})
	inBubble(t, setup{places: []place{{handler: long, timeouts: upstream.Timeouts{Total: 10 * time.Minute}}}}, func(t *testing.T, r *rig) {
		if g := r.do(ask{}); g.status != 504 || g.took != 10*time.Minute {
			t.Errorf("total: got %d after %v", g.status, g.took)
		}
	})
}
