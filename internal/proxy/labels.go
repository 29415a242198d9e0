package proxy

import (
	"strings"

	"sluice"
)

// parseLabels validates the sluice-labels header: at most sluice.MaxLabels pairs
// k=v, comma-separated, in the alphabet of a task, each key once. Order is kept.
func parseLabels(s string) ([]sluice.Label, error) {
	if s == "" {
		return nil, nil
	}
	var out []sluice.Label
	for pair := range strings.SplitSeq(s, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || k == "" {
			return nil, sluice.Invalid("sluice-labels", "has %q: write key=value, comma-separated", pair)
		}
		if _, err := sluice.ParseTask(k); err != nil {
			return nil, sluice.Invalid("sluice-labels", "key %q: use at most %d of a-z, 0-9, dot, underscore and hyphen", k, sluice.MaxTask)
		}
		if _, err := sluice.ParseTask(v); err != nil {
			return nil, sluice.Invalid("sluice-labels", "value of %q: use at most %d of a-z, 0-9, dot, underscore and hyphen", k, sluice.MaxTask)
		}
		for _, l := range out {
			if l.Key == k {
				return nil, sluice.Invalid("sluice-labels", "has the key %q twice", k)
			}
		}
		if len(out) == sluice.MaxLabels {
			return nil, sluice.Invalid("sluice-labels", "has more than %d labels", sluice.MaxLabels)
		}
		out = append(out, sluice.Label{Key: k, Value: v})
	}
	return out, nil
}
