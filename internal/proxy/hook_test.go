package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/hook"
	"sluice/internal/wire"
)

// guardian is a hook's service that answers by a script and notes what it is asked.
type guardian struct {
	mu    sync.Mutex
	asked []hook.Question
	bad   []string
	left  []time.Time // when a caller left
	say   func(q *hook.Question) string
	after time.Duration
}

const hookSecret = "canary-of-the-hook"

func (g *guardian) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var q hook.Question
	err := json.Unmarshal(body, &q)
	g.mu.Lock()
	g.asked = append(g.asked, q)
	if want := hook.Sign(hookSecret, time.Now(), body); err != nil || r.Header.Get(hook.SignatureHeader) != want {
		g.bad = append(g.bad, fmt.Sprint(err, r.Header))
	}
	g.mu.Unlock()
	if g.after > 0 {
		select {
		case <-time.After(g.after):
		case <-r.Context().Done():
			g.mu.Lock()
			g.left = append(g.left, time.Now())
			g.mu.Unlock()
			return
		}
	}
	switch answer := g.say(&q); answer {
	case "500":
		w.WriteHeader(500)
	default:
		io.WriteString(w, answer)
	}
}

// calls is what it was asked, call one of it.
func (g *guardian) calls() []hook.Question {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

func (g *guardian) call(i int) hook.Question { return g.calls()[i] }

// times is how often it was asked.
func (g *guardian) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

func always(answer string) func(*hook.Question) string {
	return func(*hook.Question) string { return answer }
}

// guarded is a rig's set-up with one hook that is a service.
func guarded(g *guardian, at hook.Stages, up http.Handler, change func(*hook.Spec)) setup {
	s := hook.Spec{Name: "guard", URL: "http://hook/check", Secret: sluice.NewSecret(hookSecret), At: at}
	if change != nil {
		change(&s)
	}
	return setup{places: []place{{handler: up}}, asked: g, inspect: []hook.Spec{s}, policy: sluice.Policy{Hooks: []string{"guard"}}}
}

const (
	request = 1 << hook.AtRequest
	commit  = 1 << hook.AtCommit
	event   = 1 << hook.AtEvent
)

func (r *rig) decided(t *testing.T, want string) {
	t.Helper()
	rec := r.last()
	if got := string(rec.Final.Detail); !strings.Contains(got, want) {
		t.Errorf("recorded %s, want %s", got, want)
	}
}

// Every stage with every verdict and both failure modes, streamed and not.
func TestHookStages(t *testing.T) {
	const (
		allow  = `{"verdict":"allow","version":1,"extra":true}`
		refuse = `{"verdict":"refuse","why":"policy-7","message":"not here"}`
		forbid = `{"verdict":"refuse","status":403}`
		label  = `{"verdict":"risk","risk":"high"}`
	)
	for _, tt := range []struct {
		name   string
		at     hook.Stages
		say    string
		open   bool
		stream bool
		status int
		reason sluice.Reason
		record string
		dials  int
	}{
		{"request allow", request, allow, false, false, 200, 0, `{"hook":"guard","stage":"request","verdict":"allow","calls":1`, 1},
		{"request refuse", request, refuse, false, false, 400, sluice.HookRefused, `"verdict":"refuse","why":"policy-7","calls":1`, 0},
		{"request refuse, streamed", request, refuse, false, true, 400, sluice.HookRefused, `"stage":"request","verdict":"refuse"`, 0},
		{"request forbid", request, forbid, true, false, 403, sluice.HookRefused, `"verdict":"refuse"`, 0},
		{"request risk", request, label, false, false, 200, 0, `"risk":"high"`, 1},
		{"request fails closed", request, "500", false, false, 503, sluice.HookFailed, `"verdict":"failed","why":"status"`, 0},
		{"request fails open", request, "500", true, false, 200, 0, `"verdict":"failed","why":"status"`, 1},
		{"request is no verdict", request, `{"verdict":"maybe"}`, false, false, 503, sluice.HookFailed, `"why":"malformed"`, 0},
		{"request has edits out of bounds", request, `{"verdict":"redact","edits":[{"text":0,"start":5,"end":999}]}`, false, false, 503, sluice.HookFailed, `"why":"malformed"`, 0},
		{"whole allow", commit, allow, false, false, 200, 0, `"stage":"commit","verdict":"allow"`, 1},
		{"whole refuse", commit, refuse, false, false, 400, sluice.HookRefused, `"stage":"commit","verdict":"refuse","why":"policy-7"`, 1},
		{"whole fails closed", commit, "500", false, false, 502, sluice.HookFailed, `"stage":"commit","verdict":"failed"`, 1},
		{"whole fails open", commit, "500", true, false, 200, 0, `"stage":"commit","verdict":"failed"`, 1},
		{"whole for an event hook", event, refuse, false, false, 400, sluice.HookRefused, `"stage":"commit","verdict":"refuse"`, 1},
		{"stream commit allow", commit, allow, false, true, 200, 0, `"stage":"commit","verdict":"allow","calls":1`, 1},
		{"stream commit refuse", commit, refuse, false, true, 400, sluice.HookRefused, `"stage":"commit","verdict":"refuse"`, 1},
		{"stream commit fails closed", commit, "500", false, true, 502, sluice.HookFailed, `"stage":"commit","verdict":"failed"`, 1},
		{"stream event allow", event, allow, false, true, 200, 0, `"stage":"event","verdict":"allow"`, 1},
		{"stream event fails open", event, "500", true, true, 200, 0, `"stage":"event","verdict":"failed"`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &guardian{say: always(tt.say)}
			up := &witness{Handler: talk{chunks: 3, usage: usage(10, 3)}}
			s := guarded(g, tt.at, up, func(s *hook.Spec) { s.FailOpen = tt.open })
			inBubble(t, s, func(t *testing.T, r *rig) {
				got := r.do(ask{stream: tt.stream})
				if got.status != tt.status || len(up.all) != tt.dials {
					t.Errorf("status %d with %d calls of the backend, want %d with %d: %s", got.status, len(up.all), tt.status, tt.dials, got.body)
				}
				r.decided(t, tt.record)
				rec := r.last()
				if rec.Final.Reason != tt.reason || len(g.bad) > 0 {
					t.Errorf("reason %q, want %q; bad calls %v", rec.Final.Reason, tt.reason, g.bad)
				}
				if tt.reason == sluice.HookRefused {
					if _, code, message := errorOf(t, got.body); code != "hook_refused" || tt.say == refuse && !strings.Contains(message, "not here") {
						t.Errorf("the client got %s", got.body)
					}
					if got.header.Get("X-Should-Retry") != "false" {
						t.Errorf("headers %v", got.header)
					}
				}
				if tt.dials == 0 && (rec.Cost != 0 || len(r.journal.dispatch) != 0) {
					t.Errorf("cost %v", rec.Cost)
				}
				if tt.dials == 1 && !tt.stream && (rec.Usage.Input != 10 || rec.Usage.Output != 3 || rec.Usage.Source != sluice.UsageReported) {
					t.Errorf("usage %+v: an answer was generated whatever became of it", rec.Usage)
				}
				if tt.status == 200 && tt.stream && content(got.body) != " tok tok tok" {
					t.Errorf("the client got %q", content(got.body))
				}
			})
		})
	}
}

