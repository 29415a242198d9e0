package cli

import (
	"fmt"
	"strings"

	"sluice/internal/admin"
)

// demandText is the table of what pools are asked for, of what they supply.
func demandText(b *strings.Builder, s *admin.Status) error {
	v := view{columns: []string{"pool", "demand", "of", "prefill", "decode", "kv", "slots", "replicas", "desired"}}
	for i := range s.Pools {
		d := &s.Pools[i].Demand
		if d.Binding == "" {
			continue
		}
		row := []string{s.Pools[i].Pool, wholePercent(d.Ratio), strings.ReplaceAll(d.Binding, "_", " ")}
		for _, k := range []string{"prefill", "decode", "kv_tokens", "slots"} {
			cell := ""
			if n, known := d.Ratios[k]; known {
				cell = wholePercent(n)
			}
			row = append(row, cell)
		}
		replicas, desired := "", ""
		if d.Desired != nil {
			replicas, desired = fmt.Sprintf("%d of %d", *d.Replicas, *d.Listed), count(*d.Desired)
		}
		v.rows = append(v.rows, append(row, replicas, desired))
	}
	if len(v.rows) == 0 {
		return nil
	}
	b.WriteString("\n")
	return table(b, v)
}

func wholePercent(ratio float64) string { return fmt.Sprintf("%.0f%%", 100*ratio) }
