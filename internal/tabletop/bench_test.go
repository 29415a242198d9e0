package tabletop

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

func benchProfile() fleet.Profile { return fleet.Llama8BOnH100() }

// benchWorld is 20 tenants on 8 replicas at a rate that keeps these busy, 300 tokens
// of output on average.
func benchWorld(length time.Duration) *Scenario {
	var sources []Source
	for i := range 20 {
		x := tenant(fmt.Sprintf("t%02d", i), 5, 0, 0)
		x.Class = sluice.Class(i % 3)
		x.Input = Lengths{Shape: LogNormal, P50: 600, P99: 4000, Max: 16_000}
		x.Output = Lengths{Shape: LogNormal, P50: 210, P99: 1500, Max: 4000}
		x.Client = Client{Bound: 4096, Patience: 30 * time.Second}
		sources = append(sources, x)
	}
	s := world(8, benchProfile(), sources...)
	s.Length = length
	return s
}

// BenchmarkRun is simulated requests per second of one core.
func BenchmarkRun(b *testing.B) {
	s := benchWorld(10 * time.Minute)
	var n int64
	b.ReportAllocs()
	for b.Loop() {
		r := mustRun(b, s, Options{})
		n += r.Phases[0].All.Requests
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "requests/s")
}
