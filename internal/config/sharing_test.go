package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// poolOf compiles a pool that says pool, with top at the top of the file.
func poolOf(t testing.TB, top, pool string) *route.Pool {
	t.Helper()
	return mustCompile(t, top+`
providers: {gpus: {dialect: openai, base_url: http://gpu:8000/v1, price: free}}
pools: {main: {`+pool+`backends: [{name: a, provider: gpus, model: m, capacity: {concurrency: 64}}]}}
models: {fast: {pools: [main]}}
`, CompileOptions{}).Table.Pools["main"]
}

// What a file says of classes, and what it leaves out.
func TestClasses(t *testing.T) {
	type classes = [sluice.NumClasses]sched.Class
	for _, tt := range []struct {
		said string
		want classes
	}{
		{"", sched.DefaultClasses()},
		{"classes: {}, ", sched.DefaultClasses()},
		{"classes: {interactive: , batch: {}}, ", sched.DefaultClasses()},
		{"classes: {batch: {ceiling: 50%}}, ", classes{{Share: 600, Headroom: 100}, {Share: 300}, {Share: 100, Ceiling: 500}}},
		{"classes: {interactive: {share: 80%, headroom: 0%}}, ", classes{{Share: 800}, {Share: 150}, {Share: 50}}},
		{"classes: {standard: {share: 50%, headroom: 5%}}, ", classes{{Share: 428, Headroom: 100}, {Share: 500, Headroom: 50}, {Share: 71}}},
		{"classes: {interactive: {share: 10%}, standard: {share: 10%}, batch: {share: 10%}}, ", classes{{Share: 100, Headroom: 100}, {Share: 100}, {Share: 100}}},
		// Nothing is left, and nothing is said: neither is the zero value, which would take the defaults.
		{"classes: {interactive: {share: 60%, headroom: 0%}, standard: {share: 40%}}, ", classes{{Share: 600}, {Share: 400}, {Ceiling: 1000}}},
		{"classes: {interactive: {share: 0%, headroom: 0%}, batch: {share: 100%}}, ", classes{{Ceiling: 1000}, {Ceiling: 1000}, {Share: 1000}}},
	} {
		if diff := cmp.Diff(tt.want, poolOf(t, "", tt.said).Sharing.Classes); diff != "" {
			t.Errorf("%q:\n%s", tt.said, diff)
		}
	}
}

func TestCompileSharing(t *testing.T) {
	p := poolOf(t, "", `
  contracts: [{tenant: a, concurrency: 8, kv_tokens: 50k}, {tenant: b, work_per_second: 1k, lend: none, reclaim: 500ms}, {tenant: c, concurrency: 1, lend: all}],
  queue: {per_tenant: 50%}, work: {output: 4},`)
	want := []sched.Contract{
		{Tenant: "a", Slots: 8, KV: 50_000, Lend: sched.LendShort, Reclaim: sched.DefaultReclaim},
		{Tenant: "b", WorkPerSecond: 1000, Lend: sched.LendNone, Reclaim: 500 * time.Millisecond},
		{Tenant: "c", Slots: 1, Lend: sched.LendAll, Reclaim: sched.DefaultReclaim},
	}
	if diff := cmp.Diff(want, p.Sharing.Contracts); diff != "" {
		t.Error(diff)
	}
	if p.Queue.PerTenant != 500 || p.Cost != (route.Cost{Input: 1, Output: 4}) || p.Sharing.FIFO {
		t.Errorf("got %+v", p)
	}
	if p = poolOf(t, "", ""); p.Queue.PerTenant != 0 || p.Cost != (route.Cost{}).WithDefaults() || p.Sharing.Contracts != nil {
		t.Errorf("the defaults: %+v", p)
	}
	if p = poolOf(t, "", "work: {input: 3, output: 0}, "); p.Cost.WithDefaults() != (route.Cost{Input: 3}) {
		t.Errorf("got %+v", p.Cost)
	}
}

