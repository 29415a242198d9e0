package cli

import (
	"strings"
	"testing"

	"sluice/internal/admin"
)

func TestDemandText(t *testing.T) {
	var b strings.Builder
	if err := demandText(&b, &admin.Status{Pools: []admin.PoolStatus{{Pool: "far"}}}); err != nil || b.Len() > 0 {
		t.Errorf("where nothing is known: %v, %q", err, b.String())
	}
	replicas, listed, desired := int64(4), int64(8), int64(6)
	s := admin.Status{Pools: []admin.PoolStatus{
		{Pool: "chat", Demand: admin.PoolDemand{
			Ratio: 1.254, Binding: "engine", Ratios: map[string]float64{"prefill": 1.1, "decode": 0.154, "slots": 0.4, "engine": 1.254},
			Replicas: &replicas, Listed: &listed, Desired: &desired,
		}},
		{Pool: "far", Demand: admin.PoolDemand{Ratio: 0.07, Binding: "requests_per_minute", Ratios: map[string]float64{"requests_per_minute": 0.07, "slots": 0.01}}},
	}}
	if err := demandText(&b, &s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"125%", "engine", "110%", "15%", "4 of 8", "6", "7%", "requests per minute"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
