package tabletop

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

func benchProfile() fleet.Profile { return fleet.Llama8BOnH100() }

// benchWorld is 20 tenants on 8 replicas at 100 requests/s, which keeps these busy,
// with 300 tokens of output on average.
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

// busy is the processor time that this process has taken: what a benchmark tells on
// a machine that others use too.
func busy(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRun is simulated requests per second of one core: of processor time, the
// collector's included. Under a load that the fleet can just take, and under twice as much.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name string
		rate float64
	}{{"busy", 5}, {"overloaded", 10}} {
		b.Run(c.name, func(b *testing.B) {
			s := benchWorld(10 * time.Minute)
			for i := range s.Sources {
				s.Sources[i].Arrivals.Rate = c.rate
			}
			var n int64
			before := busy(b)
			b.ReportAllocs()
			for b.Loop() {
				n += mustRun(b, s, Options{}).Phases[0].All.Requests
			}
			b.ReportMetric(float64(n)/(busy(b)-before).Seconds(), "requests/cpu-s")
		})
	}
}
