package handover_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/handover"
	"sluice/internal/wire"
)

// priced is what usage costs at prices per million tokens.
func priced(u sluice.Usage, in, out int64) sluice.Nano {
	return sluice.Nano((int64(u.InputTotal())*in + int64(u.OutputTotal())*out) * 1000)
}

// TestHandOver has all lines of a batch answered by the provider's batch API, at its price.
func TestHandOver(t *testing.T) {
	for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
		t.Run(string(d), func(t *testing.T) {
			at(t, d, "", func(t *testing.T, h *house) {
				p := h.start()
				j := h.ended(p.submit(20, 24*time.Hour), time.Hour)
				p.stop(false)
				if j.Counts.Succeeded != 20 || p.how[handover.Made] != 1 || p.how[handover.Ended] != 1 || p.done != [2]int{0, 20} {
					t.Errorf("got %+v, batches %v, lines %v, want 20 of one batch", j.Counts, p.how, p.done)
				}
				if want := priced(j.Usage, 1, 2); j.Cost != want || want == 0 {
					t.Errorf("it cost %d, want %d: the price of batches", j.Cost, want)
				}
				if n, cost := h.billed(); n != 20 || cost != j.Cost {
					t.Errorf("billed are %d requests and %d, want 20 and %d", n, cost, j.Cost)
				}
				for _, e := range p.entries {
					if e.Usage.ServiceTier != "batch" || !e.Final {
						t.Errorf("the entry of %s says tier %q, final %v", e.Request, e.Usage.ServiceTier, e.Final)
					}
				}
			})
		})
	}
}

// TestHandOverRefused has lines run by themselves that the provider did not run: it refused
// the batch, or let it expire in the middle.
func TestHandOverRefused(t *testing.T) {
	for _, tt := range []struct {
		name, fault string
		done        int
		how         string
	}{
		{"refused", "status=400", 0, handover.Refused},
		{"expired", "die-after=7", 7, handover.Expired},
	} {
		for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
			t.Run(tt.name+"/"+string(d), func(t *testing.T) {
				at(t, d, tt.fault, func(t *testing.T, h *house) {
					p := h.start()
					h.target.HandOver.Window, h.target.HandOver.Slack = time.Minute, 3*time.Minute
					j := h.ended(p.submit(20, 5*time.Minute), 5*time.Minute)
					p.stop(false)
					how := tt.how
					if how == handover.Expired && d == wire.Anthropic { // it says so of the lines alone
						how = handover.Ended
					}
					if j.Counts.Succeeded != 20 || p.how[how] != 1 || p.done != [2]int{20 - tt.done, tt.done} {
						t.Errorf("got %+v, batches %v, lines %v", j.Counts, p.how, p.done)
					}
					if n, cost := h.billed(); cost != j.Cost || cost == 0 {
						t.Errorf("billed are %d requests and %d, want %d", n, cost, j.Cost)
					}
					tiers := 0
					for _, e := range p.entries {
						if e.Cost > 0 && e.Usage.ServiceTier == "batch" {
							tiers++
						}
					}
					if tiers != tt.done {
						t.Errorf("%d lines are billed as batch, want %d", tiers, tt.done)
					}
				})
			})
		}
	}
}

// TestHandOverRestart ends the process while the provider's batch runs: the next one goes
// on asking for it, and nothing is sent or billed twice.
func TestHandOverRestart(t *testing.T) {
	for name, kill := range map[string]bool{"killed": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
				p := h.start()
				id := p.submit(20, 24*time.Hour)
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if p.how[handover.Made] != 1 || p.done != [2]int{} {
					t.Fatalf("batches %v, lines %v, want one that runs", p.how, p.done)
				}
				p.stop(kill)
				q := h.start()
				j := h.ended(id, time.Hour)
				q.stop(false)
				if j.Counts.Succeeded != 20 || q.how[handover.Made] != 0 || q.done != [2]int{0, 20} {
					t.Errorf("got %+v, batches %v, lines %v, want 20 of the batch that was there", j.Counts, q.how, q.done)
				}
				if _, cost := h.billed(); cost != priced(j.Usage, 1, 2) || cost != j.Cost || cost == 0 {
					t.Errorf("billed are %d, want %d", cost, priced(j.Usage, 1, 2))
				}
			})
		})
	}
}

// TestNotHandedOver has few lines, and such as are due soon, run by themselves.
func TestNotHandedOver(t *testing.T) {
	for name, tt := range map[string]struct {
		lines  int
		window time.Duration
	}{"few": {4, 24 * time.Hour}, "soon": {20, 6*time.Hour + 59*time.Minute}} {
		t.Run(name, func(t *testing.T) {
			at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
				p := h.start()
				j := h.ended(p.submit(tt.lines, tt.window), time.Hour)
				p.stop(false)
				if j.Counts.Succeeded != tt.lines || len(p.how) != 0 {
					t.Errorf("got %+v, batches %v, want none", j.Counts, p.how)
				}
			})
		})
	}
}
