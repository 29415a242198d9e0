package telemetry

import (
	"strings"
	"testing"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/engine"
)

func TestDemandLevels(t *testing.T) {
	m := New(Options{})
	m.Declare(table())
	level := func(id sluice.PoolID, prefill int64, scaled bool) PoolLevel {
		d := engine.DemandView{Scaled: scaled, Replicas: demand.Replicas{Listed: 8, Serving: 4}, Desired: 6}
		for k := range d.Ratios {
			d.Ratios[k] = -1
		}
		d.Ratios[demand.Prefill] = prefill
		return PoolLevel{Pool: id, Demand: d}
	}
	m.Watch(func() Levels {
		return Levels{Pools: []PoolLevel{level("chat", 1_250_000, true), level("x", 300_000, false), level("y", 700_000, true), level("z", 500_000, true)}}
	})
	_, text := series(t, m)
	for _, want := range []string{
		`sluice_pool_demand_ratio{dimension="prefill",pool="chat"} 1.25`,
		`sluice_pool_demand_ratio{dimension="prefill",pool="other"} 0.7`,
		`sluice_pool_replicas{pool="chat"} 4`,
		`sluice_pool_desired_replicas{pool="chat"} 6`,
		`sluice_pool_desired_replicas{pool="other"} 12`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the scrape has no %s", want)
		}
	}
	if strings.Contains(text, `dimension="decode"`) {
		t.Error("what is not known has a series")
	}
}
