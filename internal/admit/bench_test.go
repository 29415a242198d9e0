package admit_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/engine"
)

// BenchmarkAdmit is a request's life through the lock, from many goroutines.
func BenchmarkAdmit(b *testing.B) {
	g := admit.New(engine.New(engine.Config{Table: table(1 << 20)}), admit.Options{})
	defer g.Close()
	p := limits(true,
		sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1e12},
		sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 1e15},
		sluice.Limit{Dimension: sluice.Concurrency, Amount: 1e6},
		sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1e18})
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c := call(fmt.Sprint("k", n.Add(1)), p)
		for pb.Next() {
			c.ID = sluice.RequestID(fmt.Sprint("b", n.Add(1)))
			grant, err := g.Admit(b.Context(), c)
			if err != nil {
				b.Error(err)
				return
			}
			_ = grant.Settle(engine.Actual{Usage: sluice.Usage{Input: 100, Output: 10}, Cost: 1000})
		}
	})
}
