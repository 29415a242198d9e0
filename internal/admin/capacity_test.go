package admin

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/ledger"
)

func TestCapacityPlan(t *testing.T) {
	b := newBench(t)
	var p CapacityPlan
	b.do("POST", "/admin/v1/capacity", `{"rps":120,"input":800,"output":300,"gpus":8,"lose":"25%"}`, 200, &p)
	if p.Input != 96_000 || p.Output != 36_000 || p.Requests != 120 || p.Utilisation.Prefill != 0.4 || p.Over || p.GPUs != 8 {
		t.Errorf("got %+v", p)
	}
	if p.Lost == nil || p.Lost.GPUs != 6 || !p.Lost.Over || p.Lost.Input != 96_000 || p.Lost.GPUsNeeded <= 8 {
		t.Errorf("without a quarter: got %+v", p.Lost)
	}
	p = CapacityPlan{}
	// A rate that has no exact decimal, as a text and as a number of a minute.
	b.do("POST", "/admin/v1/capacity", `{"rps":"20/min","input":"1500,50%:15k","output":"200"}`, 200, &p)
	if p.Input != 2750 || p.Output != 66.666667 || !p.GPUsAssumed || p.Lost != nil {
		t.Errorf("got %+v", p)
	}
	var q CapacityPlan
	b.do("POST", "/admin/v1/capacity", `{"rpm":20,"input":"1500,50%:15k","output":200,"replica":{"gpus":2,"prefill_tokens_per_second":10000,"step_base_seconds":0.01}}`, 200, &q)
	if q.Input != 2750 || q.GPUsPerReplica != 2 || q.Illustrative || q.Supply.Prefill != 10_000 {
		t.Errorf("a replica of one's own: got %+v", q)
	}
}

func TestCapacityMix(t *testing.T) {
	b := newBench(t)
	var m CapacityMix
	b.do("POST", "/admin/v1/capacity/mix", `{"rps":100,"before":[{"tenant":"a","share":0.5,"input":1000,"output":100},{"tenant":"b","share":0.5,"input":1000,"output":100}],
		"after":[{"tenant":"a","share":0.5,"input":"20k","output":100},{"tenant":"b","share":0.5,"input":1000,"output":100}]}`, 200, &m)
	if m.Before.Input != 100_000 || m.After.Input != 1_050_000 || m.Ratios.Input != 10.5 || m.Ratios.Requests != 1 || m.Ratios.Output != 1 || !m.After.Over {
		t.Errorf("got %+v and %+v", m.Ratios, m.After)
	}
	if len(m.Rows) != 4 || m.Rows[2].Tenant != "a" || m.Rows[2].Side != "after" || m.Rows[2].Share < 0.8 {
		t.Errorf("rows: %+v", m.Rows)
	}
}

func TestCapacityAllocate(t *testing.T) {
	b := newBench(t)
	var a CapacityAllocation
	b.do("POST", "/admin/v1/capacity/allocate", `{"gpus":12,"models":[
		{"name":"small","profile":"llama-3.1-8b-1xh100","demand":[{"rps":60,"input":800,"output":300}]},
		{"name":"large","replica":{"gpus":4,"prefill_tokens_per_second":13000,"step_base_seconds":0.0173,"kv_tokens":473000},"weight":3,"min":1,"headroom":"20%","demand":[{"rps":4,"input":2000,"output":300}]}]}`, 200, &a)
	if a.GPUs != 12 || len(a.Models) != 2 || a.Models[0].Satisfied != 1 || a.Models[1].Satisfied != 1 || a.Models[0].GPUs+a.Models[1].GPUs+a.Spare != 12 {
		t.Errorf("got %+v", a)
	}
}

