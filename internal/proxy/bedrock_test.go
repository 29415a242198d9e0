package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// converseFaults are what Bedrock may do, and how a request then ends: streamed, and in
// one piece.
var converseFaults = []struct {
	fault       string
	want, whole sluice.Reason
}{
	{"ok", sluice.ReasonNone, sluice.ReasonNone},
	{"byte-by-byte!text=cjk!tokens=9", sluice.ReasonNone, sluice.ReasonNone},
	{"cached=50%!cache-write=10%", sluice.ReasonNone, sluice.ReasonNone},
	{"late=10s", sluice.ReasonNone, sluice.ReasonNone},
	{"usage=none", sluice.ReasonNone, sluice.ReasonNone},
	{"usage=twice", sluice.ReasonNone, sluice.ReasonNone},
	{"usage=huge", sluice.ReasonNone, sluice.ReasonNone},
	{"no-done", sluice.ReasonNone, sluice.ReasonNone},
	{"tier=flex", sluice.ReasonNone, sluice.ReasonNone},
	{"finish=guardrail_intervened", sluice.ReasonNone, sluice.ReasonNone},
	{"finish=malformed_tool_use", sluice.UpstreamError, sluice.UpstreamError},
	{"finish=strange", sluice.UpstreamMalformed, sluice.UpstreamMalformed},
	{"no-finish!no-done", sluice.UpstreamTruncated, sluice.ReasonNone},
	{"no-finish", sluice.UpstreamTruncated, sluice.ReasonNone}, // figures are no stop
	{"truncate=3", sluice.UpstreamTruncated, sluice.UpstreamMalformed},
	{"die-after=3", sluice.UpstreamTruncated, sluice.UpstreamTruncated},
	{"stall-after=3", sluice.UpstreamStalled, sluice.UpstreamTimeout},
	{"corrupt=0", sluice.UpstreamMalformed, sluice.ReasonNone},
	{"corrupt=4", sluice.UpstreamMalformed, sluice.ReasonNone},
	{"malformed=2", sluice.UpstreamMalformed, sluice.UpstreamMalformed},
	{"big-event=2000000", sluice.UpstreamTooLarge, sluice.ReasonNone},
	{"error-first!exception=throttling", sluice.UpstreamLimited, sluice.UpstreamError},
	{"error-event=3!exception=throttling", sluice.UpstreamLimited, sluice.UpstreamError},
	{"error-event=3!exception=modelstreamerror", sluice.UpstreamError, sluice.UpstreamError},
	{"error-event=3!exception=serviceunavailable", sluice.UpstreamError, sluice.UpstreamError},
	{"error-event=3!exception=validation", sluice.UpstreamRefused, sluice.UpstreamError},
	{"error-event=3", sluice.UpstreamError, sluice.UpstreamError},
	{"wrong-type", sluice.UpstreamMalformed, sluice.ReasonNone},
	{"429=7", sluice.UpstreamLimited, sluice.UpstreamLimited},
	{"status=429!exception=modelnotready", sluice.UpstreamLimited, sluice.UpstreamLimited},
	{"quota", sluice.UpstreamLimited, sluice.UpstreamLimited},
	{"status=400", sluice.UpstreamRefused, sluice.UpstreamRefused},
	{"status=403", sluice.UpstreamRefused, sluice.UpstreamRefused},
	{"status=408", sluice.UpstreamTimeout, sluice.UpstreamTimeout},
	{"status=424", sluice.UpstreamError, sluice.UpstreamError},
	{"status=503", sluice.UpstreamError, sluice.UpstreamError},
}

// Whatever Bedrock does, a client of either dialect sees a success exactly when it was
// one, and everything else as an error that it takes for no end.
func TestConverseFaults(t *testing.T) {
	for _, tt := range converseFaults {
		for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s stream=%v", tt.fault, d, stream), func(t *testing.T) {
					want := tt.whole
					if stream {
						want = tt.want
					}
					converseFaulty(t, d, stream, tt.fault, want)
				})
			}
		}
	}
}

