package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// sent is what a backend was sent.
type sent struct {
	path   string
	header http.Header
	body   string
}

// witness is a backend that notes what it is sent and leaves the answer to another.
type witness struct {
	http.Handler
	all []sent
}

func (h *witness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	h.all = append(h.all, sent{r.URL.Path, r.Header.Clone(), string(b)})
	r.Body = io.NopCloser(strings.NewReader(string(b)))
	h.Handler.ServeHTTP(w, r)
}

const (
	message    = `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":2}}`
	aMessage   = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"x"}]`
	aChat      = `{"model":"m","messages":[{"role":"user","content":"x"}]`
	messagesAt = "/v1/messages"
)

// A client of one dialect is served by a backend of the other: path, credentials,
// version and body are the backend's, the answer and its id the client's.
func TestTranslated(t *testing.T) {
	t.Run("chat to messages", func(t *testing.T) {
		up := &witness{Handler: answers(200, message)}
		inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: up}}}, func(t *testing.T, r *rig) {
			g := r.do(ask{body: aChat + `,"temperature":0.5}`, header: http.Header{"X-Title": {"app"}}})
			if g.status != 200 || !strings.Contains(g.body, `"content":"hi"`) || !strings.Contains(g.body, `"prompt_tokens":9`) || !strings.Contains(g.body, `"object":"chat.completion"`) {
				t.Errorf("got %d %s", g.status, g.body)
			}
			s := up.all[0]
			if want := `{"model":"up","max_tokens":4096,"messages":[{"role":"user","content":"x"}],"temperature":0.5}`; s.path != "/v1/messages" || s.body != want {
				t.Errorf("the backend was sent %s %s, want %s", s.path, s.body, want)
			}
			if s.header.Get("X-Api-Key") != upstreamSecret || s.header.Get("Anthropic-Version") == "" || s.header.Get("Authorization") != "" || s.header.Get("X-Title") != "app" {
				t.Errorf("the backend was sent %v", s.header)
			}
			rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
			if rec.Final.Dialect != "openai" || rec.Usage.Input != 9 || rec.Usage.Output != 2 || rec.Usage.Source != sluice.UsageReported || !strings.Contains(string(rec.Final.Detail), `"translated":"anthropic"`) {
				t.Errorf("recorded %+v %s", rec.Final, rec.Final.Detail)
			}
		})
	})
	t.Run("messages to chat", func(t *testing.T) {
		up := &witness{Handler: talk{chunks: 2, usage: usage(9, 2)}}
		inBubble(t, setup{places: []place{{handler: up}}}, func(t *testing.T, r *rig) {
			g := r.do(ask{path: messagesAt, body: aMessage + `}`, header: http.Header{"Anthropic-Version": {"2026-10-21"}}})
			if g.status != 200 || !strings.Contains(g.body, `"text":" tok tok"`) || !strings.Contains(g.body, `"input_tokens":9`) || g.header.Get("Request-Id") != "up-1" || g.header.Get("X-Request-Id") != "" {
				t.Errorf("got %d %v %s", g.status, g.header, g.body)
			}
			s := up.all[0]
			if want := `{"model":"up","messages":[{"role":"user","content":"x"}],"max_completion_tokens":50}`; s.path != "/v1/chat/completions" || s.body != want {
				t.Errorf("the backend was sent %s %s, want %s", s.path, s.body, want)
			}
			if s.header.Get("Authorization") != "Bearer "+upstreamSecret || s.header.Get("Anthropic-Version") != "" || s.header.Get("X-Api-Key") != "" {
				t.Errorf("the backend was sent %v", s.header)
			}
			r.want(sluice.Completed, sluice.ReasonNone, 200)
		})
	})
}

// Streams begin with the first content, come event by event and end with the
// client's marker; usage is asked for upstream and told as the client's dialect has it.
func TestTranslatedStream(t *testing.T) {
	up := &witness{Handler: talk{chunks: 3, gap: time.Second, usage: usage(9, 3)}}
	inBubble(t, setup{places: []place{{handler: up, engine: "vllm"}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: messagesAt, body: aMessage + `,"stream":true}`})
		if n := strings.Count(g.body, "text_delta"); g.status != 200 || n != 3 || g.err != nil || !strings.HasSuffix(g.body, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n") {
			t.Errorf("got %d %s %v", g.status, g.body, g.err)
		}
		if !strings.Contains(g.body, `"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3}`) {
			t.Errorf("usage is not told: %s", g.body)
		}
		if !strings.Contains(up.all[0].body, `"stream_options":{"include_usage":true,"continuous_usage_stats":true}`) {
			t.Errorf("usage is not asked for: %s", up.all[0].body)
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Usage.Output != 3 || rec.Final.FirstToken >= time.Second {
			t.Errorf("recorded %+v", rec.Final)
		}
	})
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: claude{start: `{"input_tokens":9,"output_tokens":1}`, texts: 3, delta: `{"output_tokens":3}`}}}}, func(t *testing.T, r *rig) {
		for _, options := range []string{"", `,"stream_options":{"include_usage":true}`} {
			g := r.do(ask{body: aChat + `,"stream":true` + options + `}`})
			if content(g.body) != " tok tok tok" || !strings.HasSuffix(g.body, "data: [DONE]\n\n") || strings.Contains(g.body, "event:") {
				t.Errorf("got %d %s", g.status, g.body)
			}
			if strings.Contains(g.body, `"usage"`) != (options != "") {
				t.Errorf("usage is told to a client that did not ask, or not to one that did: %s", g.body)
			}
			r.want(sluice.Completed, sluice.ReasonNone, 200)
		}
	})
}