// What a service redacts of a request reaches the backend in its place, byte for byte
// otherwise; of a whole answer, the client.
func TestHookRedacts(t *testing.T) {
	g := &guardian{say: func(q *hook.Question) string {
		for i, text := range q.Texts {
			if at := strings.Index(text.Text, "Bob"); at >= 0 {
				return fmt.Sprintf(`{"verdict":"redact","why":"name","edits":[{"text":%d,"start":%d,"end":%d,"with":"\"N\" "}]}`, i, at, at+3)
			}
		}
		return `{"verdict":"allow"}`
	}}
	up := &witness{Handler: talk{chunks: 1, text: "hi Bob!", usage: usage(10, 3)}}
	inBubble(t, guarded(g, request|commit, up, nil), func(t *testing.T, r *rig) {
		got := r.do(ask{body: `{"model":"m", "messages":[{"role":"user","content":[{"type":"text","text":"é\n\u0041 Bob\u00e9"}]}], "odd" : 1}`})
		if want := `{"model":"up", "messages":[{"role":"user","content":[{"type":"text","text":"é\n\u0041 \"N\" \u00e9"}]}], "odd" : 1}`; up.all[0].body != want {
			t.Errorf("sent %s\nwant %s", up.all[0].body, want)
		}
		if !strings.Contains(got.body, `"content":"hi \"N\" !"`) {
			t.Errorf("got %s", got.body)
		}
		if q := g.call(0); q.Texts[0].Path != "messages[0].content[0].text" || q.Tenant != "acme" || q.Operation != "chat" || q.ID == "" || !q.Final {
			t.Errorf("asked %+v", q)
		}
		if q := g.call(1); q.Texts[0].Path != "choices[0].message.content" || q.Status != 200 || q.Backend != "b0" {
			t.Errorf("asked %+v", q)
		}
		r.decided(t, `{"hook":"guard","stage":"request","verdict":"redact","why":"name","calls":1`)
	})
}

