package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/tabletop"
)

// archived opens the files of an archive.
func archived(a *txtar.Archive) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		for _, f := range a.Files {
			if f.Name == name {
				return io.NopCloser(bytes.NewReader(f.Data)), nil
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

// TestScenarioMistakes holds every archive of testdata/scenarios to its file want.
func TestScenarioMistakes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := &a.Files[len(a.Files)-1]
			if a.Files[0].Name != "scenario.yaml" || want.Name != "want" {
				t.Fatalf("%s needs scenario.yaml first and want last", file)
			}
			_, err = ReadScenario("scenario.yaml", a.Files[0].Data, ScenarioOptions{Env: testEnv, Open: archived(a)})
			if err == nil {
				t.Fatal("no mistake was found")
			}
			got := err.Error() + "\n"
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// serves is a gateway and a fleet for scenarios of tests.
const serves = `
length: 1m
gateway:
  providers: {gpus: {dialect: openai, engine: vllm, price: free}}
  pools:
    chat:
      backends:
        - {name: gpu-1, provider: gpus, model: m, domain: a, capacity: {concurrency: 32}}
        - {name: gpu-2, provider: gpus, model: m, domain: b, capacity: {concurrency: 32}}
        - {name: gpu-3, provider: gpus, model: m, domain: c, capacity: {concurrency: 32}}
        - {name: gpu-4, provider: gpus, model: m, domain: d, capacity: {concurrency: 32}}
  models: {chat: {pools: [chat]}}
  plans: {std: {class: interactive, limits: {requests_per_minute: 600, input_tokens_per_minute: 1M}}, low: {class: batch}}
  tenants: {a: {plan: std}, b: {plan: low, projects: {nightly: {}}}}
fleet: {chat: {prefill_rate: 30k, step_base: 7.86ms, step_per_request: 4.4us, step_per_token: 76.3ns, kv_tokens: 443k}}
`

func mustScenario(t testing.TB, text string, o ScenarioOptions) *tabletop.Scenario {
	t.Helper()
	s, err := ReadScenario("scenario.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScenarioTraffic(t *testing.T) {
	s := mustScenario(t, serves+`
about: everything that traffic may say
warmup: 10s
drain: 20s
seed: 7
traffic:
  - {tenant: a, arrivals: 30/min, input: 1.5k, output: {uniform: [10, 20]}, max_tokens: 100}
  - name: nightly
    tenant: b
    project: nightly
    class: batch
    task: reports
    dialect: anthropic
    arrivals: {weibull: {rate: 5/s, cv: 2.5}}
    start: 5s
    stop: 50s
    day: {period: 24h, swing: 60%, peak: 14h}
    pulse: {on: 10s, off: 5s}
    input: {p50: 1k, p99: 8k, max: 16k}
    output: {quantiles: {99.9%: 900, 50%: 100, 100%: 1k}}
    prefix: {tokens: 800, groups: 20}
    client:
      patience: 20s
      cancel: {share: 2.5%, within: 3s}
      retries: {max: 3, backoff: 250ms, factor: 1.5, cap: 5s, jitter: 20%, honour: true}
      max_wait: 0s
      streams: 4
    target: {ttft: 1s, tpot: 50ms, e2e: 1m}
  - {name: mixed, tenant: a, arrivals: {even: 1/s}, input: {mix: [{share: 90%, tokens: 1k}, {share: 10%, uniform: [8k, 60k]}]}, output: 0}
`, ScenarioOptions{})
	want := []tabletop.Source{
		{
			Name: "a", Tenant: "a", Project: "default", Model: "chat", Dialect: "openai", Class: sluice.Interactive,
			Arrivals: tabletop.Arrivals{Rate: 0.5}, Input: tabletop.Lengths{Mean: 1500},
			Output: tabletop.Lengths{Shape: tabletop.Uniform, Min: 10, Max: 20}, Client: tabletop.Client{Bound: 100},
		},
		{
			Name: "nightly", Tenant: "b", Project: "nightly", Model: "chat", Dialect: "anthropic", Class: sluice.Batch, Task: "reports",
			Arrivals: tabletop.Arrivals{
				Process: tabletop.Weibull, Rate: 5, CV: 2.5, Start: 5 * time.Second, Stop: 50 * time.Second,
				Day: tabletop.Day{Period: 24 * time.Hour, Swing: 0.6, Peak: 14 * time.Hour}, Pulse: tabletop.Pulse{On: 10 * time.Second, Off: 5 * time.Second},
			},
			Input:  tabletop.Lengths{Shape: tabletop.LogNormal, P50: 1000, P99: 8000, Max: 16_000},
			Output: tabletop.Lengths{Shape: tabletop.Quantiles, Points: []tabletop.Quantile{{Permille: 500, Tokens: 100}, {Permille: 999, Tokens: 900}, {Permille: 1000, Tokens: 1000}}},
			Prefix: tabletop.Prefix{Tokens: 800, Groups: 20},
			Client: tabletop.Client{
				MaxWait: -1, Patience: 20 * time.Second, Leave: tabletop.Leave{Permille: 25, After: 3 * time.Second}, Streams: 4,
				Retry: tabletop.Retry{Max: 3, Backoff: 250 * time.Millisecond, Factor: 1.5, Cap: 5 * time.Second, Jitter: 0.2, Honour: true},
			},
			Target: tabletop.Target{TTFT: time.Second, TPOT: 50 * time.Millisecond, E2E: time.Minute},
		},
		{
			Name: "mixed", Tenant: "a", Project: "default", Model: "chat", Dialect: "openai", Class: sluice.Interactive,
			Arrivals: tabletop.Arrivals{Process: tabletop.Even, Rate: 1},
			Input: tabletop.Lengths{Shape: tabletop.Mixed, Parts: []tabletop.Part{
				{Permille: 900, Lengths: tabletop.Lengths{Mean: 1000}},
				{Permille: 100, Lengths: tabletop.Lengths{Shape: tabletop.Uniform, Min: 8000, Max: 60_000}},
			}},
		},
	}
	if diff := cmp.Diff(want, s.Sources); diff != "" {
		t.Error(diff)
	}
	if s.Name != "scenario" || s.Warmup != 10*time.Second || s.Length != time.Minute || s.Drain != 20*time.Second || s.Seed != 7 {
		t.Errorf("got %q %s %s %s %d", s.Name, s.Warmup, s.Length, s.Drain, s.Seed)
	}
	profile := fleet.Profile{PrefillRate: 30_000, StepBase: 7860 * time.Microsecond, StepPerJob: 4400, StepPerToken: 76_300, KVCapacity: 443_000}
	if len(s.Machines) != 4 || s.Machines[3].Backend != "gpu-4" {
		t.Fatalf("got %+v", s.Machines)
	}
	if diff := cmp.Diff(&profile, s.Machines[3].Replica); diff != "" {
		t.Error(diff)
	}
}

// Each policy serves the same sources by its own table and limits.
func TestScenarioPolicies(t *testing.T) {
	s := mustScenario(t, serves+`
traffic: [{tenant: a, arrivals: 1/s, input: 1k, output: 10}]
variants:
  tight: {plans: {std: {limits: {input_tokens_per_minute: 60k}}}}
  own-shape: {pools: {chat: {classes: {batch: {ceiling: 20%}}}}}
`, ScenarioOptions{})
	var names []string
	for _, p := range s.Policies {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"sluice", "naive", "own-shape", "tight"}, names); diff != "" {
		t.Fatal(diff)
	}
	limit := func(policy int, d sluice.Dimension) (amount int64) {
		for _, l := range s.Policies[policy].Principals[0].Policy.Limits[sluice.ScopeTenant] {
			if l.Dimension == d {
				amount = l.Amount
			}
		}
		return amount
	}
	if limit(0, sluice.InputTokens) != 1_000_000 || limit(1, sluice.InputTokens) != 0 || limit(3, sluice.InputTokens) != 60_000 {
		t.Errorf("input tokens per minute: %d, %d, %d", limit(0, sluice.InputTokens), limit(1, sluice.InputTokens), limit(3, sluice.InputTokens))
	}
	if limit(1, sluice.Requests) != 600 || !s.Policies[1].Table.Pools["chat"].Sharing.FIFO || s.Policies[0].Table.Pools["chat"].Sharing.FIFO {
		t.Error("naive is not first in, first out under limits of requests")
	}
	if got := s.Policies[2].Table.Pools["chat"].Sharing.Classes[sluice.Batch].Ceiling; got != 200 {
		t.Errorf("ceiling %d, want 200", got)
	}
}

func TestScenarioEvents(t *testing.T) {
	s := mustScenario(t, serves+`
traffic: [{tenant: a, arrivals: 1/s, input: 1k, output: 10, max_tokens: 50}, {tenant: b, arrivals: 1/s, input: 1k, output: 10}]
events:
  - {at: 40s, apply: {plans: {std: {weight: 9}}}}
  - {at: 10s, lose: {share: 25%, pool: chat}, phase: after}
  - {at: 20s, label: back, up: gpu-4}
  - {at: 20s, slow: {backends: [gpu-1, gpu-2], speed: 40%}}
  - {at: 25s, fail: {backends: chat, share: 50%, reason: upstream_limited, after: 100ms}}
  - {at: 30s, traffic: {sources: [a], rate: 2.5, input: 20k, client: {patience: 1s}}}
  - {at: 35s, apply: {plans: {std: {limits: {input_tokens_per_minute: null, concurrency: 3}}}, pools: {chat: {backends: [{name: gpu-4, weight: 0}, {name: gpu-5, provider: gpus, model: m}]}}}}
acts:
  more: {about: adds a replica, events: [{at: 45s, apply: {pools: {chat: {backends: [{name: gpu-6, provider: gpus, model: m}]}}}}, {at: 50s, down: gpu-1}]}
`, ScenarioOptions{})
	rate, input, client := 2.5, tabletop.Lengths{Mean: 20_000}, tabletop.Client{Bound: 50, Patience: time.Second}
	want := []tabletop.Event{
		{At: 10 * time.Second, Label: "25% lost: gpu-4", Phase: "after", Backends: &tabletop.Backends{IDs: []sluice.BackendID{"gpu-4"}, Down: true}},
		{At: 20 * time.Second, Label: "back", Backends: &tabletop.Backends{IDs: []sluice.BackendID{"gpu-4"}, Up: true}},
		{At: 20 * time.Second, Label: "gpu-1, gpu-2 at 40% of their speed", Backends: &tabletop.Backends{IDs: []sluice.BackendID{"gpu-1", "gpu-2"}, Speed: 400}},
		{
			At: 25 * time.Second, Label: "50% of attempts fail at chat: upstream_limited",
			Backends: &tabletop.Backends{IDs: []sluice.BackendID{"gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6"}, Fail: &tabletop.Fail{Permille: 500, Reason: sluice.UpstreamLimited, After: 100 * time.Millisecond}},
		},
		{At: 30 * time.Second, Label: "traffic changes: a", Traffic: &tabletop.Traffic{Sources: []int{0}, Rate: &rate, Input: &input, Client: &client}},
	}
	if diff := cmp.Diff(want, s.Events[:5]); diff != "" {
		t.Error(diff)
	}
	// The patches come on top of each other, in order of time.
	first, second := s.Events[5].Apply, s.Events[6].Apply
	if len(first) != 2 || len(second) != 2 || first[0].Name != "sluice" || first[1].Name != "naive" {
		t.Fatalf("a patch is not there for every policy: %+v", s.Events)
	}
	backends := func(v tabletop.Variant) (n int, weight int64) {
		b := v.Table.Pools["chat"].Backends
		return len(b), b[3].Weight
	}
	if n, w := backends(second[0]); n != 5 || w != 0 {
		t.Errorf("%d backends, gpu-4 has weight %d: want 5 and 0", n, w)
	}
	p := second[0].Principals[0].Policy
	if p.Weight != 9 || len(p.Limits[sluice.ScopeTenant]) != 2 {
		t.Errorf("weight %d, limits %v", p.Weight, p.Limits[sluice.ScopeTenant])
	}
	if n, _ := backends(s.Policies[0]); n != 4 || s.Policies[0].Principals[0].Policy.Weight != 1 {
		t.Error("a patch has changed what was before it")
	}
	act := s.Acts[0]
	if n, _ := backends(act.Events[0].Apply[0]); n != 6 || act.Name != "more" || act.About != "adds a replica" || act.Events[1].Backends == nil {
		t.Errorf("the act is not on top of the events: %d backends", n)
	}
	if len(s.Machines) != 6 {
		t.Errorf("%d backends are played, want 6", len(s.Machines))
	}
}

// A configuration of production is rehearsed as it is, secrets and keys aside.
func TestScenarioOfAFile(t *testing.T) {
	data, err := os.ReadFile("testdata/design.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a := &txtar.Archive{Files: []txtar.File{{Name: "sluice.yaml", Data: data}}}
	s := mustScenario(t, `
length: 1m
gateway:
  file: sluice.yaml
  providers: {gpus: {price: free}, openai: {price: {input: $1, output: $2}}}
  tenants: {acme: {limits: {concurrency: 5}}}
fleet:
  chat-eu: {prefill_rate: 30k, step_base: 8ms}
  oai: {hosted: {latency: 300ms, prefill_rate: 50k, token_time: 10ms, requests_per_minute: 500, errors: 0.5%}}
traffic: [{tenant: acme, arrivals: 1/s, input: 1k, output: 10, model: fast}]
`, ScenarioOptions{Open: archived(a)})
	p := s.Policies[0].Principals[0]
	if p.Tenant != "acme" || p.Policy.Plan != "standard" || s.Sources[0].Class != sluice.Interactive || len(p.Policy.Limits[sluice.ScopeTenant]) != 5 {
		t.Errorf("got %+v %+v", p, p.Policy)
	}
	want := fleet.Service{Latency: 300 * time.Millisecond, PrefillRate: 50_000, TokenTime: 10 * time.Millisecond, RequestsPerMinute: 500, Faults: fleet.Faults{ErrorPermille: 5}}
	if diff := cmp.Diff(&want, s.Machines[2].Hosted); diff != "" || s.Machines[2].Backend != "oai" {
		t.Errorf("%s: %s", s.Machines[2].Backend, diff)
	}
}

func TestScenarioTraces(t *testing.T) {
	a := &txtar.Archive{Files: []txtar.File{
		{Name: "azure.csv", Data: []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,374,44\n2023-11-16 18:15:50.5,396,109\n")},
		{Name: "mooncake.jsonl", Data: []byte(`{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]}` + "\n" + `{"timestamp": 1500, "input_length": 1024, "output_length": 6, "hash_ids": [0, 2]}` + "\n")},
		{Name: "own.csv", Data: []byte("who,when,in,out\nx,10,100,20\ny,11,5,6\nx,12,7,8\n")},
	}}
	dir := t.TempDir()
	given := filepath.Join(dir, "given.csv")
	if err := os.WriteFile(given, []byte("req_time_s,client,prompt_len,output_len\n1,c,1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustScenario(t, serves+`
traffic:
  - {name: azure, tenant: a, arrivals: {trace: {file: azure.csv, scale: 2, loop: true}}}
  - {name: blocks, tenant: a, arrivals: {trace: {file: mooncake.jsonl}}}
  - {name: own, tenant: a, arrivals: {trace: {file: own.csv, client: x, columns: {at: when, input: in, output: out, client: who, unit: ms}}}}
  - {name: shape, tenant: a, arrivals: {trace: {shape: vtc-arena, limit: 50}}}
  - {name: replaced, tenant: a, arrivals: {trace: {file: absent.csv, columns: {at: a, input: b, output: c}}}}
`, ScenarioOptions{Open: archived(a), Traces: map[string]string{"replaced": given}})
	rows := func(i int) []tabletop.Row { return s.Sources[i].Arrivals.Rows }
	if got := s.Sources[0].Arrivals; got.Process != tabletop.Trace || got.Rate != 2 || !got.Loop {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]tabletop.Row{{Input: 374, Output: 44, Line: 2}, {At: 4 * time.Second, Input: 396, Output: 109, Line: 3}}, rows(0)); diff != "" {
		t.Error(diff)
	}
	if b := rows(1); len(b) != 2 || b[0].Blocks[0] != b[1].Blocks[0] || b[0].Blocks[1] == b[1].Blocks[1] {
		t.Errorf("blocks that are shared are not alike, or others are: %+v", b)
	}
	if diff := cmp.Diff([]tabletop.Row{{Input: 100, Output: 20, Line: 2}, {At: 2 * time.Millisecond, Input: 7, Output: 8, Line: 4}}, rows(2)); diff != "" {
		t.Error(diff)
	}
	if len(rows(3)) != 50 || len(rows(4)) != 1 {
		t.Errorf("%d and %d rows, want 50 and 1", len(rows(3)), len(rows(4)))
	}
	_, err := ReadScenario("scenario.yaml", []byte(serves+"traffic: [{tenant: a, arrivals: 1/s, input: 1, output: 1}]\n"), ScenarioOptions{Traces: map[string]string{"b": given, "a": filepath.Join(dir, "none")}})
	ps, _ := errors.AsType[Problems](err)
	if len(ps) != 2 || !strings.Contains(ps.Error(), "cannot read the trace") || !strings.Contains(ps.Error(), `no source "b"`) {
		t.Errorf("got %v", err)
	}
}

// TestScenarioTraceLoops: a recording in which hardly any time passes cannot be played
// for ever.
func TestScenarioTraceLoops(t *testing.T) {
	a := &txtar.Archive{Files: []txtar.File{{Name: "own.csv", Data: []byte("when,in,out\n1,5,6\n2,5,6\n")}}}
	_, err := ReadScenario("scenario.yaml", []byte(serves+"traffic: [{tenant: a, arrivals: {trace: {file: own.csv, loop: true, columns: {at: when, input: in, output: out, unit: ns}}}}]\n"), ScenarioOptions{Open: archived(a)})
	if ps, _ := errors.AsType[Problems](err); len(ps) != 1 || !strings.Contains(ps.Error(), "too much for one source") {
		t.Errorf("got %v", err)
	}
}

// TestScenarioTraceLasts: rows that are made up, or drawn from rates, last for as long
// as a run can play them, and no longer.
func TestScenarioTraceLasts(t *testing.T) {
	var rates strings.Builder
	rates.WriteString("client,window_start_s,rate_rps,cv_iat,pattern,arg1,arg2\n")
	for window := range 144 {
		rates.WriteString(fmt.Sprintf("1,%d,90,1,Gamma,1,1\n", window*600))
	}
	a := &txtar.Archive{Files: []txtar.File{{Name: "day_rates.csv", Data: []byte(rates.String())}}}
	s := mustScenario(t, serves+`
traffic:
  - {name: plain, tenant: a, arrivals: {trace: {shape: azure-conv}}}
  - {name: scaled, tenant: a, arrivals: {trace: {shape: azure-conv, scale: 4}}}
  - {name: grows, tenant: a, arrivals: {trace: {shape: azure-conv, scale: 2}}}
  - {name: acted, tenant: a, arrivals: {trace: {shape: azure-conv}}}
  - {name: rates, tenant: a, arrivals: {trace: {file: day_rates.csv}}}
events: [{at: 10s, traffic: {sources: grows, rate: 3}}]
acts: {more: {events: [{at: 10s, traffic: {sources: acted, rate: 8}}]}}
`, ScenarioOptions{Open: archived(a)})
	for i, want := range []float64{1, 4, 6, 8, 1} {
		rows := s.Sources[i].Arrivals.Rows
		if got := rows[len(rows)-1].At.Seconds() / s.Length.Seconds(); got < 0.8*want || got > want {
			t.Errorf("%s: its rows last for %.2f of the length, want %g", s.Sources[i].Name, got, want)
		}
	}
}

// Whatever a file says, reading it ends, with a scenario that can be run or with
// problems.
func FuzzReadScenario(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txtar"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Add([]byte(serves + "traffic: [{tenant: a, arrivals: 1/s, input: 1k, output: 10}]\n"))
	nothing := func(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadScenario("scenario.yaml", data, ScenarioOptions{Open: nothing})
		if err != nil {
			if ps, ok := errors.AsType[Problems](err); !ok || len(ps) == 0 {
				t.Errorf("not told as problems: %v", err)
			}
			return
		}
		if len(s.Sources) == 0 || len(s.Machines) == 0 || len(s.Policies) < 2 || s.Length <= s.Warmup {
			t.Errorf("accepted, and cannot be run: %+v", s)
		}
		for _, p := range s.Policies {
			if len(p.Principals) != len(s.Sources) || p.Table.Validate() != nil {
				t.Errorf("policy %s is not whole", p.Name)
			}
		}
	})
}
