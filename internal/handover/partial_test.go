package handover_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/fakellm"
	"sluice/internal/handover"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

// books checks that a job's lines are billed as what they cost, once, of which so many at
// the price of batches.
func (h *house) books(j jobs.Job, lines, batched int, desks ...*desk) {
	h.t.Helper()
	if n, cost := h.billed(); n != int64(lines) || cost != j.Cost || cost == 0 {
		h.t.Errorf("billed are %d requests and %d, want %d and %d", n, cost, lines, j.Cost)
	}
	got := 0
	for _, d := range desks {
		for _, e := range d.entries {
			if e.Usage.ServiceTier == "batch" && e.Cost > 0 && e.Status == 200 {
				got++
			}
			if e.Late {
				h.t.Errorf("%s was settled after its hold had ended", e.Request)
			}
		}
		if d.last.Open+d.last.Expired > 0 {
			h.t.Errorf("%d requests and %d that have expired hold something when all is over", d.last.Open, d.last.Expired)
		}
	}
	if got != batched {
		h.t.Errorf("%d lines are billed as batch, want %d", got, batched)
	}
}

// TestPartialResults has each line end once, and be billed once, whatever the provider makes
// of the batch's results; what has none, or nothing that is an answer, is run by itself.
func TestPartialResults(t *testing.T) {
	odd := func(r []string) []string {
		for i, body := range []string{`"text"`, `[]`} {
			_, custom, _ := strings.Cut(r[i], `"custom_id":`)
			custom, _, _ = strings.Cut(custom, `,`)
			r[i] = `{"custom_id":` + strings.TrimRight(custom, "}") + `,"response":{"status_code":200,"body":` + body + `}}`
		}
		r[2] = strings.Replace(r[2], `-3"`, `-77"`, 1) // of no line
		r[3] = strings.Replace(r[3], `-4"`, `-04"`, 1)
		r[4] = `{"custom_id":"line-5","response":{"status_code":200,"body":{}},"result":{"type":"succeeded","message":{}}}`
		r[5], r[6] = r[5][:30], "so"
		r = slices.Delete(r, 7, 9)
		slices.Reverse(r)
		return append([]string{"", "  "}, append(r, r...)...)
	}
	for _, tt := range []struct {
		name   string
		d      wire.Dialect
		done   int // by the provider
		mangle func(results []string) []string
	}{
		{"odd", wire.OpenAI, 11, odd},
		{"odd", wire.Anthropic, 11, odd},
		{"none", wire.OpenAI, 0, func([]string) []string { return nil }},
	} {
		t.Run(tt.name+"/"+string(tt.d), func(t *testing.T) {
			at(t, tt.d, "", func(t *testing.T, h *house) {
				h.mangle(tt.mangle)
				p := h.start()
				j := h.ended(p.submit(20, 24*time.Hour), time.Hour)
				p.stop(false)
				if j.Counts.Succeeded != 20 || p.how[handover.Made] != 1 || p.how[handover.Ended] != 1 || p.done != [2]int{20 - tt.done, tt.done} {
					t.Errorf("got %+v, batches %v, lines %v", j.Counts, p.how, p.done)
				}
				h.books(j, 20, tt.done, p)
			})
		})
	}
}

// TestResultsLong takes results whatever their length is in all, but for a line that is
// beyond its bound, and what is behind the most that is read: that is run by itself at once.
func TestResultsLong(t *testing.T) {
	for name, tt := range map[string]struct {
		long int // bytes of the first result
		most int64
		done int
	}{"a line": {33 << 20, 0, 19}, "all": {4 << 10, 42 << 10, 11}} {
		t.Run(name, func(t *testing.T) {
			at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
				h.most = tt.most
				h.mangle(func(r []string) []string {
					for i := range r {
						pad := 4 << 10
						if i == 0 {
							pad = tt.long
						}
						r[i] = r[i][:1] + strings.Repeat(" ", pad-len(r[i])) + r[i][1:]
					}
					return r
				})
				p := h.start()
				j := h.ended(p.submit(20, 24*time.Hour), 5*time.Minute)
				p.stop(false)
				if j.Counts.Succeeded != 20 || p.how[handover.Ended] != 1 || p.done != [2]int{20 - tt.done, tt.done} {
					t.Errorf("got %+v, batches %v, lines %v, want %d done", j.Counts, p.how, p.done, tt.done)
				}
				if n := h.times("GET files content"); n != 1 {
					t.Errorf("the results were read %d times", n)
				}
				h.books(j, 20, tt.done, p)
			})
		})
	}
}

