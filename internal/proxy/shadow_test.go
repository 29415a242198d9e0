package proxy

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
)

// Limits in shadow refuse nothing and clamp nothing, count what is used, and say what
// they would have done; limits that are off count nothing.
func TestLimitsInShadow(t *testing.T) {
	policy := sluice.Policy{Mode: sluice.Shadow, HardSpend: true}
	policy.Limits[sluice.ScopeTenant] = []sluice.Limit{
		{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 3},
		{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 2_500_000}, // one of 1000 output tokens, and not another
	}
	inBubble(t, setup{places: []place{{handler: talk{before: time.Second, chunks: 1, usage: usage(10, 900)}}}, policy: policy}, func(t *testing.T, r *rig) {
		ask := func(want sluice.Reason) Record {
			t.Helper()
			g := r.do(askOf(""))
			if g.status != 200 || g.header.Get("sluice-dropped") != "" || g.header.Get("x-ratelimit-limit-requests") != "" {
				t.Errorf("got %d, dropped %q, headers %v", g.status, g.header.Get("sluice-dropped"), g.header)
			}
			rec := r.last()
			switch {
			case want == sluice.ReasonNone && rec.Would != nil:
				t.Errorf("would have been refused: %v", rec.Would)
			case want != sluice.ReasonNone && (rec.Would == nil || rec.Would.Reason != want):
				t.Errorf("got %v, want it to have been refused with %v", rec.Would, want)
			}
			return rec
		}
		ask(sluice.ReasonNone)
		rec := ask(sluice.BudgetSpent)
		if d := string(rec.Final.Detail); !strings.Contains(d, `"shadow_reason":"budget_spent","shadow_refusal":{"scope":"tenant","id":"acme","dimension":"spend"`) {
			t.Errorf("the ledger does not say so: %s", d)
		}
		r.change(func(p *sluice.Policy) { p.Mode = sluice.Enforce }) // what was used in shadow counts
		if g := r.do(askOf("")); g.status != 429 || g.header.Get("sluice-reason") != "budget_spent" {
			t.Errorf("enforced: got %d %q", g.status, g.header.Get("sluice-reason"))
		}
		r.change(func(p *sluice.Policy) { p.Mode = sluice.Off })
		for range 5 {
			if rec := ask(sluice.ReasonNone); strings.Contains(string(rec.Final.Detail), "shadow") {
				t.Errorf("off: %s", rec.Final.Detail)
			}
		}
		r.change(func(p *sluice.Policy) {
			p.Mode = sluice.Shadow
			p.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}}
		})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { r.do(askOf("")) })
		}
		wg.Wait()
		synctest.Wait() // a record comes after the answer
		held := 0
		for _, rec := range r.records[len(r.records)-3:] {
			if rec.Would != nil && rec.Would.Reason == sluice.ConcurrencyLimited {
				held++
			}
		}
		if held != 2 {
			t.Errorf("%d of 3 requests at a time would have waited for the one place, want 2", held)
		}
	})
}

func askOf(body string) ask { return ask{body: body} }