func converseFaulty(t *testing.T, d wire.Dialect, stream bool, fault string, want sluice.Reason) {
	var p *fakellm.Server
	s := setup{event: 1 << 20, places: []place{{dialect: wire.Bedrock, runsOn: true, timeouts: upstream.Timeouts{Headers: 20 * time.Second, FirstToken: 60 * time.Second, Idle: 20 * time.Second}}}}
	inBubble(t, withProvider(s, &p), func(t *testing.T, r *rig) {
		defer p.Close()
		a := chat(stream, "[["+fault+"]] say something")
		if d == wire.Anthropic {
			a = claudeChat(stream, "[["+fault+"]] say something")
		}
		g := r.do(a)
		rec := r.last()
		if rec.Final.Reason != want {
			t.Errorf("ended %v %q (%v), want %q: %d %.300q", rec.Final.Outcome, rec.Final.Reason, rec.Err, want, g.status, g.body)
			return
		}
		marker := map[wire.Dialect]string{wire.OpenAI: "[DONE]", wire.Anthropic: "message_stop"}[d]
		switch {
		case want == sluice.ReasonNone && (g.status != 200 || g.err != nil || stream && !strings.Contains(g.body, marker)):
			t.Errorf("a success ended %d %v %.200q", g.status, g.err, g.body)
		case want != sluice.ReasonNone && g.status == 200:
			wantCut(t, g)
			fallthrough
		case want != sluice.ReasonNone:
			if stream && strings.Contains(g.body, marker) || !strings.Contains(g.body, `"error"`) {
				t.Errorf("a failure ends with %d %.300q", g.status, g.body[max(0, len(g.body)-300):])
			}
		}
		for _, e := range p.Account(fakellm.Filter{}).Served {
			if u := rec.Usage; want == sluice.ReasonNone && e.Reported && (u.InputTotal() != e.Input || u.OutputTotal() != e.Output || u.Source != sluice.UsageReported || u.CacheRead != e.Cached || u.CacheWrite != e.Written) {
				t.Errorf("settled %+v, the provider says %+v", u, e)
			}
		}
	})
}

// Tools, results and reasoning go to Bedrock and come back, streamed and not.
func TestConverseTools(t *testing.T) {
	var p *fakellm.Server
	inBubble(t, withProvider(setup{places: []place{{dialect: wire.Bedrock}}}, &p), func(t *testing.T, r *rig) {
		defer p.Close()
		tools := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]`
		for _, stream := range []bool{true, false} {
			g := r.do(ask{body: fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":400,"messages":[{"role":"user","content":"x"}],%s}`, stream, tools)})
			if g.status != 200 || strings.Count(g.body, `"id":"tooluse_`) != 2 || !strings.Contains(g.body, `"tool_calls"`) || !strings.Contains(g.body, `"model":"m"`) {
				t.Errorf("got %d %s", g.status, g.body)
			}
			g = r.do(ask{body: fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":400,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],%s}`, stream, tools)})
			if g.status != 200 || strings.Contains(g.body, "tool_calls") {
				t.Errorf("got %d %s", g.status, g.body)
			}
			g = r.do(ask{path: messagesAt, body: fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"x"}]}`, stream)})
			if g.status != 200 || !strings.Contains(g.body, "ZmFrZWxsbQ==") || !strings.Contains(g.body, `"thinking"`) || g.header.Get("Request-Id") == "" {
				t.Errorf("got %d %s", g.status, g.body)
			}
			r.want(sluice.Completed, sluice.ReasonNone, 200)
		}
	})
}

// What an image's URL asks for is refused before Bedrock is asked, by its place.
func TestConverseRefusesURLs(t *testing.T) {
	up := &tally{Handler: answers(200, "{}")}
	inBubble(t, setup{places: []place{{dialect: wire.Bedrock, handler: up}}}, func(t *testing.T, r *rig) {
		g := r.do(ask{body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://a/b.png"}}]}]}`})
		if g.status != 400 || !strings.Contains(g.body, `"param":"messages[0].content[1].image_url.url"`) || !strings.Contains(g.body, "data: URL") || up.n.Load() != 0 {
			t.Errorf("got %d %s", g.status, g.body)
		}
	})
}

// A client that leaves is charged for what Bedrock goes on to generate.
func TestConverseDoesNotStop(t *testing.T) {
	var p *fakellm.Server
	inBubble(t, withProvider(setup{places: []place{{dialect: wire.Bedrock, runsOn: true}}}, &p), func(t *testing.T, r *rig) {
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		a := chat(true, "[[tokens=900]] say something")
		a.ctx = ctx
		r.do(a)
		time.Sleep(time.Minute)
		rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
		if seen := p.Account(fakellm.Filter{}).Total.Output; rec.Usage.OutputTotal() <= seen {
			t.Errorf("settled %+v, and %d tokens had been written when it left", rec.Usage, seen)
		}
	})
}