// TestLineErrors has lines that the provider could not serve run by themselves, and ones
// that no provider would serve fail as they do by themselves.
func TestLineErrors(t *testing.T) {
	for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
		t.Run(string(d), func(t *testing.T) {
			at(t, d, "", func(t *testing.T, h *house) {
				p := h.start()
				j := h.ended(p.submit(20, 24*time.Hour), time.Hour)
				p.stop(false)
				if j.Counts.Succeeded != 18 || j.Counts.Failed != 2 || p.done != [2]int{4, 16} {
					t.Errorf("got %+v, lines %v, want 18 and 2", j.Counts, p.done)
				}
				said := map[string]int{}
				for _, e := range p.entries {
					for _, status := range []string{"500", "503", "529", "429", "401"} {
						if d := string(e.Detail); strings.Contains(d, `"message":"the provider's batch `) && strings.Contains(d, "batch_") && strings.Contains(d, `(ended) answered the line with status `+status) {
							said[status]++
						}
					}
				}
				if len(said) < 3 {
					t.Errorf("the ledger says %v of the lines that were taken back", said)
				}
				if shares, err := h.db.HandOvers(t.Context(), string(j.ID)); err != nil || len(shares) != 1 || shares[0].Back != p.done[0] {
					t.Errorf("the store says %+v, %v; counted are %v", shares, err, p.done)
				}
				h.books(j, 20, 14, p)
			}, fakellm.Rule{Fault: "status=500", Count: 1}, fakellm.Rule{Fault: "status=503", Count: 1}, fakellm.Rule{Fault: "status=429", Count: 1},
				fakellm.Rule{Fault: "status=401", Count: 1}, fakellm.Rule{Fault: "status=400", After: 5, Count: 2})
		})
	}
}

// TestResultsGone has lines run by themselves whose results the provider has no more.
func TestResultsGone(t *testing.T) {
	at(t, wire.Anthropic, "", func(t *testing.T, h *house) {
		h.around = without("/results")
		p := h.start()
		j := h.ended(p.submit(20, 24*time.Hour), time.Hour)
		p.stop(false)
		if j.Counts.Succeeded != 20 || p.how[handover.Lost] != 1 {
			t.Errorf("got %+v, batches %v, lines %v", j.Counts, p.how, p.done)
		}
		if n := h.times("GET messages batches results"); n < 3 {
			t.Errorf("they were asked for %d times before they were given up", n)
		}
		h.books(j, 20, 0, p)
	})
}

// TestGoneForAMoment has a provider that says twice that it does not know a batch, which it
// then knows: it is not given up.
func TestGoneForAMoment(t *testing.T) {
	at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
		asked := 0
		h.around = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/batches/") {
					if asked++; asked <= 2 {
						http.NotFound(w, r)
						return
					}
				}
				next.ServeHTTP(w, r)
			})
		}
		p := h.start()
		j := h.ended(p.submit(20, 24*time.Hour), 5*time.Minute)
		p.stop(false)
		if j.Counts.Succeeded != 20 || p.how[handover.Lost] != 0 || p.how[handover.Ended] != 1 {
			t.Errorf("got %+v, batches %v, lines %v", j.Counts, p.how, p.done)
		}
		h.books(j, 20, 20, p)
	})
}

// TestCancelled cancels a job while a provider has its lines: the provider's batch is
// cancelled at once, what is done of it is the lines' answer, and the rest costs nothing.
func TestCancelled(t *testing.T) {
	for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
		t.Run(string(d), func(t *testing.T) {
			at(t, d, "hang-first!die-after=7", func(t *testing.T, h *house) {
				p := h.start()
				id := p.submit(20, 24*time.Hour)
				time.Sleep(20 * time.Second)
				if _, err := p.Cancel(t.Context(), "acme", id); err != nil {
					t.Fatal(err)
				}
				j := h.ended(id, time.Minute)
				p.stop(false)
				if j.State != jobs.Cancelled || j.Counts.Succeeded != 7 || j.Counts.Cancelled != 13 || p.how[handover.Cancelled] != 1 {
					t.Errorf("it is %s with %+v, batches %v, lines %v", j.State, j.Counts, p.how, p.done)
				}
				h.books(j, 7, 7, p)
			})
		})
	}
}

// TestCancelledUnheard has the job end all the same where the provider does not end the
// batch: what its lines may have cost is billed.
func TestCancelledUnheard(t *testing.T) {
	at(t, wire.OpenAI, "hang-first!die-after=3", func(t *testing.T, h *house) {
		h.around = without("/cancel")
		p := h.start()
		id := p.submit(6, 24*time.Hour)
		time.Sleep(20 * time.Second)
		if _, err := p.Cancel(t.Context(), "acme", id); err != nil {
			t.Fatal(err)
		}
		j := h.ended(id, 15*time.Minute)
		p.stop(false)
		if j.State != jobs.Cancelled || j.Counts.Cancelled != 6 || p.how[handover.Lost] != 1 {
			t.Errorf("it is %s with %+v, batches %v, lines %v", j.State, j.Counts, p.how, p.done)
		}
		h.books(j, 6, 0, p)
	})
}

// TestExpired ends what the provider has not done before the job's time is over: it is
// cancelled there, and run by itself.
func TestExpired(t *testing.T) {
	at(t, wire.OpenAI, "hang-first!die-after=7", func(t *testing.T, h *house) {
		h.target.HandOver.Window, h.target.HandOver.Slack = time.Minute, 4*time.Minute
		p := h.start()
		id := p.submit(20, 6*time.Minute)
		time.Sleep(time.Minute + 50*time.Second)
		synctest.Wait()
		if p.done != [2]int{} {
			t.Errorf("lines %v came back before their time", p.done)
		}
		j := h.ended(id, 4*time.Minute)
		p.stop(false)
		if j.State != jobs.Completed || j.Counts.Succeeded != 20 || p.how[handover.Cancelled] != 1 || p.done != [2]int{13, 7} {
			t.Errorf("it is %s with %+v, batches %v, lines %v", j.State, j.Counts, p.how, p.done)
		}
		h.books(j, 20, 7, p)
	})
}