// redacting is the built-in redaction for the caller's policy.
func redacting(up http.Handler, d wire.Dialect) setup {
	return setup{
		places: []place{{handler: up, dialect: d}}, policy: sluice.Policy{Hooks: []string{"pii"}},
		inspect: []hook.Spec{{Name: "pii", Redact: hook.AllKinds, At: request | commit | event}},
	}
}

// The built-in redaction, for requests and answers, in both dialects and across them.
func TestRedaction(t *testing.T) {
	tokens := []string{"Ask al", "ice@exam", "ple.com", " or 4111 11", "11 1111 1111", ", ok"}
	const want = "Ask [redacted:email] or [redacted:card], ok"
	for _, tt := range []struct {
		name, path string
		dialect    wire.Dialect
	}{
		{"chat", "", wire.OpenAI},
		{"messages", messagesAt, wire.Anthropic},
		{"chat on messages", "", wire.Anthropic},
		{"messages on chat", messagesAt, wire.OpenAI},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := &witness{Handler: tokenwise{tt.dialect, tokens}}
			inBubble(t, redacting(up, tt.dialect), func(t *testing.T, r *rig) {
				got := r.do(ask{path: tt.path, body: `{"model":"m","stream":true,"max_tokens":99,"messages":[{"role":"user","content":"I am bob@example.com"}]}`})
				if s := up.all[0].body; strings.Contains(s, "bob@") || !strings.Contains(s, "I am [redacted:email]") {
					t.Errorf("sent %s", s)
				}
				if text := textOf(got.body); text != want || got.status != 200 {
					t.Errorf("%d %q, want %q:\n%s", got.status, text, want, got.body)
				}
				r.want(sluice.Completed, sluice.ReasonNone, 200)
				r.decided(t, `{"hook":"pii","stage":"request","verdict":"redact","calls":1,"found":{"email":1}}`)
				r.decided(t, `"stage":"event","verdict":"redact"`)
			})
		})
	}
}

// tokenwise streams texts in either dialect, each as an event of its own.
type tokenwise struct {
	dialect wire.Dialect
	texts   []string
}