// The naive policy shares nothing out, and of limits leaves those of requests and
// spend, wherever they stand: in the file or the store.
func TestNaive(t *testing.T) {
	s := mustCompile(t, `
policy: naive
limits: {requests_per_second: 100, output_tokens_per_minute: 1M, concurrency: 5}
providers: {gpus: {dialect: openai, base_url: http://gpu:8000/v1, price: free}}
pools:
  main:
    classes: {batch: {ceiling: 50%}}
    contracts: [{tenant: acme, concurrency: 1}]
    queue: {requests: 100, per_tenant: 10%}
    backends: [{name: a, provider: gpus, model: m, capacity: {concurrency: 64, kv_tokens: 400k}}]
models: {fast: {pools: [main], limits: {kv_tokens: 10k}}}
plans:
  p:
    limits: {requests_per_minute: 60, input_tokens_per_minute: 1M, spend_per_day: $5, concurrency: 2}
    per_key: {kv_tokens: 10k}
    per_run: {steps: 5, tokens: 1M, spend: $1}
    per_model: {fast: {output_tokens_per_minute: 5, requests_per_hour: 7}}
tenants:
  acme: {plan: p, keys: {ci: {secret: ${KEY_A}}}}
`, CompileOptions{})
	main := s.Table.Pools["main"]
	if diff := cmp.Diff(sched.Policy{FIFO: true}, main.Sharing); diff != "" {
		t.Error(diff)
	}
	if main.Queue.PerTenant != 0 || main.Queue.Requests != 100 || main.Backends[0].Capacity.KVTokens != 400_000 {
		t.Errorf("queue and backends are bounded as ever: %+v", main)
	}
	if diff := cmp.Diff(route.RetryPolicy{Attempts: 3, Unbounded: true}, s.Table.Retries); diff != "" || !s.Table.NoBreakers {
		t.Errorf("two retries without a budget, and no breaker: %s", diff)
	}
	if f := s.Table.Fleet; len(f) != 1 || f[0].Dimension != sluice.Requests || len(s.Table.Models["fast"].Limits) != 0 {
		t.Errorf("fleet %+v, model %+v", f, s.Table.Models["fast"].Limits)
	}
	stored := auth.Records{
		Plans:   []auth.Plan{{ID: "q", Limits: []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}, {Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 9}}}},
		Tenants: []auth.Tenant{{ID: "beta", Plan: "q"}},
	}
	secret, _ := testEnv("KEY_B")
	ref, err := auth.Parse(secret)
	if err != nil {
		t.Fatal(err)
	}
	stored.Keys = []auth.Key{{ID: ref.ID, Tenant: "beta", Secrets: []auth.SecretHash{{Hash: ref.Hash(auth.NewHasher(sluice.Secret{}))}}}}
	snap := auth.Compile(auth.CompileOptions{Hasher: auth.NewHasher(sluice.Secret{})}, s.Records, stored)
	limits := func(key string) (out []string) {
		secret, _ := testEnv(key)
		p, err := snap.Identify(secret, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for scope, list := range p.Policy.Limits {
			for _, l := range list {
				out = append(out, fmt.Sprint(sluice.Scope(scope), " ", l.Dimension, " ", l.Window))
			}
		}
		for _, l := range p.Policy.ByModel["fast"] {
			out = append(out, fmt.Sprint("fast ", l.Dimension, " ", l.Window))
		}
		return out
	}
	if got, want := strings.Join(limits("KEY_A"), ", "), "run requests run, run spend run, tenant requests minute, tenant spend day, fast requests hour"; got != want {
		t.Errorf("the file's: got %s\nwant %s", got, want)
	}
	if got, want := strings.Join(limits("KEY_B"), ", "), "tenant requests minute"; got != want {
		t.Errorf("the store's: got %s\nwant %s", got, want)
	}
}

// A pool has as many backends as its queue can tell apart.
func TestTooManyBackends(t *testing.T) {
	file := func(n int) []byte {
		var b strings.Builder
		b.WriteString("providers: {gpus: {dialect: openai, base_url: http://gpu:8000/v1}}\nmodels: {fast: {pools: [main]}}\npools:\n  main:\n    backends:\n")
		for i := range n {
			fmt.Fprintf(&b, "      - {name: b%d, provider: gpus, model: m}\n", i)
		}
		return []byte(b.String())
	}
	if _, err := Parse("sluice.yaml", file(sched.MaxBackends), testEnv); err != nil {
		t.Error(err)
	}
	_, err := Parse("sluice.yaml", file(sched.MaxBackends+1), testEnv)
	want := "sluice.yaml:5:5: pools.main.backends: the pool has 257 backends, more than 256\n    fix: split it into pools, and name them all at the model"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %v", err, want)
	}
}

// What is left out takes the default, and none is none.
func TestRetries(t *testing.T) {
	const file = `
providers: {gpus: {dialect: openai, engine: vllm, base_url: http://gpu:8000/v1, price: free}}
pools: {main: {backends: [{name: a, provider: gpus, model: llama}]}}
models: {fast: {pools: [main]}}
`
	for written, want := range map[string]route.RetryPolicy{
		"":                                    {Attempts: 4, Share: 100, Minimum: 1},
		"retries: {attempts: 2}":              {Attempts: 2, Share: 100, Minimum: 1},
		"retries: {budget: 5%}":               {Attempts: 4, Share: 50, Minimum: 1},
		"retries: {budget: 0%}":               {Attempts: 4, Share: -1, Minimum: 1},
		"retries: {minimum: 0}":               {Attempts: 4, Share: 100, Minimum: -1},
		"retries: {minimum: 1k, budget: 20%}": {Attempts: 4, Share: 200, Minimum: 1000},
	} {
		if diff := cmp.Diff(want, mustCompile(t, file+written, CompileOptions{}).Table.Retries); diff != "" {
			t.Errorf("%q: %s", written, diff)
		}
	}
}
