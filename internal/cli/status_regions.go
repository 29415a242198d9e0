package cli

import (
	"fmt"
	"strings"

	"sluice/internal/admin"
)

// regionsText is the table of regions: nothing where no model has a locality. Attempts
// are those of the last half to whole minute.
func regionsText(b *strings.Builder, s *admin.Status) error {
	if len(s.Regions) == 0 {
		return nil
	}
	v := view{columns: []string{"region", "state", "backends", "home lately", "away lately", "headroom", "used", "away running", "away waiting"}}
	for i := range s.Regions {
		r := &s.Regions[i]
		state := r.State
		if r.State == "returning" {
			state = fmt.Sprintf("%s %.0f%%", r.State, 100*r.Share)
		}
		away := count(r.Away)
		if all := r.Home + r.Away; r.Away > 0 {
			away += fmt.Sprintf(" (%.0f%%)", 100*float64(r.Away)/float64(all))
		}
		v.rows = append(v.rows, []string{
			r.Region, state, fmt.Sprintf("%d of %d", r.Backends, r.Of), count(r.Home), away,
			fmt.Sprintf("%.0f%%", 100*r.Headroom), fmt.Sprintf("%.0f%%", 100*r.HeadroomUsed), count(r.AwayRunning), count(r.AwayWaiting),
		})
	}
	b.WriteString("\n")
	return table(b, v)
}
