package proxy

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/fakellm"
	"sluice/internal/ledger"
)

// final is the entry that closes the request of an answer, and how many entries it has.
func (r *shelves) final(g got) (last ledger.Entry, n int) {
	synctest.Wait()
	for _, e := range r.journal.of(sluice.RequestID(g.header.Get("Sluice-Request-Id"))) {
		if n++; e.Final {
			last = e
		}
	}
	return last, n
}

// wantSettled checks that a response was settled once, as what the provider billed.
func (r *shelves) wantSettled(g got, o sluice.Outcome, reason sluice.Reason, result string) ledger.Entry {
	r.t.Helper()
	e, n := r.final(g)
	if n != 1 || e.Outcome != o || e.Reason != reason || !strings.Contains(string(e.Detail), `"background":{"result":"`+result+`"`) {
		r.t.Errorf("%d entries, the last %v %v %s", n, e.Outcome, e.Reason, e.Detail)
	}
	return e
}

// open is how many requests hold anything.
func (r *shelves) open() int { return int(r.gate.Dump(10).Open) }

const behind = `,"background":true`

// A response that is made in the background is settled once, as what it took: by the
// gateway that asks, or by the first fetch that sees its end, before that is answered.
func TestBackgroundIsSettledOnce(t *testing.T) {
	for _, who := range []string{"gateway", "client", "stream"} {
		t.Run(who, func(t *testing.T) {
			var told []string
			hooks := exchange.Hooks{Background: func(_ sluice.ProviderID, result string, _ time.Duration) { told = append(told, result) }}
			inShelves(t, setup{hooks: hooks}, func(t *testing.T, r *shelves) {
				r.fake.Play("up", fakellm.Rule{Fault: "first=20s!gap=300ms"})
				id, g := r.make(behind)
				if !strings.Contains(g.body, `"status":"queued"`) || !strings.Contains(g.body, `"background":true`) {
					t.Errorf("answered %s", g.body)
				}
				rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
				if rec.Usage.Source != sluice.UsageEstimated || r.open() != 1 {
					t.Errorf("recorded %+v, %d open", rec.Usage, r.open())
				}
				if _, n := r.final(g); n != 0 {
					t.Errorf("%d entries before its end", n)
				}
				if q := r.get(id); !strings.Contains(q.body, `"status":"queued"`) || r.open() != 1 {
					t.Errorf("fetched %s", q.body)
				}
				switch who {
				case "gateway":
					time.Sleep(30 * time.Second)
				case "client":
					time.Sleep(20*time.Second + 2100*time.Millisecond)
					if q := r.get(id); !strings.Contains(q.body, `"status":"completed"`) || r.open() != 0 {
						t.Errorf("%d open when the client has the end: %s", r.open(), q.body)
					}
				case "stream":
					if q := r.get(id + "?stream=true&starting_after=1"); q.err != nil || !strings.Contains(q.body, "event: response.completed") {
						t.Errorf("streamed %v %s", q.err, q.body)
					}
					synctest.Wait()
				}
				e := r.wantSettled(g, sluice.Completed, sluice.ReasonNone, "ended")
				if e.Usage.Source != sluice.UsageReported || e.Usage.OutputTotal() != 7 || e.Cost != sluice.Nano(e.Usage.Input)*1000+7*2000 || e.Status != 200 || e.ServedModel != "up" {
					t.Errorf("settled %+v, cost %v, status %d", e.Usage, e.Cost, e.Status)
				}
				time.Sleep(time.Hour)
				for range 3 {
					r.get(id)
				}
				if _, n := r.final(g); n != 1 || len(told) != 1 || r.x.Background() != 0 || r.open() != 0 {
					t.Errorf("%d entries, told %v, %d in the background, %d open", n, told, r.x.Background(), r.open())
				}
			})
		})
	}
}