func (k tokenwise) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(name, data string) {
		if name != "" {
			name = "event: " + name + "\n"
		}
		io.WriteString(w, name+"data: "+data+"\n\n")
		w.(http.Flusher).Flush()
	}
	if k.dialect == wire.Anthropic {
		send("message_start", `{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"up","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":1}}}`)
		send("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for _, s := range k.texts {
			send("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, s))
		}
		send("content_block_stop", `{"type":"content_block_stop","index":0}`)
		send("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`)
		send("message_stop", `{"type":"message_stop"}`)
		return
	}
	chunk := `{"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`
	send("", fmt.Sprintf(chunk, `{"role":"assistant","content":""}`, "null"))
	for _, s := range k.texts {
		send("", fmt.Sprintf(chunk, fmt.Sprintf(`{"content":%q}`, s), "null"))
	}
	send("", fmt.Sprintf(chunk, `{}`, `"stop"`))
	send("", `{"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[],"usage":`+usage(5, 9)+`}`)
	send("", "[DONE]")
}

// textOf is the text of a stream of either dialect.
func textOf(body string) string {
	var out strings.Builder
	for line := range strings.Lines(body) {
		var e struct {
			Choices []struct{ Delta struct{ Content string } }
			Delta   struct{ Text string }
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
			out.WriteString(e.Delta.Text)
			if len(e.Choices) > 0 {
				out.WriteString(e.Choices[0].Delta.Content)
			}
		}
	}
	return out.String()
}

// A refusal in the middle of a stream is the dialect's error event; what was let go before
// is delivered, nothing after, and what was generated is paid.
func TestHookRefusesInTheMiddle(t *testing.T) {
	for _, path := range []string{"", messagesAt} {
		g := &guardian{say: func(q *hook.Question) string {
			if strings.Contains(q.Texts[0].Text, "forbidden") {
				return `{"verdict":"refuse","why":"word"}`
			}
			return `{"verdict":"allow"}`
		}}
		d := wire.OpenAI
		if path != "" {
			d = wire.Anthropic
		}
		up := tokenwise{d, []string{strings.Repeat("fine text ", 30), "a forb", "idden thing", "never seen"}}
		s := guarded(g, event, up, func(s *hook.Spec) { s.Window = hook.Window{Bytes: 100, Overlap: 40} })
		s.places[0].dialect = d
		inBubble(t, s, func(t *testing.T, r *rig) {
			got := r.do(ask{path: path, body: `{"model":"m","stream":true,"max_tokens":99,"messages":[{"role":"user","content":"x"}]}`})
			wantCut(t, got)
			text := textOf(got.body)
			if !strings.HasPrefix(text, "fine text fine") || strings.Contains(text, "forb") || !strings.Contains(got.body, "hook_refused") {
				t.Errorf("got %q\n%s", text, got.body)
			}
			rec := r.want(sluice.Failed, sluice.HookRefused, 200)
			if rec.Usage.Output == 0 || rec.Cost == 0 {
				t.Errorf("usage %+v, cost %v", rec.Usage, rec.Cost)
			}
			r.decided(t, `"stage":"event","verdict":"refuse","why":"word"`)
		})
	}
}

// Text is shown in windows of bounded bytes and time, with what came before, and lets other
// events pass at once.
func TestHookWindows(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"allow"}`)}
	up := talk{chunks: 20, text: "0123456789", gap: 100 * time.Millisecond, usage: usage(1, 1)}
	s := guarded(g, event, up, func(s *hook.Spec) { s.Window = hook.Window{Bytes: 1000, Time: 350 * time.Millisecond, Overlap: 8} })
	inBubble(t, s, func(t *testing.T, r *rig) {
		got := r.do(ask{stream: true})
		if content(got.body) != strings.Repeat("0123456789", 20) {
			t.Errorf("got %q", content(got.body))
		}
		for i, q := range g.calls() {
			text := q.Texts[0]
			if len(text.Text) > 48 || i > 0 && text.Seen != 8 || text.Path != "choices[0].delta.content" {
				t.Errorf("window %d: %+v", i, text)
			}
		}
		if n := g.times(); n < 5 || n > 7 || !g.call(n-1).Final {
			t.Errorf("%d windows", n)
		}
	})
}

// A backend that goes silent does not keep back text that was shown.
func TestHookLetsGoInSilence(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"allow"}`)}
	up := talk{chunks: 1, text: "hello there", end: "hang"}
	inBubble(t, guarded(g, event, up, nil), func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := r.client.Do(r.request(ask{stream: true, ctx: ctx}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*hook.DefaultWindowTime + 10*time.Millisecond)
		buf := make([]byte, 4096)
		all := ""
		for !strings.Contains(content(all), "hello there") {
			n, err := resp.Body.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q", err, all)
			}
			all += string(buf[:n])
		}
		cancel()
		resp.Body.Close()
		r.want(sluice.Cancelled, sluice.ClientGone, 499)
	})
}

// A hook has its deadline, to the nanosecond; it is counted to the request's wait; one that
// fails again and again is left alone, closed as before, and asked again later.
func TestHookDeadlineAndBreaker(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"allow"}`), after: time.Hour}
	inBubble(t, guarded(g, request, talk{chunks: 1}, func(s *hook.Spec) { s.Deadline = 300 * time.Millisecond }), func(t *testing.T, r *rig) {
		for i := range 5 {
			if got := r.do(ask{}); got.status != 503 || got.took != 300*time.Millisecond {
				t.Fatalf("%d: status %d after %v", i, got.status, got.took)
			}
			r.decided(t, `"verdict":"failed","why":"timeout"`)
		}
		if got := r.do(ask{}); got.status != 503 || got.took != 0 || g.times() != 5 {
			t.Errorf("status %d after %v, asked %d times", got.status, got.took, g.times())
		}
		r.decided(t, `"why":"open"`)
		g.after = 0
		time.Sleep(time.Second)
		if got := r.do(ask{}); got.status != 200 || g.times() != 6 {
			t.Errorf("status %d, asked %d times", got.status, g.times())
		}
	})
}

// A client that leaves ends the call of a hook, and nothing is held or paid.
func TestHookEndsWithItsClient(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"allow"}`), after: time.Hour}
	up := &witness{Handler: talk{chunks: 1}}
	inBubble(t, guarded(g, request, up, func(s *hook.Spec) { s.Deadline = 20 * time.Second }), func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		r.do(ask{ctx: ctx})
		synctest.Wait()
		if len(g.left) != 1 || g.left[0].Sub(begun) != time.Second || len(up.all) != 0 {
			t.Errorf("left %v, %d calls of the backend", g.left, len(up.all))
		}
		r.want(sluice.Cancelled, sluice.ClientGone, 499)
	})
}

