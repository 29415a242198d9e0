package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// meter is a backend that writes a token every gap until it is done or nobody
// listens, and counts what it bills.
type meter struct {
	gap       time.Duration
	tokens    int
	anthropic bool
	silent    bool // tells its usage at the end alone
	billed    atomic.Int64
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(name, data string) {
		if name != "" {
			fmt.Fprintf(w, "event: %s\n", name)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
		w.(http.Flusher).Flush()
	}
	if m.anthropic {
		send("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`)
		send("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	}
	for i := 1; i <= m.tokens; i++ {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(m.gap):
		}
		m.billed.Add(1)
		if m.anthropic {
			send("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" tok"}}`)
			continue
		}
		if m.silent {
			send("", `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"up","choices":[{"index":0,"delta":{"content":" tok"},"finish_reason":null}]}`)
			continue
		}
		send("", fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"up","choices":[{"index":0,"delta":{"content":" tok"},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":%d,"total_tokens":%d}}`, i, 9+i))
	}
	if m.anthropic {
		send("content_block_stop", `{"type":"content_block_stop","index":0}`)
		send("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}`, m.tokens))
		send("message_stop", `{"type":"message_stop"}`)
		return
	}
	send("", fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":%d,"total_tokens":%d}}`, m.tokens, 9+m.tokens))
	send("", "[DONE]")
}

// A hard budget holds the output of a stream in steps, and a stream that it has no
// more room for ends as one that has reached its bound. Never is more posted and held
// than the budget is, and never is less charged than the provider bills.
func TestHardSpendInSteps(t *testing.T) {
	const perToken = 2000 // nano-dollars of output
	for _, tt := range []struct {
		name    string
		place   place
		m       *meter
		budget  sluice.Nano
		short   bool
		least   int64 // that was billed
		dropped bool
	}{
		{"the engine counts, and the budget ends it", place{engine: "vllm"}, &meter{gap: 5 * time.Millisecond, tokens: 4000}, 3000 * perToken, true, 2400, false},
		{"we count by bytes, while nothing is known", place{engine: "llamacpp"}, &meter{gap: 5 * time.Millisecond, tokens: 4000, silent: true}, 3000 * perToken, true, 500, false},
		{"the other dialect", place{engine: "vllm", dialect: wire.Anthropic}, &meter{gap: 5 * time.Millisecond, tokens: 4000, anthropic: true}, 3000 * perToken, true, 500, false},
		{"fast: the lead grows with the rate", place{engine: "vllm"}, &meter{gap: 250 * time.Microsecond, tokens: 4000}, 3000 * perToken, true, 500, false},
		{"a short answer", place{engine: "vllm"}, &meter{gap: time.Millisecond, tokens: 50}, 3000 * perToken, false, 50, false},
		{"room for all", place{engine: "vllm"}, &meter{gap: time.Millisecond, tokens: 4000}, 9000 * perToken, false, 4000, false},
		{"less than a step: clamped", place{engine: "vllm"}, &meter{gap: time.Millisecond, tokens: 100}, 700 * perToken, false, 100, true},
		{"it runs on when nobody listens: clamped", place{engine: "vllm", runsOn: true}, &meter{gap: time.Millisecond, tokens: 100}, 3000 * perToken, false, 100, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			policy := sluice.Policy{HardSpend: true}
			policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: int64(tt.budget)}}
			tt.place.handler = tt.m
			inBubble(t, setup{places: []place{tt.place}, policy: policy}, func(t *testing.T, r *rig) {
				var most int64
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for {
						select {
						case <-stop:
							return
						case <-time.After(20 * time.Millisecond):
						}
						for _, a := range r.gate.Dump(10).Top {
							for _, c := range a.Counters {
								if most = max(most, c.Held); c.Used+c.Held > c.Limit.Amount {
									t.Errorf("%d posted and %d held of %d", c.Used, c.Held, c.Limit.Amount)
								}
							}
						}
					}
				}()
				a := ask{stream: true, max: 4096}
				if tt.place.dialect == wire.Anthropic {
					a.path = "/v1/messages"
				}
				g := r.do(a)
				close(stop)
				<-stopped
				if g.status != 200 || g.err != nil {
					t.Fatalf("got %d, %v", g.status, g.err)
				}
				if d := g.header.Get("sluice-dropped"); (d != "") != tt.dropped {
					t.Errorf("sluice-dropped is %q", d)
				}
				word := `"finish_reason":"length"`
				if tt.place.dialect == wire.Anthropic {
					word = `"stop_reason":"max_tokens"`
				}
				if strings.Contains(g.body, word) != tt.short {
					t.Errorf("%s: %v, want %v: …%s", word, !tt.short, tt.short, g.body[max(0, len(g.body)-400):])
				}
				if end := strings.TrimSpace(g.body); !strings.HasSuffix(end, "[DONE]") && !strings.HasSuffix(end, `{"type":"message_stop"}`) {
					t.Errorf("the stream ends without its marker: %s", end[max(0, len(end)-200):])
				}
				reason := sluice.ReasonNone
				if tt.short {
					reason = sluice.BudgetStop
				}
				time.Sleep(time.Second)
				rec := r.want(sluice.Completed, reason, 200)
				billed := tt.m.billed.Load()
				invoice := sluice.Nano(9*1000 + billed*perToken)
				f := rec.Final
				t.Logf("billed %d tokens, charged %v of %v, held at most %v", billed, f.CostHigh, tt.budget, sluice.Nano(most))
				if f.CostHigh < invoice || invoice > tt.budget || f.CostHigh > tt.budget {
					t.Errorf("the provider bills %v, the budget of %v was charged %v", invoice, tt.budget, f.CostHigh)
				}
				if billed < tt.least {
					t.Errorf("%d tokens, want at least %d", billed, tt.least)
				}
				if tt.m.tokens == 50 && most > 1200*perToken {
					t.Errorf("%v was held for a short answer", sluice.Nano(most))
				}
			})
		})
	}
}
