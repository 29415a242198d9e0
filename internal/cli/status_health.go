package cli

import (
	"fmt"
	"strings"

	"sluice/internal/admin"
)

// healthText is a backend's health in a cell: the share that it has while it comes
// back, or when it may be given something.
func healthText(b *admin.BackendStatus) string {
	switch {
	case b.RetryInSeconds > 0:
		return b.Health + " " + span(b.RetryInSeconds)
	case b.Share > 0 && b.Share < 1:
		return fmt.Sprintf("%s %.0f%%", b.Health, 100*b.Share)
	}
	return b.Health
}

// outText tells of pools, failure domains and credentials that are out. What is well
// is not told of.
func outText(b *strings.Builder, s *admin.Status) {
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Failed {
			fmt.Fprintf(b, "pool %s: none of its backends takes requests\n", plain(p.Pool))
		}
	}
	for _, d := range s.Domains {
		if d.Failed {
			fmt.Fprintf(b, "failure domain %s has failed: the breakers of %d of %s are open, and all of it is avoided while there is another\n", plain(d.Domain), d.Open, plural(d.Of, "backend"))
		}
	}
	for _, c := range s.Credentials {
		if c.State == "usable" {
			continue
		}
		at, why := "", "the provider refuses it"
		if c.State == "parked" {
			why = "its allowance is spent"
		}
		if c.Backend != "" {
			at = " at backend " + plain(c.Backend)
		}
		fmt.Fprintf(b, "credential %s is %s%s: %s; it is tried again in %s, or at once after sluice backend enable\n", plain(c.Credential), c.State, at, why, span(c.RetryInSeconds))
	}
}