// The time of a hook is not there for the queue any more.
func TestHookTimeCountsAsWait(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"allow"}`), after: 400 * time.Millisecond}
	s := guarded(g, request, talk{before: time.Minute, chunks: 1}, nil)
	s.places[0].slots = 1
	inBubble(t, s, func(t *testing.T, r *rig) {
		done := make(chan struct{})
		go func() { defer close(done); r.do(ask{}) }()
		time.Sleep(time.Second)
		got := r.do(ask{header: http.Header{"Sluice-Max-Wait": {"1s"}}})
		if got.status != 503 || got.took != time.Second {
			t.Errorf("status %d after %v: the wait is a second with the hook's 400ms", got.status, got.took)
		}
		<-done
	})
}

// At most so many calls run at a time; one that has no turn within the deadline fails, and
// says nothing of the hook.
func TestHookConcurrency(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"allow"}`), after: 200 * time.Millisecond}
	s := guarded(g, request, talk{chunks: 1}, func(s *hook.Spec) { s.Concurrency, s.Deadline = 2, 300*time.Millisecond })
	inBubble(t, s, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var statuses []int
		for range 6 {
			wg.Go(func() {
				got := r.do(ask{})
				mu.Lock()
				defer mu.Unlock()
				statuses = append(statuses, got.status)
			})
		}
		wg.Wait()
		slices.Sort(statuses)
		if !slices.Equal(statuses, []int{200, 200, 503, 503, 503, 503}) || g.times() > 4 {
			t.Errorf("statuses %v, asked %d", statuses, g.times())
		}
	})
}

// Two tenants, one with a hook: the other's requests are not shown, nor held back.
func TestHookIsItsTenants(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"refuse"}`)}
	s := guarded(g, request|commit|event, talk{chunks: 2}, nil)
	other := sluice.Policy{Weight: 1}
	s.options = func(o *Options) {
		identify := o.Identify
		o.Identify = func(credential string) (sluice.Principal, error) {
			if credential == "slk_other" {
				return sluice.Principal{Tenant: "globex", Project: sluice.DefaultProject, Key: "k", Policy: &other}, nil
			}
			return identify(credential)
		}
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		for _, stream := range []bool{false, true} {
			got := r.do(ask{stream: stream, header: http.Header{"Authorization": {"Bearer slk_other"}}})
			if got.status != 200 || g.times() != 0 || strings.Contains(string(r.last().Final.Detail), `"hooks"`) {
				t.Errorf("status %d, asked %d times", got.status, g.times())
			}
		}
		if got := r.do(ask{}); got.status != 400 || g.times() != 1 {
			t.Errorf("status %d, asked %d times", got.status, g.times())
		}
	})
}

// A label goes into routing: what is too risky for every backend is refused.
func TestHookRaisesRisk(t *testing.T) {
	g := &guardian{say: always(`{"verdict":"risk","risk":"high"}`)}
	up := &witness{Handler: talk{chunks: 1}}
	s := guarded(g, request, up, nil)
	s.places[0].maxRisk = sluice.RiskLow
	inBubble(t, s, func(t *testing.T, r *rig) {
		if got := r.do(ask{}); got.status == 200 || len(up.all) != 0 {
			t.Errorf("status %d, %d calls", got.status, len(up.all))
		}
		if rec := r.last(); rec.Risk != sluice.RiskHigh {
			t.Errorf("risk %v", rec.Risk)
		}
	})
}

// Hooks of the model come after those of the policy, and one that is not there lets nothing
// past.
func TestHookOfModel(t *testing.T) {
	g := &guardian{say: func(q *hook.Question) string {
		if q.Texts[0].Text != "I am [redacted:email]" {
			return `{"verdict":"refuse"}`
		}
		return `{"verdict":"allow"}`
	}}
	s := guarded(g, request, talk{chunks: 1}, nil)
	s.inspect = append(s.inspect, hook.Spec{Name: "pii", Redact: hook.AllKinds, At: request})
	s.policy.Hooks, s.byModel = []string{"pii"}, []string{"guard", "pii"}
	inBubble(t, s, func(t *testing.T, r *rig) {
		body := `{"model":"m","messages":[{"role":"user","content":"I am bob@example.com"}]}`
		if got := r.do(ask{body: body}); got.status != 200 {
			t.Errorf("status %d %s", got.status, got.body)
		}
		r.inspector.Use(nil)
		if got := r.do(ask{body: body}); got.status != 200 {
			t.Errorf("status %d: a policy changes a moment after its hooks", got.status)
		}
		r.inspector.Use(nil)
		if got := r.do(ask{body: body}); got.status != 503 {
			t.Errorf("status %d", got.status)
		}
		r.decided(t, `"why":"unknown"`)
	})
}
