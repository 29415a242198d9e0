package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// exit is one way to end of docs/settlement.md.
type exit struct {
	row    string // of the table, and what is special
	setup  setup
	ask    ask
	leave  time.Duration                           // the client leaves after that
	run    func(t *testing.T, r *rig, e *exit) got // in place of one request
	broken bool                                    // the journal cannot write

	outcome sluice.Outcome
	reason  sluice.Reason
	status  int // in the ledger
	source  sluice.UsageSource
	output  bool // some output is charged, where the source is not reported
	entries int  // default 1
	late    bool
	hard    bool // with hard spend only
}

func one(h http.Handler) setup { return setup{places: []place{{handler: h}}} }

func timed(h http.Handler, t upstream.Timeouts) setup {
	return setup{places: []place{{handler: h, timeouts: t}}}
}

func gauge(s setup) setup {
	s.policy.Limits = limits(sluice.Limit{Dimension: sluice.Concurrency, Amount: 1})
	return s
}

var messages = ask{path: "/v1/messages", body: `{"model":"m","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"` + promptSecret + `"}]}`}

func anthropic(k claude) setup {
	return setup{places: []place{{handler: k, dialect: wire.Anthropic}}}
}

const (
	none      = sluice.UsageNone
	estimated = sluice.UsageEstimated
	counted   = sluice.UsageCounted
	reported  = sluice.UsageReported
)

