package admin

import (
	"slices"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/quota"
)

// RunLimits are the bounds of a run by name, as the configuration writes them:
// steps, input_tokens, output_tokens, tokens, spend and time. Their amounts are
// read as those of Limits; time is a duration such as "10m".
type RunLimits map[string]Amount

// runLimitsOf names the bounds of a run.
func runLimitsOf(ls []sluice.Limit) RunLimits {
	if len(ls) == 0 {
		return nil
	}
	out := make(RunLimits, len(ls))
	for _, l := range ls {
		out[quota.RunBoundName(l.Dimension)] = amount(l.Amount, l.Dimension)
	}
	return out
}

// apply returns the bounds of base changed by l, in a fixed order. top says that
// none stand above base, so that to lift one is to remove it.
func (l RunLimits) apply(base []sluice.Limit, param string, top bool) ([]sluice.Limit, error) {
	out := slices.Clone(base)
	for name := range l {
		if !slices.ContainsFunc(quota.RunBounds[:], func(b quota.RunBound) bool { return b.Name == name }) {
			return nil, hinted(sluice.Invalid(param+"."+name, "is no bound of a run"), "use steps, input_tokens, output_tokens, tokens, spend or time")
		}
	}
	for _, b := range quota.RunBounds {
		a, ok := l[b.Name]
		if !ok {
			continue
		}
		out = slices.DeleteFunc(out, func(l sluice.Limit) bool { return l.Dimension == b.Of })
		limit := sluice.Limit{Dimension: b.Of, Window: sluice.PerRun, Amount: auth.Unlimited}
		switch {
		case a.text == "" && !a.known, a.text == unlimited && top:
			continue
		case a.known:
			limit.Amount = a.n
		case a.text != unlimited:
			var err error
			if limit, err = quota.ParseRunBound(b.Name, a.text); err != nil {
				return nil, hinted(sluice.Invalid(param+"."+b.Name, "is wrong: %s", err), "write none for no bound")
			}
		}
		out = append(out, limit)
	}
	slices.SortFunc(out, func(a, b sluice.Limit) int { return int(a.Dimension) - int(b.Dimension) })
	return out, nil
}

// ceilings are the bounds of one request, as a plan and a key say them.
type ceilings struct{ input, output *sluice.Tokens }

func (c ceilings) set(input, output *int64) {
	if input != nil {
		*c.input = sluice.Tokens(*input)
	}
	if output != nil {
		*c.output = sluice.Tokens(*output)
	}
}

// told are they, nil where there is none.
func (c ceilings) told() (input, output *int64) {
	tell := func(n sluice.Tokens) *int64 {
		if n <= 0 {
			return nil
		}
		v := int64(n)
		return &v
	}
	return tell(*c.input), tell(*c.output)
}
