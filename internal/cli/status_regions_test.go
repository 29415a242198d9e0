package cli

import (
	"strings"
	"testing"

	"sluice/internal/admin"
)

func TestRegionsText(t *testing.T) {
	var b strings.Builder
	if err := regionsText(&b, &admin.Status{}); err != nil || b.Len() > 0 {
		t.Errorf("without regions: %v, %q", err, b.String())
	}
	s := admin.Status{Regions: []admin.RegionStatus{
		{Region: "eu-west", State: "returning", Share: 0.325, Backends: 1, Of: 3, Home: 12, Headroom: 0.34},
		{Region: "us-east", State: "healthy", Share: 1, Backends: 3, Of: 3, Home: 60, Away: 20, Headroom: 0.41, HeadroomUsed: 1, AwayRunning: 39, AwayWaiting: 7},
	}}
	if err := regionsText(&b, &s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"returning 32%", "1 of 3", "20 (25%)", "41%", "100%", "39", "7"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