// What may not be left out refuses the request in the client's dialect, and no backend
// is asked; what may is named where the policy is warn.
func TestTranslationPolicy(t *testing.T) {
	up := &tally{Handler: talk{chunks: 1, usage: usage(9, 1)}}
	for _, tt := range []struct {
		warn                 bool
		body                 string
		status               int
		param, says, dropped string
	}{
		{false, aMessage + `,"top_k":5}`, 400, "top_k", "set to warn", ""},
		{true, aMessage + `,"top_k":5}`, 200, "", "", "top_k"},
		{true, aMessage + `,"top_k":5,"inference_geo":"us"}`, 400, "inference_geo", "leave it out", ""},
		{false, aMessage + `}`, 200, "", "", ""},
	} {
		inBubble(t, setup{policy: sluice.Policy{WarnDropped: tt.warn}, places: []place{{handler: up}}}, func(t *testing.T, r *rig) {
			before := up.n.Load()
			g := r.do(ask{path: messagesAt, body: tt.body})
			if g.status != tt.status || g.header.Get("Sluice-Dropped") != tt.dropped {
				t.Errorf("%s: got %d %q %s", tt.body, g.status, g.header.Get("Sluice-Dropped"), g.body)
			}
			if tt.status == 200 {
				r.want(sluice.Completed, sluice.ReasonNone, 200)
				return
			}
			kind, _, msg := errorOf(t, g.body)
			if kind != "invalid_request_error" || !strings.HasPrefix(msg, tt.param+" ") || !strings.Contains(msg, tt.says) {
				t.Errorf("%s: refused with %s", tt.body, g.body)
			}
			r.want(sluice.Rejected, sluice.Untranslatable, 400)
			if up.n.Load() != before {
				t.Error("the backend was asked")
			}
		})
	}
}