// However a response that is made in the background ends, it is settled once.
func TestBackgroundEnds(t *testing.T) {
	for _, tt := range []struct {
		name, fault string
		do          func(r *shelves, id string)
		outcome     sluice.Outcome
		reason      sluice.Reason
		result      string
		source      sluice.UsageSource
	}{
		{"fails", "error-event=3", nil, sluice.Failed, sluice.UpstreamError, "ended", sluice.UsageEstimated},
		{"is cancelled", "first=1h", func(r *shelves, id string) {
			if g := r.do(ask{path: responsesAt + "/" + id + "/cancel"}); g.status != 200 || !strings.Contains(g.body, `"status":"cancelled"`) || r.open() != 0 {
				r.t.Errorf("cancel: %d %s, %d open", g.status, g.body, r.open())
			}
		}, sluice.Cancelled, sluice.ClientGone, "stopped", sluice.UsageEstimated},
		{"is deleted", "first=1h", func(r *shelves, id string) {
			if g := r.do(ask{method: "DELETE", path: responsesAt + "/" + id}); g.status != 200 {
				r.t.Errorf("delete: %d %s", g.status, g.body)
			}
		}, sluice.Failed, sluice.UpstreamRefused, "gone", sluice.UsageEstimated},
		{"takes too long", "first=20h", nil, sluice.Cancelled, sluice.ClientGone, "time", sluice.UsageEstimated},
		{"is there after failures", "first=1m", func(r *shelves, _ string) { r.fake.FailStored(7) }, sluice.Completed, sluice.ReasonNone, "ended", sluice.UsageReported},
		{"the gateway stops", "first=1h", func(r *shelves, _ string) { r.x.Close() }, sluice.Cancelled, sluice.ShuttingDown, "shutdown", sluice.UsageEstimated},
		{"the gateway stops at its end", "first=1ms", func(r *shelves, _ string) { time.Sleep(900 * time.Millisecond); r.x.Close() }, sluice.Completed, sluice.ReasonNone, "ended", sluice.UsageReported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShelves(t, setup{}, func(t *testing.T, r *shelves) {
				r.fake.Play("up", fakellm.Rule{Fault: tt.fault})
				id, g := r.make(behind)
				time.Sleep(10 * time.Millisecond)
				if tt.do != nil {
					tt.do(r, id)
				}
				time.Sleep(3 * time.Hour)
				e := r.wantSettled(g, tt.outcome, tt.reason, tt.result)
				if e.Usage.Source != tt.source || e.Usage.Input == 0 || e.Cost <= 0 {
					t.Errorf("settled %+v, cost %v", e.Usage, e.Cost)
				}
			})
		})
	}
}

// A stream of a response that is made in the background has its id at once. When it is cut,
// at either side, the response goes on: it is streamed again from there, and settled as what
// it took.
func TestBackgroundStream(t *testing.T) {
	inShelves(t, setup{}, func(t *testing.T, r *shelves) {
		r.fake.Play("up", fakellm.Rule{Fault: "first=10s!gap=1s"})
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := r.client.Do(r.request(ask{path: responsesAt, body: `{"model":"m","input":"x [[tokens=7]]","stream":true,"background":true}`, ctx: ctx}))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var b []byte
		for !strings.Contains(string(b), "response.queued") {
			part := make([]byte, 4096)
			n, err := resp.Body.Read(part)
			if b = append(b, part[:n]...); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(begun) > 0 {
			t.Errorf("the id came after %v", time.Since(begun))
		}
		id := responseID.FindString(string(b))
		time.Sleep(12 * time.Second)
		cancel()
		resp.Body.Close()
		rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
		if r.open() != 1 || rec.Usage.Source != sluice.UsageEstimated {
			t.Errorf("%d open, recorded %+v", r.open(), rec.Usage)
		}
		g := r.get(id + "?stream=true&starting_after=1")
		if g.err != nil || !strings.HasPrefix(g.body, "event: response.in_progress") || !strings.Contains(g.body, "event: response.completed") {
			t.Errorf("streamed again: %v %s", g.err, g.body)
		}
		e := r.wantSettled(got{header: resp.Header}, sluice.Cancelled, sluice.ClientGone, "ended")
		if e.Usage.Source != sluice.UsageReported || e.Usage.OutputTotal() != 7 {
			t.Errorf("settled %+v", e.Usage)
		}
	})
}

// As many responses of one tenant are made in the background at a time as it may have calls
// in flight, and no more: a fetch still finds room.
func TestBackgroundIsBounded(t *testing.T) {
	policy := sluice.Policy{Limits: [sluice.NumScopes][]sluice.Limit{sluice.ScopeTenant: {{Dimension: sluice.Concurrency, Amount: 3}}}}
	inShelves(t, setup{policy: policy, places: []place{{keys: []string{"k"}, slots: 1}}}, func(t *testing.T, r *shelves) {
		r.fake.Play("up", fakellm.Rule{Fault: "first=1m"})
		body := `{"model":"m","input":"x [[tokens=1]]","background":true}`
		for i := range 3 {
			g := r.do(ask{path: responsesAt, body: body})
			if g.status != 200 {
				t.Errorf("response %d: %d %s", i, g.status, g.body)
			}
			if q := r.get(responseID.FindString(g.body)); q.status != 200 || q.took > 0 {
				t.Errorf("fetched %d after %v: %s", q.status, q.took, q.body)
			}
		}
		g := r.do(ask{path: responsesAt, body: body})
		if g.status != 503 || g.header.Get("Retry-After") != "10" {
			t.Errorf("one more: %d %s", g.status, g.body)
		}
		if g := r.do(ask{path: responsesAt, body: body}.of(rival)); g.status != 200 {
			t.Errorf("another tenant's: %d %s", g.status, g.body)
		}
		time.Sleep(90 * time.Second)
		if g := r.do(ask{path: responsesAt, body: body}); g.status != 200 || r.x.Background() != 1 {
			t.Errorf("once there is room: %d %s, %d open", g.status, g.body, r.x.Background())
		}
	})
}
