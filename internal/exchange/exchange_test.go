package exchange

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// The way of whole requests is tested through HTTP, in proxy.

func TestDetailIsJSON(t *testing.T) {
	tn := &turn{r: &Request{Head: &wire.Head{Estimate: 7}}, plan: plan{work: sluice.Work{Input: 8, OutputBound: 9}}}
	a := &attempt{failure: &sluice.Error{Reason: sluice.UpstreamError}, place: engine.Grant{
		Clamped: true, OutputBound: 5, Fallback: true, Candidates: make([]engine.Candidate, 40),
		Limits: limitsOf([]sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: 3}, {Dimension: sluice.Concurrency, Amount: 1}}, quota.Amounts{sluice.Spend: 1}),
	}}
	a.place.Candidates[0] = engine.Candidate{Pool: "p", Backend: "b", Left: "full"}
	for name, of := range map[string]*attempt{"no attempt": nil, "attempt": a} {
		var got map[string]any
		if err := json.Unmarshal(tn.detail(of), &got); err != nil {
			t.Errorf("%s: %v in %s", name, err, tn.detail(of))
		}
		if e := got["estimate"].(map[string]any); e["raw_input"] != 7.0 || e["input"] != 8.0 || e["output_bound"] != 9.0 {
			t.Errorf("%s: estimate %v", name, e)
		}
		if of != nil && (len(got["candidates"].([]any)) != maxCandidates || got["failure"] != "upstream_error" || got["limits"] != "KSD3-1KCN1-0") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// limitsOf are those of a key that has used so much.
func limitsOf(limits []sluice.Limit, used quota.Amounts) engine.Limits {
	book, now, key := quota.NewBook(), time.Now(), []quota.Claim{{Owner: quota.Owner{Scope: sluice.ScopeKey}, Limits: limits}}
	book.Charge(now, now, key, used)
	var r quota.Reservation
	book.Open(now, &r, key)
	return book.Limits(now, &r, nil)
}

// An entry tells at what it was settled, in the tier that it was served in.
func TestDetailHasRates(t *testing.T) {
	tn := &turn{r: &Request{Head: &wire.Head{}}}
	row := &price.Row{
		Rates:    price.Rates{Input: 3e9, CacheRead: price.Free, Output: 15e9},
		Tiers:    []price.Tier{{AboveInput: 100, Rates: price.Rates{Input: 6e9}}},
		Variants: map[string][]price.Tier{"flex": {{Rates: price.Rates{Input: 1e9, Output: 5e9}}}},
	}
	for name, tt := range map[string]struct {
		price *price.Row
		u     sluice.Usage
		want  string
	}{
		"plain":     {row, sluice.Usage{Input: 1, CacheRead: 1, Output: 1, Source: sluice.UsageReported}, `{"input":3000000000,"cache_read":0,"output":15000000000}`},
		"long":      {row, sluice.Usage{Input: 101, Source: sluice.UsageReported}, `{"input":6000000000}`},
		"flex":      {row, sluice.Usage{Input: 1, Reasoning: 1, ServiceTier: "flex", Source: sluice.UsageEstimated}, `{"input":1000000000,"reasoning":5000000000}`},
		"nothing":   {row, sluice.Usage{Source: sluice.UsageNone}, ""},
		"no charge": {nil, sluice.Usage{Input: 1, Source: sluice.UsageReported}, ""},
	} {
		a := &attempt{price: tt.price}
		var got struct {
			Rates    json.RawMessage `json:"rates"`
			Estimate json.RawMessage `json:"estimate"`
		}
		detail := withRates(tn.detail(a), a, &tt.u)
		if err := json.Unmarshal(detail, &got); err != nil || string(got.Rates) != tt.want || len(got.Estimate) == 0 {
			t.Errorf("%s: %v, %s, want %s", name, err, detail, tt.want)
		}
	}
}

// What refused a request stands in its entry, whatever its words.
func TestDetailHasTheRefusal(t *testing.T) {
	tn := &turn{r: &Request{Head: &wire.Head{}}}
	for name, e := range map[string]*sluice.Error{
		"queue": {Kind: sluice.KindOverloaded, Msg: `the queue of pool "a\b" is full`},
		"limit": {Kind: sluice.KindRateLimited, Msg: "too many\nrequests", Refusal: &sluice.Refusal{Scope: sluice.ScopeModel, ID: "fast", Limit: sluice.Limit{Amount: 2}, Used: 1, Held: 1, Requested: 1}},
	} {
		var got struct {
			Message string
			Refusal *struct {
				Scope                         string
				Amount, Used, Held, Requested int64
			}
		}
		detail := withRefusal(withMessage(tn.detail(nil), e), e.Refusal)
		if err := json.Unmarshal(detail, &got); err != nil || got.Message != e.Msg || (got.Refusal != nil) != (e.Refusal != nil) {
			t.Errorf("%s: %v, %s", name, err, detail)
		}
		if r := got.Refusal; r != nil && (r.Scope != "model" || r.Amount != 2 || r.Used != 1 || r.Held != 1 || r.Requested != 1) {
			t.Errorf("%s: %s", name, detail)
		}
	}
	if d := withMessage([]byte("{}"), &sluice.Error{Kind: sluice.KindInternal, Msg: "x"}); string(d) != "{}" {
		t.Errorf("an internal error is told: %s", d)
	}
}

func TestSumOfAttempts(t *testing.T) {
	var all sum
	all.add(sluice.Usage{Source: sluice.UsageNone}, 0, 0)
	all.add(sluice.Usage{Input: 5, Output: 1, Source: sluice.UsageReported, ServiceTier: "flex"}, 7, 7)
	all.add(sluice.Usage{Input: 5, CacheRead: 1, CacheWrite: 2, CacheWrite1h: 3, AudioInput: 4, Reasoning: 5, AudioOutput: 6, ToolCalls: 7, WebSearches: 8, Source: sluice.UsageEstimated, Anomalous: true}, 2, 9)
	all.add(sluice.Usage{Source: sluice.UsageNone}, 0, 0)
	want := sluice.Usage{Input: 10, CacheRead: 1, CacheWrite: 2, CacheWrite1h: 3, AudioInput: 4, Output: 1, Reasoning: 5, AudioOutput: 6, ToolCalls: 7, WebSearches: 8, ServiceTier: "flex", Source: sluice.UsageEstimated, Anomalous: true}
	if d := cmp.Diff(want, all.usage); d != "" {
		t.Error(d)
	}
	if all.cost != 9 || all.high != 16 {
		t.Errorf("cost %v, high %v", all.cost, all.high)
	}
}

func TestRepresentative(t *testing.T) {
	a, b := &route.Backend{ID: "a", Dialect: "openai"}, &route.Backend{ID: "b", Dialect: "anthropic"}
	table := &route.Table{Pools: map[sluice.PoolID]*route.Pool{"p": {Backends: []*route.Backend{a}}, "q": {Backends: []*route.Backend{b}}}}
	m := &route.Model{Pools: []sluice.PoolID{"gone", "p"}, Fallback: []sluice.PoolID{"q"}}
	for d, want := range map[wire.Dialect]*route.Backend{wire.OpenAI: a, wire.Anthropic: b, "gemini": a} {
		if got := Representative(table, m, d, nil, sluice.RiskNone); got != want {
			t.Errorf("%q: got %v, want %v", d, got, want)
		}
	}
	if got := Representative(table, m, wire.OpenAI, &sluice.Policy{Regions: []string{"eu"}}, sluice.RiskNone); got != nil {
		t.Errorf("got %v for a caller whose requests may not go there", got)
	}
	if Representative(table, nil, wire.OpenAI, nil, sluice.RiskNone) != nil {
		t.Error("no model has a backend")
	}
}