// A request goes to a backend of its own dialect where one has room, and on to one of
// another when that fails: one answer, the client's bytes first, then their
// translation. What does not translate stays in its dialect, and explain says why.
func TestDialectsOfAModel(t *testing.T) {
	own, other := &witness{Handler: talk{chunks: 1, usage: usage(9, 1)}}, &witness{Handler: answers(200, message)}
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: other}, {handler: own}}}, func(t *testing.T, r *rig) {
		body := `{ "model":"m",  "messages":[{"role":"user","content":"x"}],"x_unknown":1}`
		for range 4 {
			if g := r.do(ask{body: body}); g.status != 200 || g.header.Get("Sluice-Backend") != "b1" {
				t.Errorf("got %d from %s", g.status, g.header.Get("Sluice-Backend"))
			}
		}
		if len(other.all) > 0 || own.all[0].body != strings.Replace(body, `"m"`, `"up"`, 1) {
			t.Errorf("its own dialect was sent %s", own.all[0].body)
		}
		var detail struct {
			Candidates []struct{ Backend, Left string }
		}
		if err := json.Unmarshal(r.last().Final.Detail, &detail); err != nil || detail.Candidates[0].Left != "other" {
			t.Errorf("%v, explained as %+v", err, detail)
		}
	})
	own.Handler = answers(500, `{}`)
	own.all = nil
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: other, fallback: true}, {handler: own}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{body: aChat + `}`})
		if g.status != 200 || !strings.Contains(g.body, `"content":"hi"`) || g.header.Get("Sluice-Backend") != "b0" || len(own.all) != 1 || len(other.all) != 1 {
			t.Errorf("got %d %s from %s, %d and %d calls", g.status, g.body, g.header.Get("Sluice-Backend"), len(own.all), len(other.all))
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Final.Attempt != 2 {
			t.Errorf("attempt %d", rec.Final.Attempt)
		}
		if g := r.do(ask{body: aChat + `,"seed":1}`}); g.status == 200 {
			t.Error("a seed went to a backend that cannot take it")
		}
		if d := string(r.last().Final.Detail); !strings.Contains(d, `"untranslated":"anthropic: seed"`) {
			t.Errorf("explained as %s", d)
		}
	})
}

// Where the backends of its own dialect have no room a request is put into another and
// goes there at once; one that cannot be put waits.
func TestTranslatedForWantOfRoom(t *testing.T) {
	own, other := &witness{Handler: talk{chunks: 2, gap: 20 * time.Second, usage: usage(9, 2)}}, &witness{Handler: answers(200, message)}
	inBubble(t, setup{places: []place{{handler: own, slots: 1}, {dialect: wire.Anthropic, handler: other}}}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		wg.Go(func() { r.do(ask{stream: true}) })
		time.Sleep(time.Second)
		if g := r.do(ask{body: aChat + `}`}); g.status != 200 || g.header.Get("Sluice-Backend") != "b1" || g.took > time.Second {
			t.Errorf("got %d from %s after %v", g.status, g.header.Get("Sluice-Backend"), g.took)
		}
		g := r.do(ask{body: aChat + `,"seed":1}`})
		if g.status != 200 || g.header.Get("Sluice-Backend") != "b0" || g.took < 10*time.Second {
			t.Errorf("got %d from %s after %v", g.status, g.header.Get("Sluice-Backend"), g.took)
		}
		var detail struct {
			Candidates []struct{ Backend, Left, Field string }
		}
		if err := json.Unmarshal(r.last().Final.Detail, &detail); err != nil || detail.Candidates[1].Left != "translation" || detail.Candidates[1].Field != "seed" {
			t.Errorf("%v, explained as %+v", err, detail)
		}
		wg.Wait()
	})
}