// The moves to an allocation come with it, where it is said what runs.
func TestCapacityMoves(t *testing.T) {
	b := newBench(t)
	var a CapacityAllocation
	const body = `{"domains":[{"name":"x","gpus":2},{"name":"y","gpus":2}],"models":[
		{"name":"a","profile":"llama-3.1-8b-1xh100","ttft":"2s","tpot":"50ms","demand":[{"rps":10,"input":800,"output":200}]},
		{"name":"b","profile":"llama-3.1-8b-1xh100","start":"90s","demand":[{"rps":60,"input":800,"output":200}]}],
		"current":[{"backend":"a-1","model":"a","domain":"x"},{"backend":"a-2","model":"a","domain":"x"},{"backend":"b-1","model":"b","domain":"y"},{"backend":"b-2","model":"b","domain":"y"}]}`
	b.do("POST", "/admin/v1/capacity/allocate", body, 200, &a)
	if a.GPUs != 4 || a.Moves == nil || len(a.Moves.Steps) != 1 || len(a.Models[0].Profile) == 0 || a.Models[0].Latency == nil || a.Models[0].Latency.TPOT > 0.05 {
		t.Fatalf("got %+v", a)
	}
	if s := a.Moves.Steps[0]; s.Model != "b" || s.Domain != "x" || s.Start != 90 || len(s.Drain) != 1 || s.Drain[0].Backend != "a-2" || s.DrainWithin <= 0 || s.After <= s.Before {
		t.Errorf("the step is %+v", s)
	}
	for param, wrong := range map[string][2]string{
		"models[0].ttft":   {`"2s"`, `"soon"`},
		"domains[1].name":  {`"name":"x"`, `"name":"y"`},
		"current[3].model": {`"b-2","model":"b"`, `"b-2","model":"c"`},
	} {
		if got := b.do("POST", "/admin/v1/capacity/allocate", strings.Replace(body, wrong[0], wrong[1], 1), 422, nil); !strings.Contains(got, param) {
			t.Errorf("with %s: %s", wrong[1], got)
		}
	}
}

// TestCapacityMistakes says which field is wrong and how to mend it.
func TestCapacityMistakes(t *testing.T) {
	b := newBench(t)
	for _, tc := range []struct{ path, body, want string }{
		{"", `{"rps":-1,"input":10,"output":1}`, `"param":"rps"`},
		{"", `{"rps":"20/fortnight","input":10,"output":1}`, "20/min"},
		{"", `{"rps":1}`, "input 2000, output 300"},
		{"", `{"input":5}`, `"param":"rps"`},
		{"", `{"rps":1,"input":10,"output":1,"profile":"x"}`, "sluice capacity profiles"},
		{"", `{"rps":1,"input":10,"output":1,"lose":"100%"}`, "below 100%"},
		{"", `{"rps":[1],"input":10,"output":1}`, "rps"},
		{"", `{"rps":1,"input":10,"output":1,"nosuch":1}`, "nosuch"},
		{"/mix", `{"before":[{"rps":1,"input":10,"output":1},{"rps":1,"input":"p50=9,p90=3","output":1}]}`, `"param":"before[1].input"`},
		{"/mix", `{"before":[{"share":"50%","input":10,"output":1}]}`, `"param":"before[0].rps"`},
		{"/allocate", `{"gpus":4,"models":[{"name":"a","profile":"x","demand":[]}]}`, `"param":"models[0].profile"`},
		{"/allocate", `{"gpus":4,"models":[{"name":"a","demand":[{"rps":1,"input":10,"output":"many"}]}]}`, `"param":"models[0].demand[0].output"`},
	} {
		if got := b.do("POST", "/admin/v1/capacity"+tc.path, tc.body, 422, nil); !strings.Contains(got, tc.want) {
			t.Errorf("%s %s: got %s, want %s in it", tc.path, tc.body, got, tc.want)
		}
	}
	for _, q := range []string{"since=yesterday", "since=2y", "horizon=long", "horizon=9y", "growth=5%25", "growth=5%25/min", "by=outcome", "profile=x", "lose=200%25", "by=tenant&since=3h", "replica={}", "replica=x"} {
		b.do("GET", "/admin/v1/capacity/forecast?"+q, "", 422, nil)
	}
}

func TestCapacityProfiles(t *testing.T) {
	b := newBench(t)
	var p CapacityProfiles
	b.do("GET", "/admin/v1/capacity/profiles", "", 200, &p)
	if len(p.Profiles) < 2 || !strings.Contains(p.Note, "illustrative") {
		t.Fatalf("got %+v", p)
	}
	// What is listed can be sent back as a replica of one's own.
	for _, r := range p.Profiles {
		back, err := r.replica()
		if err != nil {
			t.Fatal(err)
		}
		got := ReplicaOf(back)
		got.Model, got.GPU, got.Precision, got.Basis = r.Model, r.GPU, r.Precision, r.Basis
		if got != r {
			t.Errorf("got %+v, want %+v", got, r)
		}
	}
}

