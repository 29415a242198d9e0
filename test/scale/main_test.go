package scale

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"sluice/test/gateway"
)

func TestMain(m *testing.M) { gateway.Main(m) }

// full reports whether the tests are as large as what they prove.
func full(t *testing.T) bool {
	t.Helper()
	switch v := os.Getenv("SLUICE_SCALE"); v {
	case "":
		return false
	case "full":
		return true
	default:
		t.Fatalf("SLUICE_SCALE is %q: write full, or leave it out", v)
		return false
	}
}

// sized is one of two sizes of a test.
func sized[T any](t *testing.T, ordinary, whole T) T {
	t.Helper()
	if full(t) {
		return whole
	}
	return ordinary
}

// The tenants.
const (
	plain  = "plain"  // soft spend, limits that nobody reaches
	hourly = "hourly" // 1,000 requests per hour
)

// configuration puts one backend behind one model, and more what a test adds.
func configuration(url, more string) string {
	return fmt.Sprintf(`
log: {level: error}
providers:
  lean: {dialect: openai, base_url: "%s/v1", stops_on_cancel: true, price: {input: $0.10, output: $0.40}}
pools:
  pool:
    backends: [{name: lean, provider: lean, model: up, context: 8M, max_output: 64k, capacity: {concurrency: 8k}}]
    queue: {requests: 10k, bytes: 1GB, work: 1000M}
models:
  fast: {pools: [pool]}
plans:
  plain: {class: interactive, spend: soft, limits: {spend_per_month: $1000000, requests_per_day: 10M, concurrency: 8k}}
  hourly: {class: interactive, spend: soft, limits: {requests_per_hour: 1000}}
%s
`, url, more)
}

// start brings up a gateway before a provider.
func start(t *testing.T, url, more string) *gateway.Gateway {
	t.Helper()
	g := gateway.New(t, gateway.Options{Config: configuration(url, more), Tenants: map[string]string{plain: plain, hourly: hourly}})
	g.Start()
	return g
}

// quantile of durations, which it sorts.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}