func exits() []exit {
	stream := ask{stream: true}
	slow := talk{chunks: 50, gap: time.Second}
	spare := place{handler: talk{chunks: 2, usage: usage(9, 2)}, fallback: true}
	return []exit{
		{row: "S1 streamed", setup: one(talk{chunks: 3, usage: usage(9, 3)}), ask: stream, status: 200, source: reported},
		{row: "S1 in one piece", setup: one(talk{chunks: 3, usage: usage(9, 3)}), status: 200, source: reported},
		{row: "S1 more than the hold", setup: one(talk{chunks: 3, usage: usage(900, 5000)}), status: 200, source: reported},
		{row: "S1 anthropic", setup: anthropic(claude{start: `{"input_tokens":9,"output_tokens":1}`, texts: 3, delta: `{"output_tokens":3}`}), ask: messages, status: 200, source: reported},
		{row: "S2 streamed", setup: one(talk{chunks: 3}), ask: stream, status: 200, source: estimated, output: true},
		{row: "S2 in one piece", setup: one(talk{chunks: 3}), status: 200, source: estimated, output: true},
		{row: "S3", setup: one(talk{chunks: 3, usage: usage(9, 0)}), ask: stream, status: 200, source: counted, output: true},
		{row: "S4 negative", setup: one(talk{chunks: 3, usage: usage(-9, 3)}), ask: stream, status: 200, source: counted, output: true},
		{row: "S4 huge", setup: one(talk{chunks: 3, usage: usage(9, 1_000_000_000_000)}), status: 200, source: counted, output: true},
		{row: "S5", setup: one(talk{chunks: 3, usage: usage(9, 3)}), ask: stream, run: leaveAtTheEnd, status: 200, source: reported},

		{row: "S6", setup: gauge(one(slow)), run: leaveTheQueue, outcome: sluice.Cancelled, reason: sluice.ClientGone, status: 499},
		{row: "S7 no headers", setup: one(newSilent()), ask: stream, leave: time.Second, outcome: sluice.Cancelled, reason: sluice.ClientGone, status: 499, source: estimated},
		{row: "S7 no first token", setup: one(talk{first: time.Hour}), ask: stream, leave: time.Second, outcome: sluice.Cancelled, reason: sluice.ClientGone, status: 499, source: estimated},
		{row: "S7 in one piece", setup: one(newSilent()), leave: time.Second, outcome: sluice.Cancelled, reason: sluice.ClientGone, status: 499, source: estimated, output: true},
		{row: "S7 runs on", setup: setup{places: []place{{handler: newSilent(), runsOn: true}}}, ask: stream, leave: time.Second, outcome: sluice.Cancelled, reason: sluice.ClientGone, status: 499, source: estimated, output: true},
		{row: "S8", setup: anthropic(claude{start: `{"input_tokens":9,"output_tokens":1}`, texts: 50, gap: time.Second}), ask: messages, leave: 3500 * time.Millisecond, outcome: sluice.Cancelled, reason: sluice.ClientGone, status: 499, source: counted, output: true},
		{row: "S9", setup: one(slow), ask: stream, leave: 3500 * time.Millisecond, outcome: sluice.Cancelled, reason: sluice.ClientGone, status: 499, source: estimated, output: true},
		{row: "S10", setup: setup{buffer: 4 << 10, places: []place{{handler: talk{chunks: 9000}}}}, run: readNothing, outcome: sluice.Cancelled, reason: sluice.ClientStalled, status: 200, source: estimated, output: true},

		{row: "S11 model", setup: one(slow), ask: ask{body: `{"model":"nope","messages":[]}`}, outcome: sluice.Rejected, reason: sluice.ModelNotFound, status: 404},
		{row: "S11 never fits", setup: setup{places: []place{{handler: slow}}, policy: sluice.Policy{Limits: limits(sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerDay, Amount: 1})}}, outcome: sluice.Rejected, reason: sluice.NeverFits, status: 400},
		{row: "S12 no queue", setup: gauge(one(slow)), ask: ask{header: http.Header{"Sluice-Max-Wait": {"0"}}}, run: behindAnother, outcome: sluice.Rejected, reason: sluice.ConcurrencyLimited, status: 429},
		{row: "S12 waited", setup: gauge(one(slow)), ask: ask{header: http.Header{"Sluice-Max-Wait": {"3s"}}}, run: behindAnother, outcome: sluice.Rejected, reason: sluice.ConcurrencyLimited, status: 429},
		{row: "S13", setup: one(slow), run: drained, outcome: sluice.Rejected, reason: sluice.ShuttingDown, status: 503},
		{row: "S14", setup: one(slow), broken: true, hard: true, outcome: sluice.Failed, reason: sluice.LedgerBusy, status: 503},

		{row: "S16 refused", setup: setup{places: []place{{nobody: true}}}, outcome: sluice.Failed, reason: sluice.UpstreamConnect, status: 502},
		{row: "S16 silent", setup: setup{places: []place{{hole: true, timeouts: upstream.Timeouts{Connect: time.Second}}}}, outcome: sluice.Failed, reason: sluice.UpstreamConnect, status: 502},
		{row: "S17", setup: one(answers(400, `{"error":{"message":"bad","type":"invalid_request_error","param":null,"code":null}}`)), outcome: sluice.Failed, reason: sluice.UpstreamRefused, status: 400},
		{row: "S17 credential", setup: one(answers(401, `{"error":{"message":"bad key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`)), outcome: sluice.Failed, reason: sluice.UpstreamRefused, status: 503},
		{row: "S18", setup: one(answers(429, `{"error":{"message":"slow down","type":"x","param":null,"code":"rate_limit_exceeded"}}`)), ask: ask{header: http.Header{"Sluice-Max-Wait": {"0"}}}, outcome: sluice.Failed, reason: sluice.UpstreamLimited, status: 503},
		{row: "S19", setup: one(answers(500, `oops`)), outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502},
		{row: "S20", setup: one(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamConnect, status: 502, source: estimated},
		{row: "S21 headers", setup: timed(newSilent(), upstream.Timeouts{Headers: time.Second}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated},
		{row: "S21 first token", setup: timed(talk{first: time.Hour}, upstream.Timeouts{FirstToken: time.Second}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated},
		{row: "S21 in one piece", setup: timed(newSilent(), upstream.Timeouts{Total: time.Second}), outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 504, source: estimated, output: true},
		{row: "S22 silence", setup: timed(talk{chunks: 3, end: "hang"}, upstream.Timeouts{Idle: time.Second}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamStalled, status: 200, source: estimated, output: true},
		{row: "S22 total", setup: timed(slow, upstream.Timeouts{Total: 5500 * time.Millisecond}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamTimeout, status: 200, source: estimated, output: true},
		{row: "S23 clean end", setup: one(talk{chunks: 3, end: "clean"}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamTruncated, status: 200, source: estimated, output: true},
		{row: "S23 reset", setup: one(talk{chunks: 3, end: "cut"}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamTruncated, status: 200, source: estimated, output: true},
		{row: "S23 with partial usage", setup: anthropic(claude{start: `{"input_tokens":9,"output_tokens":1}`, texts: 3, delta: "cut"}), ask: messages, outcome: sluice.Failed, reason: sluice.UpstreamTruncated, status: 200, source: counted, output: true},
		{row: "S40 before content", setup: one(talk{end: "error"}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502, source: estimated},
		{row: "S40 before content, runs on", setup: setup{places: []place{{handler: talk{end: "error"}, runsOn: true}}}, ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502, source: estimated},
		{row: "S40 in one piece", setup: one(answers(200, `{"error":{"message":"boom","type":"server_error","code":null,"param":null}}`)), outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502, source: estimated},
		{row: "S40 overloaded", setup: one(tells("", `{"error":{"message":"busy","type":"server_error","code":"503","param":null}}`)), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamLimited, status: 503},
		{row: "S40 overloaded in one piece", setup: one(answers(200, `{"error":{"message":"busy","type":"overloaded_error"}}`)), outcome: sluice.Failed, reason: sluice.UpstreamLimited, status: 503},
		{row: "S40 overloaded after the input", setup: setup{places: []place{{dialect: wire.Anthropic, handler: tells("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "message_start", `{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"up","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`)}}}, ask: messages, outcome: sluice.Failed, reason: sluice.UpstreamLimited, status: 529},
		{row: "S40 refused", setup: one(tells("", `{"error":{"message":"too long","type":"BadRequestError","code":400,"param":null}}`)), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamRefused, status: 400},
		{row: "S24 after content", setup: one(talk{chunks: 3, end: "error"}), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamError, status: 200, source: estimated, output: true},
		{row: "S25", setup: setup{event: 4 << 10, places: []place{{handler: talk{chunks: 1, text: strings.Repeat("x", 8<<10)}}}}, ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamTooLarge, status: 502, source: estimated},
		{row: "S26 body", setup: one(answers(200, `{"id":`)), outcome: sluice.Failed, reason: sluice.UpstreamMalformed, status: 502, source: estimated, output: true},
		{row: "S26 no stream", setup: one(answers(200, `{}`)), ask: stream, outcome: sluice.Failed, reason: sluice.UpstreamMalformed, status: 502, source: estimated},
		{row: "S26 redirect", setup: one(http.RedirectHandler("http://b9/", http.StatusFound)), outcome: sluice.Failed, reason: sluice.UpstreamRedirect, status: 502},
		{row: "S27 free failure", setup: setup{places: []place{{handler: answers(503, `x`)}, spare}}, ask: stream, status: 200, source: reported, entries: 2},
		{row: "S27 charged failure", setup: setup{places: []place{{handler: newSilent(), timeouts: upstream.Timeouts{Headers: time.Second}}, spare}}, ask: stream, status: 200, source: estimated, entries: 2},
		{row: "S28", setup: setup{places: []place{{handler: answers(503, `x`)}, {handler: answers(500, `y`), fallback: true}}}, outcome: sluice.Failed, reason: sluice.UpstreamError, status: 502, entries: 2},

		{row: "S29", setup: one(talk{chunks: 200, gap: time.Second}), ask: stream, run: cutByShutdown, outcome: sluice.Failed, reason: sluice.ShuttingDown, status: 200, source: estimated, output: true},
		{row: "S30", setup: setup{hold: 5 * time.Second, places: []place{{handler: talk{chunks: 9, gap: 10 * time.Second}}}}, ask: stream, outcome: sluice.Expired, reason: sluice.HoldExpired, status: 200, source: estimated, output: true, late: true},
		{row: "S31", setup: setup{hold: 5 * time.Second, places: []place{{handler: talk{before: 10 * time.Second, chunks: 3, usage: usage(9, 3)}}}}, status: 200, source: reported, late: true},
		{row: "S33 in mid-stream", setup: setup{places: []place{{handler: slow}}, hooks: exchange.Hooks{FirstToken: func(engine.Grant, time.Duration) { panic("hook") }}}, ask: stream, outcome: sluice.Failed, reason: sluice.InternalError, status: 500, source: estimated, output: true},
		{
			row: "S38", setup: setup{places: []place{{dialect: wire.Anthropic, handler: answers(200, `{"input_tokens":7}`)}}},
			ask: ask{path: "/v1/messages/count_tokens", body: `{"model":"m","messages":[{"role":"user","content":"hi"}]}`}, status: 200,
		},
	}
}

// tells is a stream of one event of an error, after others: names and data by turns.
func tells(name, data string, before ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; i < len(before); i += 2 {
			w.Write(wire.AppendEvent(nil, before[i], []byte(before[i+1])))
		}
		w.Write(wire.AppendEvent(nil, name, []byte(data)))
	}
}

// cD5: each row of docs/settlement.md that has a request, with soft and with
// hard spend.
func TestSettlement(t *testing.T) {
	for _, e := range exits() {
		t.Run(e.row, func(t *testing.T) {
			for _, hard := range []bool{false, true} {
				if e.hard && !hard {
					continue
				}
				s := e.setup
				s.policy.HardSpend = hard
				inBubble(t, s, func(t *testing.T, r *rig) { e.check(t, r, hard) })
			}
		})
	}
}

func (e *exit) check(t *testing.T, r *rig, hard bool) {
	t.Helper()
	if e.broken {
		r.journal.broken = errors.New("disk full")
	}
	var g got
	switch a := e.ask; {
	case e.run != nil:
		g = e.run(t, r, e)
	case e.leave > 0:
		ctx, cancel := context.WithTimeout(t.Context(), e.leave)
		defer cancel()
		a.ctx = ctx
		r.do(a)
	default:
		g = r.do(a)
		if g.status != e.status {
			t.Errorf("the client got %d %s", g.status, g.body)
		}
	}
	rec := r.want(e.outcome, e.reason, e.status)
	f := rec.Final
	if rec.Usage.Source != e.source || f.Late != e.late || !f.Final {
		t.Errorf("usage is %v, want %v; late %v, want %v", rec.Usage.Source, e.source, f.Late, e.late)
	}
	if nothing := e.source == none; nothing != (rec.Cost == 0) || nothing != (rec.Usage.Total() == 0) {
		t.Errorf("took %+v for %v", rec.Usage, rec.Cost)
	}
	if e.source != reported && (rec.Usage.Output > 0) != e.output && e.entries == 0 {
		t.Errorf("charged an output of %d", rec.Usage.Output)
	}
	if impossible := e.row == "S3" || strings.HasPrefix(e.row, "S4 "); impossible != rec.Usage.Anomalous {
		t.Errorf("anomalous is %v", rec.Usage.Anomalous)
	}
	if !hard && f.CostHigh != f.Cost {
		t.Errorf("soft spend is charged %v for %v", f.CostHigh, f.Cost)
	}
	if may := f.Usage.Source == estimated || f.Usage.Source == counted; hard && may != (f.CostHigh > f.Cost) {
		t.Errorf("hard spend is charged %v for %v, usage %v", f.CostHigh, f.Cost, f.Usage.Source)
	}
	if n := len(r.journal.of(f.Request)); n != max(e.entries, 1) {
		t.Errorf("%d entries, want %d", n, max(e.entries, 1))
	}
	if f.Outcome == sluice.Rejected != (f.Attempt == 0) && e.row != "S6" {
		t.Errorf("%v with attempt %d", f.Outcome, f.Attempt)
	}
	if g.status >= 400 && g.header.Get("Sluice-Reason") != e.reason.String() {
		t.Errorf("sluice-reason is %q, want %q", g.header.Get("Sluice-Reason"), e.reason)
	}
}

func leaveAtTheEnd(t *testing.T, r *rig, e *exit) got {
	resp, err := r.client.Do(r.request(e.ask))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	resp.Body.Close()
	return got{}
}

func leaveTheQueue(t *testing.T, r *rig, _ *exit) got {
	var wg sync.WaitGroup
	wg.Go(func() { r.do(ask{stream: true}) })
	synctest.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r.do(ask{ctx: ctx})
	rec := r.last()
	if v := r.gate.Dump(1); v.Open != 1 {
		t.Errorf("%d open after it left, want 1", v.Open)
	}
	wg.Wait()
	r.only(rec)
	return got{}
}

func behindAnother(t *testing.T, r *rig, e *exit) got {
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := r.client.Do(r.request(ask{stream: true, ctx: ctx}))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	g := r.do(e.ask)
	wait, _ := time.ParseDuration(e.ask.header.Get("Sluice-Max-Wait"))
	if d := time.Since(start); d != wait {
		t.Errorf("shed after %v, want %v", d, wait)
	}
	rec := r.last()
	resp.Body.Close()
	cancel()
	r.only(rec)
	return g
}

func drained(t *testing.T, r *rig, e *exit) got {
	r.gate.Drain()
	return r.do(e.ask)
}

func readNothing(t *testing.T, r *rig, _ *exit) got {
	resp, err := r.client.Do(r.request(ask{stream: true}))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(DefaultWriteStall)
	r.last()
	resp.Body.Close()
	return got{}
}

func cutByShutdown(t *testing.T, r *rig, e *exit) (g got) {
	var wg sync.WaitGroup
	wg.Go(func() { g = r.do(e.ask) })
	time.Sleep(2500 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r.proxy.Shutdown(ctx)
	wg.Wait()
	return g
}

// S32: a second end changes nothing.
func TestSettlementS32(t *testing.T) {
	inBubble(t, one(talk{}), func(t *testing.T, r *rig) {
		g, err := r.gate.Admit(t.Context(), engine.Call{ID: "req_1", Principal: sluice.Principal{Tenant: "acme", Policy: r.policy}, Model: "m", Dialect: "openai", Work: sluice.Work{Input: 1}})
		if err != nil {
			t.Fatal(err)
		}
		a := engine.Actual{Usage: sluice.Usage{Input: 1, Source: sluice.UsageReported}}
		if err := g.Settle(a); err != nil {
			t.Errorf("first: %v", err)
		}
		if err := g.Settle(a); !errors.Is(err, engine.ErrSettled) {
			t.Errorf("second: %v", err)
		}
		g.Release(sluice.InternalError)
	})
}

// A provider whose lost attempts are charged in full charges the bound where
// nothing ever became known, and the estimate where something did.
func TestLostBound(t *testing.T) {
	for _, bound := range []bool{false, true} {
		s := timed(newSilent(), upstream.Timeouts{Headers: time.Second})
		s.places[0].lostBound = bound
		inBubble(t, s, func(t *testing.T, r *rig) {
			r.do(ask{stream: true, max: 777})
			if got := r.last().Usage.Output == 777; got != bound {
				t.Errorf("lost_charge bound %v: charged %+v", bound, r.last().Usage)
			}
		})
	}
}

// A tenant without hard spend is served while the journal cannot write.
func TestJournalDownWithSoftSpend(t *testing.T) {
	inBubble(t, one(talk{chunks: 1, usage: usage(9, 1)}), func(t *testing.T, r *rig) {
		r.journal.broken = fmt.Errorf("disk full")
		if g := r.do(ask{}); g.status != 200 {
			t.Errorf("got %d %s", g.status, g.body)
		}
	})
}
