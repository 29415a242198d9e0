package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// withProvider makes a scripted provider, in the bubble as its clocks must be,
// the handler of the only place.
func withProvider(s setup, p **fakellm.Server) setup {
	s.places = append([]place(nil), s.places...)
	s.before = func(t *testing.T, s *setup) {
		made, err := fakellm.New(fakellm.Options{Models: []fakellm.Model{{Name: "up", Ratio: 1100, Output: 60}}, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		*p, s.places[0].handler = made, made
	}
	return s
}

func chat(stream bool, text string) ask {
	return ask{body: fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":4000,"messages":[{"role":"user","content":%q}]}`, stream, text)}
}

func claudeChat(stream bool, text string) ask {
	a := chat(stream, text)
	a.path = "/v1/messages"
	return a
}

// anthropicDiffers are the streamed faults that mean something else there: its
// scripted error is an overload.
var anthropicDiffers = map[string]sluice.Reason{
	"error-event=3": sluice.UpstreamLimited,
	"error-first":   sluice.UpstreamLimited,
}

// Whatever the provider does, an answer ends as a success exactly when it was
// one, and everything else in an error that no client takes for an end.
func TestProviderFaults(t *testing.T) {
	none := sluice.ReasonNone
	for _, tt := range []struct {
		fault string
		want  sluice.Reason // streamed
		whole sluice.Reason // in one piece
	}{
		{"ok", none, none},
		{"crlf!comments!no-space!text=emoji", none, none},
		{"byte-by-byte!text=cjk!tokens=9", none, none},
		{"bom", none, none},
		{"bad-utf8", none, none},
		{"usage=none", none, none},
		{"usage=twice", none, none},
		{"usage=every", none, none},
		{"usage=huge", none, none},
		{"usage=negative", none, none},
		{"no-done", none, none},
		{"trailing!never-close", none, none},
		{"blank!drip", none, none},
		{"early", none, none},
		{"model=other!tier=priority", none, none},
		{"no-finish!no-done", sluice.UpstreamTruncated, none},
		{"die-after=3", sluice.UpstreamTruncated, sluice.UpstreamTruncated},
		{"truncate=3", sluice.UpstreamTruncated, sluice.UpstreamMalformed},
		{"stall-after=3", sluice.UpstreamStalled, sluice.UpstreamTimeout},
		{"error-event=3", sluice.UpstreamError, sluice.UpstreamError},
		{"error-first", sluice.UpstreamError, sluice.UpstreamError},
		{"malformed=2", sluice.UpstreamMalformed, sluice.UpstreamMalformed},
		{"big-event=2000000", sluice.UpstreamTooLarge, none},
		{"gzip", sluice.UpstreamMalformed, sluice.UpstreamMalformed},
		{"wrong-type", sluice.UpstreamMalformed, none},
		{"redirect", sluice.UpstreamRedirect, sluice.UpstreamRedirect},
		{"reset", sluice.UpstreamConnect, sluice.UpstreamConnect},
		{"hang-headers", sluice.UpstreamTimeout, sluice.UpstreamTimeout},
		{"hang-first", sluice.UpstreamTimeout, sluice.UpstreamTimeout},
		{"status=503", sluice.UpstreamError, sluice.UpstreamError},
		{"529", sluice.UpstreamLimited, sluice.UpstreamLimited},
		{"429=7", sluice.UpstreamLimited, sluice.UpstreamLimited},
		{"quota", sluice.UpstreamLimited, sluice.UpstreamLimited},
		{"status=400", sluice.UpstreamRefused, sluice.UpstreamRefused},
	} {
		for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s stream=%v", tt.fault, d, stream), func(t *testing.T) {
					want := tt.whole
					if stream {
						want = tt.want
					}
					if w, ok := anthropicDiffers[tt.fault]; ok && stream && d == wire.Anthropic {
						want = w
					}
					faulty(t, d, stream, tt.fault, want)
				})
			}
		}
	}
}

func faulty(t *testing.T, d wire.Dialect, stream bool, fault string, want sluice.Reason) {
	var p *fakellm.Server
	s := setup{event: 1 << 20, places: []place{{dialect: d, timeouts: upstream.Timeouts{Headers: 20 * time.Second, FirstToken: 60 * time.Second, Idle: 20 * time.Second}}}}
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
			if strings.Contains(g.body, marker) || !strings.Contains(g.body, `"error"`) {
				t.Errorf("a failure ends with %.300q", g.body[max(0, len(g.body)-300):])
			}
		case want != sluice.ReasonNone && !strings.Contains(g.body, `"error"`):
			t.Errorf("a failure says %d %.300q", g.status, g.body)
		}
	})
}

// cD4: what the ledger says of a mix with aborts is what the provider says.
func TestCD4LedgerAgreesWithTheProvider(t *testing.T) {
	var p *fakellm.Server
	inBubble(t, withProvider(setup{places: []place{{}}}, &p), func(t *testing.T, r *rig) {
		defer p.Close()
		rnd := rand.New(rand.NewPCG(1, 2))
		words := strings.Fields("the quick brown fox jumps over a lazy dog while rain falls on old stone bridges and nobody counts tokens")
		var wg sync.WaitGroup
		for i := range 400 {
			var text strings.Builder
			for range 20 + rnd.IntN(200) {
				text.WriteString(words[rnd.IntN(len(words))] + " ")
			}
			abort := time.Duration(0)
			if i%4 == 3 {
				abort = time.Duration(100+rnd.IntN(500)) * time.Millisecond
			}
			stream := abort > 0 || i%2 == 0
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if abort > 0 {
					time.AfterFunc(abort, cancel)
				}
				a := chat(stream, text.String())
				a.ctx = ctx
				r.do(a)
			})
			if i%20 == 19 {
				wg.Wait()
			}
		}
		wg.Wait()
		time.Sleep(time.Minute)
		var in, out, repIn, repOut sluice.Tokens
		for _, e := range r.journal.entries {
			in += e.Usage.InputTotal()
			out += e.Usage.OutputTotal()
			if e.Usage.Source == sluice.UsageReported {
				repIn += e.Usage.InputTotal()
				repOut += e.Usage.OutputTotal()
			}
		}
		total := p.Account(fakellm.Filter{}).Total
		if total.Requests < 350 || total.Cancelled < 50 { // some left while they waited
			t.Errorf("the provider saw %+v", total)
		}
		if repIn != total.ReportedInput || repOut != total.ReportedOutput {
			t.Errorf("reported: ledger %d in, %d out; provider %d, %d", repIn, repOut, total.ReportedInput, total.ReportedOutput)
		}
		for what, pair := range map[string][2]sluice.Tokens{"input": {in, total.Input}, "output": {out, total.Output}} {
			off := 100 * float64(pair[0]-pair[1]) / float64(pair[1])
			t.Logf("%s: ledger %d, provider %d: %+.2f %%", what, pair[0], pair[1], off)
			if off > 2 || off < -2 {
				t.Errorf("%s is %+.2f %% off", what, off)
			}
		}
	})
}
