package scrape_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
	"sluice/internal/scrape"
	"sluice/test/bubble"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text, model string
		want              route.Load
		ok                bool
	}{
		{"nothing", "# HELP x y\nother 1\n", "m", route.Load{KVPermille: -1}, false},
		{
			"vllm", `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.4215
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="27687"} 1.0
`, "m", route.Load{Running: 3, Waiting: 2, KVPermille: 422, KVCapacity: 442_992}, true,
		},
		{
			"vllm, old name, two engines, another model", `vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:num_requests_running{engine="1",model_name="m"} 4
vllm:num_requests_running{engine="0",model_name="other"} 100
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.1
vllm:gpu_cache_usage_perc{engine="1",model_name="m"} 0.7
`, "m", route.Load{Running: 7, KVPermille: 700}, true,
		},
		{
			"sglang", `sglang:num_running_reqs{model_name="m"} 5
sglang:num_queue_reqs{model_name="m"} 1
sglang:token_usage{model_name="m"} 0.28
sglang:cache_config_info{page_size="1",num_pages="100000"} 1
`, "m", route.Load{Running: 5, Waiting: 1, KVPermille: 280, KVCapacity: 100_000}, true,
		},
		{"served under another name", "vllm:num_requests_running{model_name=\"org/m\"} 3\n", "m", route.Load{Running: 3, KVPermille: -1}, true},
		{"a label with braces", `vllm:num_requests_running{path="}\"{",model_name="m"} 3` + "\n", "m", route.Load{Running: 3, KVPermille: -1}, true},
		{"nonsense", "vllm:num_requests_running NaN\nvllm:num_requests_waiting -4\nvllm:kv_cache_usage_perc{ 1\nvllm:num_requests_running\n", "m", route.Load{KVPermille: -1}, false},
		{"a long line", "vllm:num_requests_running{x=\"" + strings.Repeat("x", 8<<10) + "\"} 3\n", "m", route.Load{KVPermille: -1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := scrape.Parse([]byte(c.text), c.model)
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
				t.Errorf("ok %v, want %v\n%s", ok, c.ok, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`vllm:kv_cache_usage_perc{model_name="m"} 0.4`))
	f.Add([]byte(`vllm:cache_config_info{block_size="16",num_gpu_blocks="9223372036854775807"} 1`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, _ := scrape.Parse(text, "m")
		r, _ := scrape.Report("TEXT " + string(text))
		for _, l := range []route.Load{l, r} {
			if l.Running < 0 || l.Waiting < 0 || l.KVPermille < -1 || l.KVPermille > 1000 || l.KVCapacity < 0 {
				t.Errorf("%+v", l)
			}
		}
	})
}

func TestReport(t *testing.T) {
	for v, want := range map[string]route.Load{
		"TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3.0, named_metrics.num_requests_running=5.0": {Running: 5, Waiting: 3, KVPermille: 400},
		`JSON {"named_metrics": {"kv_cache_usage_perc": 0.25, "num_requests_waiting": 3}}`:                                           {KVPermille: 250},
		"BIN x": {KVPermille: -1}, "TEXT": {KVPermille: -1}, "JSON {": {}, "": {KVPermille: -1},
	} {
		if got, _ := scrape.Report(v); got != want {
			t.Errorf("%s: %+v, want %+v", v, got, want)
		}
	}
}

func TestPoller(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var seen []time.Duration
		var failed int
		start := time.Now()
		p := scrape.Start(scrape.Options{
			Engines: func() []scrape.Engine {
				return []scrape.Engine{{Backend: "a", Model: "m", Every: time.Second}, {Backend: "dead", Model: "m", Every: 500 * time.Millisecond}}
			},
			Fetch: func(ctx context.Context, b sluice.BackendID) ([]byte, error) {
				if b == "dead" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return []byte("vllm:num_requests_running 1\n"), nil
			},
			Observe: func(s engine.Signal) {
				if s.Backend == "a" && s.Load.Every == time.Second && s.Load.Running == 1 {
					seen = append(seen, s.Load.At.Sub(start))
				}
			},
			Failed: func(b sluice.BackendID, err error, since time.Time) {
				if b != "dead" || !errors.Is(err, context.DeadlineExceeded) || !since.IsZero() {
					t.Errorf("%s: %v since %v", b, err, since)
				}
				failed++
			},
		})
		time.Sleep(3200 * time.Millisecond)
		p.Close()
		if len(seen) < 3 || len(seen) > 5 || failed < 4 {
			t.Errorf("asked at %v, the dead one failed %d times", seen, failed)
		}
	})
}
