package proxy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/quota"
)

const (
	hRun       = "Sluice-Run"
	hRunLimits = "Sluice-Run-Limits"
)

// run reads the run that the request is part of and what it asks that to be
// bounded by. A bound that is looser than the plan's becomes the plan's, and is
// named in sluice-dropped.
func (c *call) run(req *exchange.Request) error {
	id, bounds := c.r.Header[hRun], c.r.Header[hRunLimits]
	if len(id) > 0 {
		if err := validName("sluice-run", id[0]); err != nil {
			return err
		}
		c.principal.Run = sluice.RunID(id[0])
		req.Principal.Run = c.principal.Run
	}
	if len(bounds) == 0 {
		return nil
	}
	if len(id) == 0 {
		e := sluice.Invalid("sluice-run-limits", "is given without sluice-run: it bounds the run that this names")
		e.Hint = "name the run, or leave it out"
		return e
	}
	limits, err := parseRunLimits(bounds[0])
	if err != nil {
		return err
	}
	if p := c.principal.Policy; p != nil && p.Mode == sluice.Enforce {
		for i := range limits {
			for _, own := range p.Limits[sluice.ScopeRun] {
				if l := &limits[i]; own.Dimension == l.Dimension && own.Amount < l.Amount {
					l.Amount = own.Amount
					c.drop("sluice-run-limits." + quota.RunBoundName(own.Dimension) + "=" + boundText(own))
				}
			}
		}
	}
	req.RunLimits = limits
	return nil
}

func parseRunLimits(s string) ([]sluice.Limit, error) {
	var out []sluice.Limit
	for pair := range strings.SplitSeq(s, ",") {
		name, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return nil, sluice.Invalid("sluice-run-limits", "has %q: write bounds such as steps=50,tokens=1M,spend=$2,time=10m", pair)
		}
		l, err := quota.ParseRunBound(strings.TrimSpace(name), strings.TrimSpace(text))
		if err != nil {
			return nil, sluice.Invalid("sluice-run-limits", "is wrong: %s", err)
		}
		if slices.ContainsFunc(out, func(o sluice.Limit) bool { return o.Dimension == l.Dimension }) {
			return nil, sluice.Invalid("sluice-run-limits", "has %s twice: give it once", name)
		}
		out = append(out, l)
	}
	return out, nil
}

// boundText is a bound of a run as the header has it.
func boundText(l sluice.Limit) string {
	switch l.Dimension {
	case sluice.Spend:
		return sluice.Nano(l.Amount).String()
	case sluice.RunTime:
		return time.Duration(l.Amount).String()
	}
	return strconv.FormatInt(l.Amount, 10)
}

// drop notes what of the request's own headers had less effect than it asked for.
func (c *call) drop(what string) {
	if c.dropping != "" {
		c.dropping += ", "
	}
	c.dropping += what
}
