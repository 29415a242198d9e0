package config

import (
	"sluice/internal/route"
)

// Retries bounds the attempts that follow failed ones.
type Retries struct {
	Budget   Percent `json:"budget" zero:"meant" jsonschema:"retries for each first attempt over the last 10s: of all, of each tenant, and of each backend that is given one"`
	Minimum  Count   `json:"minimum" zero:"meant" jsonschema:"retries per second that each of these budgets has in any case, up to 1000"`
	Attempts int64   `json:"attempts,omitempty" jsonschema:"most attempts of one request, the first included, from 1 to 10; each at another backend"`
}

func (r *Retries) setDefaults() {
	*r = Retries{Budget: route.DefaultRetryShare / 10, Minimum: route.DefaultRetryMinimum, Attempts: route.DefaultAttempts}
}

// retries is the policy in force.
func (c *Config) retries() route.RetryPolicy {
	if c.Policy == Naive {
		return route.NaiveRetries()
	}
	none := func(n int64) int64 {
		if n == 0 {
			return -1 // zero takes the default there
		}
		return n
	}
	return route.RetryPolicy{
		Attempts: int(c.Retries.Attempts), Share: none(c.Retries.Budget.thousandths()), Minimum: none(int64(c.Retries.Minimum)),
	}
}

func (v *validator) retries() {
	r := v.c.Retries
	if r.Attempts < 1 || r.Attempts > route.MaxAttempts {
		v.fail("retries.attempts", "write a number from 1, which retries nothing, to 10", "%d is out of range", r.Attempts)
	}
	if r.Minimum > route.MaxRetryMinimum {
		v.fail("retries.minimum", "write retries per second, such as 1", "%d is more than 1000", r.Minimum)
	}
}

// retries warns of a budget that is no bound, or not in force.
func (l *linter) retries() {
	_, given := l.c.pos["retries"]
	switch {
	case given && l.c.Policy == Naive:
		l.warn("retries", "write policy: fair, or leave it out at the top", "not in force with policy: naive, which retries twice whatever happens")
	case l.c.Retries.Budget > 50:
		l.warn("retries.budget", "write 10%", "%d%% lets retries nearly double what failing backends are sent, when they can bear it least", l.c.Retries.Budget)
	}
}
