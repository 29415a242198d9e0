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
	"sluice/internal/wire"
)

// The estimates of calls that were cut are within 2 % of the provider's count by
// themselves, once there was something to learn from: before an engine that tells
// usage in every event, before a provider that tells it at the end, and in the
// other dialect. (cD4 over real connections is in test/acceptance, where a busy
// machine blurs it.)
func TestCutCallsAreChargedAsTheProviderDoes(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   place
		ask  func(stream bool, text string) ask
	}{
		{"engine", place{engine: "vllm"}, chat},
		{"provider", place{}, chat},
		{"anthropic", place{dialect: wire.Anthropic}, claudeChat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p *fakellm.Server
			inBubble(t, withProvider(setup{places: []place{tt.at}}, &p), func(t *testing.T, r *rig) {
				defer p.Close()
				const warm, calls = 50, 240
				draw := rand.New(rand.NewPCG(1, 2))
				r.cutSome(t, calls, func(i int) (a ask, leave time.Duration) {
					a = tt.ask(i%2 == 0, prose(draw, 20+draw.IntN(200))+fmt.Sprintf("[[tokens=%d]]", 60+draw.IntN(60)))
					if i >= warm && i%3 > 0 {
						leave = time.Duration(150+draw.IntN(300)) * time.Millisecond
					}
					return a, leave
				})
				r.judge(t, p)
			})
		})
	}
}

// prose is n common words.
func prose(draw *rand.Rand, n int) string {
	words := strings.Fields("the quick brown fox jumps over a lazy dog while rain falls on old stone bridges and nobody counts tokens")
	var text strings.Builder
	for range n {
		text.WriteString(words[draw.IntN(len(words))] + " ")
	}
	return text.String()
}

// cutSome makes n calls, ten at a time, and leaves those that have a time to.
func (r *rig) cutSome(t *testing.T, n int, next func(i int) (ask, time.Duration)) {
	var wg sync.WaitGroup
	for i := range n {
		a, leave := next(i)
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if leave > 0 {
				time.AfterFunc(leave, cancel)
			}
			a.ctx = ctx
			r.do(a)
		})
		if i%10 == 9 {
			wg.Wait()
		}
	}
	wg.Wait()
	time.Sleep(time.Minute)
}

// judge compares what was reported, and what was not, with the provider's book.
func (r *rig) judge(t *testing.T, p *fakellm.Server) {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	var reportedIn, reportedOut, in, out, wantIn, wantOut sluice.Tokens
	for _, e := range r.journal.entries {
		if e.Usage.Source == sluice.UsageReported {
			reportedIn += e.Usage.InputTotal()
			reportedOut += e.Usage.OutputTotal()
			continue
		}
		in += e.Usage.InputTotal()
		out += e.Usage.OutputTotal()
	}
	account := p.Account(fakellm.Filter{})
	if reportedIn != account.Total.ReportedInput || reportedOut != account.Total.ReportedOutput {
		t.Errorf("reported: ledger %d in, %d out; provider %d, %d", reportedIn, reportedOut, account.Total.ReportedInput, account.Total.ReportedOutput)
	}
	cut := 0
	for _, s := range account.Served {
		if s.Billed && !s.Reported {
			cut++
			wantIn += s.Input
			wantOut += s.Output
		}
	}
	if cut < 80 {
		t.Errorf("%d calls were cut", cut)
	}
	for what, pair := range map[string][2]sluice.Tokens{"input": {in, wantIn}, "output": {out, wantOut}} {
		off := 100 * float64(pair[0]-pair[1]) / float64(pair[1])
		t.Logf("%s of %d cut calls: ledger %d, provider %d: %+.2f %%", what, cut, pair[0], pair[1], off)
		if off > 2 || off < -2 {
			t.Errorf("%s is %+.2f %% off", what, off)
		}
	}
}