// grow puts ten days of requests into the ledger: acme's inputs grow by 100 tokens
// a day at the same requests, other's stay; one request in eleven is refused.
func (b *bench) grow() {
	b.t.Helper()
	var entries []ledger.Entry
	start := b.now.UTC().Truncate(time.Hour).Add(-240 * time.Hour)
	for h := range 240 {
		at := start.Add(time.Duration(h)*time.Hour + time.Minute)
		for i, tenant := range []sluice.TenantID{"acme", "other"} {
			e := ledger.Entry{
				Request: sluice.RequestID(fmt.Sprintf("r%d-%d", h, i)), Attempt: 1, At: at, Ended: at, Tenant: tenant, Model: "fast", Class: sluice.Interactive, Backend: "gpu-a", Provider: "gpus",
				Final: true, Outcome: sluice.Completed, Status: 200, Usage: sluice.Usage{Input: 1000, Output: 100, Source: sluice.UsageReported}, Cost: 1000,
			}
			if tenant == "acme" {
				e.Usage.Input += sluice.Tokens(100 * (h / 24))
			}
			entries = append(entries, e)
		}
		if h%11 == 0 {
			entries = append(entries, ledger.Entry{Request: sluice.RequestID(fmt.Sprintf("x%d", h)), At: at, Ended: at, Tenant: "acme", Model: "fast", Final: true, Outcome: sluice.Rejected, Reason: sluice.RateLimited, Status: 429})
		}
	}
	if err := b.db.Append(b.t.Context(), entries); err != nil {
		b.t.Fatal(err)
	}
}

func TestCapacityForecast(t *testing.T) {
	b := newBench(t)
	b.grow()
	var f CapacityForecast
	b.do("GET", "/admin/v1/capacity/forecast?by=tenant&since=30d&horizon=30d&gpus=4&lose=25%25", "", 200, &f)
	perHour := func(tokens float64) float64 { return tokens / 3600 }
	last := f.Points[len(f.Points)-1]
	if got, want := f.Mean.Input, perHour(1950+1000); got < want-1e-5 || got > want+1e-5 {
		t.Errorf("input now: got %v, want %v", got, want)
	}
	if got, want := last.Mean.Input, perHour(1950+3000+1000); got < want-1e-5 || got > want+1e-5 {
		t.Errorf("input in 30 days: got %v, want %v", got, want)
	}
	if f.Growth.Source != "fitted" || f.Growth.Parts != 10 || f.Growth.Unit != "day" || f.Rejected != 22 || f.Sampled != 480 || f.RunsOut != nil || last.Lost == nil {
		t.Errorf("got %+v, %d rejected, %d sampled", f.Growth, f.Rejected, f.Sampled)
	}
	if len(f.Groups) != 2 || f.Groups[0].Group["tenant"] != "acme" || f.Groups[0].Growth.Total < 1 || f.Groups[1].Growth.Total != 0 {
		t.Errorf("groups: %+v", f.Groups)
	}
	b.do("GET", "/admin/v1/capacity/forecast?tenant=other&growth=100%25/month&horizon=2mo", "", 200, &f)
	last = f.Points[len(f.Points)-1]
	if got, want := last.Mean.Requests, 4*f.Mean.Requests; f.Growth.Source != "given" || got < want*0.999 || got > want*1.001 {
		t.Errorf("got %v requests/s in two months, want %v", got, want)
	}
	b.do("GET", "/admin/v1/capacity/forecast?replica="+url.QueryEscape(`{"name":"mine","gpus":2,"prefill_tokens_per_second":5000,"step_base_seconds":0.01}`), "", 200, &f)
	if f.Profile != "mine" || f.Illustrative || f.Points[0].Peak.GPUsNeeded != 2 {
		t.Errorf("a replica of one's own: got %+v", f)
	}
	// What has no history has no forecast.
	if got := b.do("GET", "/admin/v1/capacity/forecast?tenant=nobody", "", 422, nil); !strings.Contains(got, "look further back") {
		t.Errorf("got %s", got)
	}
}
