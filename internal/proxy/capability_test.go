package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// tally counts the calls that reach a backend.
type tally struct {
	http.Handler
	n atomic.Int64
}

func (c *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.n.Add(1)
	c.Handler.ServeHTTP(w, r)
}

// What no backend can do is refused in the dialect of the client, with what each
// lacks, and reaches none; what one can do goes there and to no other.
func TestCapabilities(t *testing.T) {
	const image = `[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`
	blind := &tally{Handler: talk{chunks: 1, usage: usage(9, 1)}}
	seeing := &tally{Handler: talk{chunks: 1, usage: usage(9, 1)}}
	claude := &tally{Handler: answers(200, `{}`)}
	inBubble(t, setup{places: []place{
		{handler: blind, lacks: route.NeedImage | route.NeedTools},
		{handler: seeing, lacks: route.NeedTools, fallback: true},
		{handler: claude, dialect: wire.Anthropic, lacks: route.NeedImage | route.NeedTools | route.NeedReasoning},
	}}, func(t *testing.T, r *rig) {
		g := r.do(ask{body: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":` + image + `}]}`})
		if g.status != 200 || g.header.Get("Sluice-Backend") != "b1" || blind.n.Load() != 0 {
			t.Errorf("an image got %d from %s, and b0 had %d calls", g.status, g.header.Get("Sluice-Backend"), blind.n.Load())
		}
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		var detail struct {
			Needs      string
			Candidates []struct{ Backend, Left, Lacks string }
		}
		if err := json.Unmarshal(rec.Final.Detail, &detail); err != nil {
			t.Fatal(err)
		}
		if detail.Needs != "image, media_url" || len(detail.Candidates) != 3 || detail.Candidates[0].Left != "capability" || detail.Candidates[0].Lacks != "image" {
			t.Errorf("the ledger says %+v", detail)
		}

		seen := seeing.n.Load()
		for _, tt := range []struct{ path, body, kind, says string }{
			{"", `{"model":"m","max_tokens":9,"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":` + image + `}]}`, `"type":"invalid_request_error"`, "b0 lacks image, tools; b2 lacks image, tools; b1 lacks tools"},
			{"/v1/messages", `{"model":"m","max_tokens":9,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"x"}]}`, `"type":"invalid_request_error"`, "b2 lacks reasoning"},
		} {
			g := r.do(ask{path: tt.path, body: tt.body, header: http.Header{"Anthropic-Version": {"2023-06-01"}}})
			if g.status != 400 || g.header.Get("Sluice-Reason") != "capability_missing" || !strings.Contains(g.body, tt.kind) || !strings.Contains(g.body, tt.says) {
				t.Errorf("got %d %s %s, want %q", g.status, g.header.Get("Sluice-Reason"), g.body, tt.says)
			}
			rec := r.want(sluice.Rejected, sluice.CapabilityMissing, 400)
			if !strings.Contains(string(rec.Final.Detail), `"backend":"b2","left":"capability"`) {
				t.Errorf("the ledger does not say why b2 was left out: %s", rec.Final.Detail)
			}
		}
		if blind.n.Load()+claude.n.Load()+seeing.n.Load() != seen {
			t.Error("a request that was refused has reached a backend")
		}
	})
}

// A resident tenant's requests reach no other region, whatever fails.
func TestResidency(t *testing.T) {
	abroad := &tally{Handler: talk{chunks: 1, usage: usage(9, 1)}}
	s := setup{policy: sluice.Policy{Regions: []string{"eu"}}, places: []place{
		{handler: answers(503, `{}`), region: "eu", domain: "a"},
		{handler: abroad, region: "us", domain: "b"},
		{handler: talk{chunks: 1, usage: usage(9, 1)}, region: "eu", domain: "a", fallback: true},
		{handler: abroad, region: "us", domain: "b", fallback: true},
		{handler: abroad, domain: "c", fallback: true},
	}}
	inBubble(t, s, func(t *testing.T, r *rig) {
		for range 20 {
			if g := r.do(ask{}); g.status != 200 || g.header.Get("Sluice-Backend") != "b2" {
				t.Errorf("got %d from %s", g.status, g.header.Get("Sluice-Backend"))
			}
		}
		r.change(func(p *sluice.Policy) { p.Regions = []string{"asia"} })
		if g := r.do(ask{}); g.status != 403 || g.header.Get("Sluice-Reason") != "model_not_allowed" || !strings.Contains(g.body, "b0 is in no region that this key may use") {
			t.Errorf("got %d %s %s", g.status, g.header.Get("Sluice-Reason"), g.body)
		}
		if n := abroad.n.Load(); n != 0 {
			t.Errorf("%d calls went abroad", n)
		}
	})
}

// A label keeps requests from the backends that take less, whatever fails: the caller
// may raise what its policy says and not lower it, and lists of models agree.
func TestRisk(t *testing.T) {
	open := &tally{Handler: talk{chunks: 1, usage: usage(9, 1)}}
	s := setup{policy: sluice.Policy{Risk: sluice.RiskNormal}, places: []place{
		{handler: answers(503, `{}`), maxRisk: sluice.RiskHigh, domain: "a"},
		{handler: open, maxRisk: sluice.RiskLow, domain: "b"},
		{handler: open, maxRisk: sluice.RiskLow, domain: "c", fallback: true},
		{handler: talk{chunks: 1, usage: usage(9, 1)}, maxRisk: sluice.RiskNormal, domain: "d", fallback: true},
	}}
	inBubble(t, s, func(t *testing.T, r *rig) {
		for range 20 {
			if g := r.do(ask{header: http.Header{"Sluice-Risk": {"low"}}}); g.status != 200 || g.header.Get("Sluice-Backend") != "b3" || g.header.Get("Sluice-Dropped") != "sluice-risk=normal" {
				t.Errorf("got %d from %s, dropped %q", g.status, g.header.Get("Sluice-Backend"), g.header.Get("Sluice-Dropped"))
			}
		}
		if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Risk != sluice.RiskNormal || !strings.Contains(string(rec.Final.Detail), `"risk":"normal"`) || !strings.Contains(string(rec.Final.Detail), `"left":"risk"`) {
			t.Errorf("recorded risk %v, %s", rec.Risk, rec.Final.Detail)
		}
		r.change(func(p *sluice.Policy) { p.Risk = sluice.RiskNone })
		if g := r.do(ask{}); g.header.Get("Sluice-Backend") != "b1" {
			t.Errorf("without a label: got %d from %s", g.status, g.header.Get("Sluice-Backend"))
		}
		if n := open.n.Load(); n != 1 {
			t.Errorf("those that take low labels had %d calls", n)
		}
		if g := r.do(ask{header: http.Header{"Sluice-Risk": {"severe"}}}); g.status != 400 || !strings.Contains(g.body, `use one of [\"none\" \"low\" \"normal\" \"high\"]`) {
			t.Errorf("an unknown label: got %d %s", g.status, g.body)
		}
	})
	s.places = s.places[1:]
	inBubble(t, s, func(t *testing.T, r *rig) {
		for _, tt := range []struct {
			own   sluice.Risk
			asked string
			seen  bool
		}{{0, "none", true}, {0, "high", false}, {sluice.RiskNormal, "none", true}, {sluice.RiskHigh, "low", false}} {
			r.change(func(p *sluice.Policy) { p.Risk = tt.own })
			g := r.do(ask{header: http.Header{"Sluice-Risk": {tt.asked}}})
			if tt.seen != (g.status == 200) || !tt.seen && (g.status != 403 || g.header.Get("Sluice-Reason") != "model_not_allowed" || !strings.Contains(g.body, "b2 takes no request of risk high")) {
				t.Errorf("%+v: got %d %s", tt, g.status, g.body)
			}
			req := r.request(ask{path: "/v1/models", header: http.Header{"Sluice-Risk": {tt.asked}}})
			req.Method, req.Body, req.ContentLength = "GET", nil, 0
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			list, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if has := strings.Contains(string(list), `"id":"m"`); resp.StatusCode != 200 || has != tt.seen {
				t.Errorf("%+v: the models are %d %s", tt, resp.StatusCode, list)
			}
		}
	})
}

// Everything in one failure domain is silent: the first token comes from elsewhere
// within one deadline, though other backends of the domain come first.
func TestFault_U9_DomainDown(t *testing.T) {
	hang := &tally{Handler: newSilent()}
	down := place{handler: hang, domain: "east", timeouts: upstream.Timeouts{Headers: 2 * time.Second}}
	spare := down
	spare.fallback = true
	inBubble(t, setup{places: []place{down, down, spare, {handler: talk{chunks: 1, usage: usage(9, 1)}, domain: "west", fallback: true}}}, func(t *testing.T, r *rig) {
		for i := range 4 {
			g := r.do(ask{stream: true})
			if g.status != 200 || g.header.Get("Sluice-Backend") != "b3" || g.took > 2100*time.Millisecond {
				t.Errorf("call %d got %d from %s after %v", i, g.status, g.header.Get("Sluice-Backend"), g.took)
			}
			if n := hang.n.Load(); n > int64(i+1) {
				t.Errorf("after %d calls the domain had %d attempts", i+1, n)
			}
		}
	})
}

// cS3: a backend that is always too slow is left alone after a few.
func TestCS3SlowBackendCounts(t *testing.T) {
	slow := &tally{Handler: talk{chunks: 100, gap: 1200 * time.Millisecond}}
	inBubble(t, setup{places: []place{
		{handler: slow, timeouts: upstream.Timeouts{Idle: 5 * time.Second, Rate: 5, Window: 10 * time.Second}},
		{handler: talk{chunks: 1, usage: usage(9, 1)}, fallback: true},
	}}, func(t *testing.T, r *rig) {
		for range route.DefaultFailures {
			wantCut(t, r.do(ask{stream: true}))
			r.want(sluice.Failed, sluice.UpstreamStalled, 200)
		}
		if g := r.do(ask{stream: true}); g.status != 200 || g.header.Get("Sluice-Backend") != "b1" || slow.n.Load() != route.DefaultFailures {
			t.Errorf("got %d from %s, the slow one had %d calls", g.status, g.header.Get("Sluice-Backend"), slow.n.Load())
		}
	})
}

// cS8: a backend that fails inside its streams ten times is not touched by the call
// after them.
func TestCS8ErrorsInStreamCount(t *testing.T) {
	failing := &tally{Handler: talk{end: "error"}}
	inBubble(t, setup{places: []place{{handler: failing}, {handler: talk{chunks: 1, usage: usage(9, 1)}, fallback: true}}}, func(t *testing.T, r *rig) {
		for range 10 {
			if g := r.do(ask{stream: true}); g.status != 200 || g.header.Get("Sluice-Backend") != "b1" {
				t.Errorf("got %d from %s", g.status, g.header.Get("Sluice-Backend"))
			}
		}
		before := failing.n.Load()
		r.do(ask{stream: true})
		if after := failing.n.Load(); after != before || after > route.DefaultFailures {
			t.Errorf("the failing one had %d calls in ten, and %d then", before, after-before)
		}
	})
}

// cO1: backends that answer 503 alone, 100 calls with two retries allowed.
func TestCO1RetriesAreBounded(t *testing.T) {
	failing := &tally{Handler: answers(503, `{"error":{"message":"down"}}`)}
	s := setup{retries: route.RetryPolicy{Attempts: 3}, places: []place{{handler: failing}, {handler: failing}, {handler: failing, fallback: true}}}
	inBubble(t, s, func(t *testing.T, r *rig) {
		for range 100 {
			if g := r.do(ask{}); g.status != 503 || g.err != nil {
				t.Errorf("got %d %v %s", g.status, g.err, g.body)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := failing.n.Load(); n > 110 {
			t.Errorf("the backends saw %d calls, want at most 110", n)
		}
	})
}

// cO6: one of eight backends is a black hole; calls that go elsewhere are not
// disturbed, and those that meet it are few and served elsewhere.
func TestCO6BlackHole(t *testing.T) {
	var places []place
	for i := range 8 {
		p := place{handler: talk{chunks: 3, gap: 10 * time.Millisecond, usage: usage(9, 3)}, domain: fmt.Sprint("d", i), timeouts: upstream.Timeouts{Connect: 2 * time.Second}}
		p.hole = i == 3
		places = append(places, p)
	}
	inBubble(t, setup{places: places}, func(t *testing.T, r *rig) {
		late := 0
		for range 80 {
			g := r.do(ask{stream: true})
			if g.status != 200 || g.err != nil {
				t.Errorf("got %d %v %s", g.status, g.err, g.body)
			}
			if g.took > 50*time.Millisecond {
				late++
			}
			if g.took > 2200*time.Millisecond {
				t.Errorf("one took %v", g.took)
			}
		}
		if late > route.DefaultFailures {
			t.Errorf("%d of 80 calls were late, want those that met the black hole: at most %d", late, route.DefaultFailures)
		}
	})
}