// Errors come in the client's dialect: a refusal of the client's own mistake with its
// message, one of the operator's account without, one in mid-stream as an event before
// the connection is aborted.
func TestTranslatedErrors(t *testing.T) {
	for _, tt := range []struct {
		name       string
		status     int
		body       string
		want       int
		kind, says string
		outcome    sluice.Outcome
		reason     sluice.Reason
	}{
		{"the client's mistake", 400, `{"error":{"message":"bad thing","type":"invalid_request_error","param":"x","code":null}}`, 400, "invalid_request_error", "bad thing", sluice.Failed, sluice.UpstreamRefused},
		{"no such model there", 404, `{"error":{"message":"no such model","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, 404, "not_found_error", "no such model", sluice.Failed, sluice.UpstreamRefused},
		{"a rate", 429, `{"error":{"message":"org-secret is limited","type":"requests","code":"rate_limit_exceeded"}}`, 529, "overloaded_error", "429", sluice.Failed, sluice.UpstreamLimited},
		{"a failure", 500, `{"error":{"message":"stack trace","type":"server_error"}}`, 502, "api_error", "500", sluice.Failed, sluice.UpstreamError},
	} {
		inBubble(t, setup{places: []place{{handler: answers(tt.status, tt.body)}}}, func(t *testing.T, r *rig) {
			g := r.do(ask{path: messagesAt, body: aMessage + `}`})
			kind, _, msg := errorOf(t, g.body)
			if g.status != tt.want || kind != tt.kind || !strings.Contains(msg, tt.says) || strings.Contains(g.body, "secret") || strings.Contains(g.body, "trace") || !strings.HasPrefix(g.body, `{"type":"error"`) {
				t.Errorf("%s: got %d %s", tt.name, g.status, g.body)
			}
			r.want(tt.outcome, tt.reason, tt.want)
		})
	}
	inBubble(t, setup{places: []place{{handler: talk{chunks: 2, end: "error"}}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: messagesAt, body: aMessage + `,"stream":true}`})
		if !strings.Contains(g.body, "\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"the upstream failed inside the answer: boom\"") {
			t.Errorf("got %s", g.body)
		}
		wantCut(t, g)
		r.want(sluice.Failed, sluice.UpstreamError, 200)
	})
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: claude{start: `{"input_tokens":9}`, texts: 2, delta: "cut"}}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{body: aChat + `,"stream":true}`})
		if content(g.body) != " tok tok" || strings.Contains(g.body, "[DONE]") || !strings.Contains(g.body, `data: {"error":{"message":`) {
			t.Errorf("got %s", g.body)
		}
		wantCut(t, g)
	})
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: answers(200, strings.Replace(message, `"text"`, `"web_fetch_result"`, 1))}}}, func(t *testing.T, r *rig) {
		if g := r.do(ask{body: aChat + `}`}); g.status != 502 || !strings.Contains(g.body, "web_fetch_result") {
			t.Errorf("got %d %s", g.status, g.body)
		}
		if rec := r.want(sluice.Failed, sluice.UpstreamMalformed, 502); rec.Usage.Input != 9 {
			t.Errorf("what the backend did is charged as %+v", rec.Usage)
		}
	})
}

// A client that leaves in mid-stream cancels a backend of another dialect at once.
func TestTranslatedCancel(t *testing.T) {
	m := &meter{gap: 100 * time.Millisecond, tokens: 1000, anthropic: true}
	inBubble(t, setup{places: []place{{dialect: wire.Anthropic, handler: m}}}, func(t *testing.T, r *rig) {
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		r.do(ask{body: aChat + `,"stream":true,"max_tokens":4000}`, ctx: ctx})
		time.Sleep(time.Second)
		if rec := r.want(sluice.Cancelled, sluice.ClientGone, 499); rec.Usage.OutputTotal() < 5 || m.billed.Load() > 11 {
			t.Errorf("charged %+v, billed %d", rec.Usage, m.billed.Load())
		}
	})
}

// A hard budget that has no room for more ends a translated stream as one of the
// client's own dialect.
func TestTranslatedBudgetStop(t *testing.T) {
	for _, anthropic := range []bool{false, true} {
		m := &meter{gap: time.Millisecond, tokens: 100_000, anthropic: anthropic}
		p, a, end := place{handler: m, engine: "vllm"}, ask{path: messagesAt, body: `{"model":"m","max_tokens":4000,"stream":true,"messages":[{"role":"user","content":"x"}]}`}, `"stop_reason":"max_tokens"`
		if anthropic {
			p.dialect = wire.Anthropic
			a, end = ask{body: aChat + `,"stream":true,"max_tokens":4000}`}, `"finish_reason":"length"`
		}
		policy := sluice.Policy{HardSpend: true}
		policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: 6_000_000}}
		inBubble(t, setup{policy: policy, places: []place{p}}, func(t *testing.T, r *rig) {
			g := r.do(a)
			if g.err != nil || !strings.Contains(g.body, end) || int64(m.billed.Load()) >= 4000 {
				t.Errorf("got %d … %s, %v; billed %d", g.status, g.body[max(0, len(g.body)-600):], g.err, m.billed.Load())
			}
			if last := strings.TrimSpace(g.body); !strings.HasSuffix(last, "[DONE]") && !strings.HasSuffix(last, `{"type":"message_stop"}`) {
				t.Errorf("it ends with %s", last[len(last)-100:])
			}
			r.want(sluice.Completed, sluice.BudgetStop, 200)
		})
	}
}

// A request whose translated attempt is late gets another beside it, and the client the
// stream of the one that has content first.
func TestTranslatedHedge(t *testing.T) {
	late, quick := talk{first: time.Hour, chunks: 1}, &witness{Handler: talk{chunks: 3, usage: usage(9, 3)}}
	hedge := &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true}}
	inBubble(t, setup{hedge: hedge, places: []place{{handler: late, domain: "a"}, {handler: quick, domain: "b"}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{path: messagesAt, body: aMessage + `,"stream":true}`})
		if n := strings.Count(g.body, "text_delta"); n != 3 || strings.Count(g.body, "message_start\",") != 1 || g.err != nil || len(quick.all) != 1 {
			t.Errorf("got %s, %v", g.body, g.err)
		}
		r.want(sluice.Completed, sluice.ReasonNone, 200)
	})
}

// A copy goes to a shadow of another dialect as its translation, and nowhere if it does
// not translate.
func TestTranslatedCopy(t *testing.T) {
	next := &witness{Handler: answers(200, message)}
	inBubble(t, setup{shadows: shadowOf("next", sluice.Dollar), places: []place{
		{handler: talk{chunks: 1, usage: usage(9, 1)}}, {next: true, dialect: wire.Anthropic, handler: next},
	}}, func(t *testing.T, r *rig) {
		for _, body := range []string{aChat + `}`, aChat + `,"seed":1}`} {
			if g := r.do(ask{body: body}); g.status != 200 || g.header.Get("Sluice-Backend") != "b0" {
				t.Errorf("got %d from %s", g.status, g.header.Get("Sluice-Backend"))
			}
		}
		shadows, _ := r.copies()
		if len(next.all) != 1 || len(shadows) != 1 || shadows[0].Outcome != sluice.Completed || shadows[0].Usage.Input != 9 || next.all[0].path != messagesAt {
			t.Errorf("%d were sent to the shadow, %d are on record: %+v", len(next.all), len(shadows), shadows)
		}
		if d := string(r.last().Final.Detail); !strings.Contains(d, `"shadows":[{"pool":"next","skipped":"translation"`) {
			t.Errorf("the second says %s", d)
		}
	})
}

// What a translated answer leaves out is named in the header and in explain, or is an
// error, as the tenant's policy says.
func TestTranslatedAnswerNamesWhatItLoses(t *testing.T) {
	cited := `{"id":"msg","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"hi","citations":[{"type":"char_location","cited_text":"x"}]}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`
	for _, warn := range []bool{true, false} {
		inBubble(t, setup{policy: sluice.Policy{WarnDropped: warn}, places: []place{{dialect: wire.Anthropic, handler: answers(200, cited)}}}, func(t *testing.T, r *rig) {
			g := r.do(ask{})
			dropped := g.header.Get("Sluice-Dropped")
			if warn && (g.status != 200 || !strings.Contains(dropped, "answer: content.citations")) || !warn && g.status != 502 {
				t.Errorf("warn %v: got %d, dropped %q: %s", warn, g.status, dropped, g.body)
			}
		})
	}
}
