package config

import (
	"fmt"

	"sluice"
)

// headroom is how much of an amount is headroom of some class.
func (p *Pool) headroom(amount int64) (n int64) {
	for _, c := range p.classes() {
		n += amount/1000*c.Headroom + amount%1000*c.Headroom/1000
	}
	return n
}

// sharing warns of shares and contracts that do not do what they seem to.
func (l *linter) sharing(path string, p *Pool) {
	if l.c.Policy == Naive {
		for _, name := range []string{"classes", "contracts"} {
			if _, given := l.c.pos[join(path, name)]; given {
				l.warn(join(path, name), "write policy: fair, or leave it out at the top", "not in force with policy: naive")
			}
		}
		return
	}
	slots, kv := p.holds()
	for _, class := range sorted(p.Classes) {
		if h := p.Classes[class].Headroom; h != nil && *h > 0 && slots*h.thousandths() < 1000 {
			l.warn(join(join(join(path, "classes"), class), "headroom"), "raise it, or leave it out", "%d%% of the %d requests that the pool's backends hold at a time is less than one: none is kept free", *h, slots)
		}
	}
	for i, k := range p.Contracts {
		at := index(join(path, "contracts"), i)
		if l.c.Tenants[k.Tenant] == nil {
			l.warn(join(at, "tenant"), fmt.Sprintf("declare it under tenants, or create it: sluice tenant create %s", k.Tenant),
				"tenant %q is not declared here: the contract is for it once it exists", k.Tenant)
		}
		if most := l.c.concurrency(k.Tenant); most > 0 && most < int64(k.Concurrency) {
			l.warn(join(at, "concurrency"), "raise the limit, or lower the contract",
				"the limits of tenant %q let %d requests run at a time: the rest of the %d that are reserved is never used", k.Tenant, most, k.Concurrency)
		}
		if k.KVTokens > 0 && kv == 0 {
			l.warn(join(at, "kv_tokens"), "add capacity: {kv_tokens: N} to each backend of the pool, or remove it",
				"reserves no memory, since that of the pool is not bounded; it bounds what runs inside of the contract")
		}
	}
}

// concurrency is the limit that a declared tenant has as a whole, 0 if it has none.
func (c *Config) concurrency(tenant string) (most int64) {
	t := c.Tenants[tenant]
	if t == nil {
		return 0
	}
	lists, mode := []Limits{t.Limits}, t.LimitsMode
	if p := c.Plans[t.Plan]; p != nil {
		lists = append([]Limits{p.Limits}, lists...)
		if mode == "" {
			mode = p.LimitsMode
		}
	}
	if mode.mode() != sluice.Enforce {
		return 0
	}
	for _, list := range lists { // the tenant's own replaces the plan's, or lifts it
		for _, limit := range list {
			if limit.Dimension == sluice.Concurrency {
				most = max(limit.Amount, 0)
			}
		}
	}
	return most
}

// naive warns of all that the policy leaves out.
func (l *linter) naive() {
	if l.c.Policy != Naive {
		return
	}
	ignored := 0
	for _, list := range l.c.limits() {
		for _, limit := range list {
			if !naively(limit) {
				ignored++
			}
		}
	}
	cause := "naive is what most gateways do: requests and spend are limited, every pool serves in order of arrival, and a failed attempt is retried twice. " +
		"Limits of tokens, concurrency and KV memory are not in force, nor are classes, weights, contracts, headroom, breakers and the retry budget"
	switch {
	case ignored == 1:
		cause += "; 1 limit of this file is not"
	case ignored > 1:
		cause += fmt.Sprintf("; %d limits of this file are not", ignored)
	}
	l.warn("policy", "use it to compare with, and policy: fair, the default, to serve with", "%s", cause)
}

// naively reports whether a limit is in force with the naive policy.
func naively(l sluice.Limit) bool {
	return l.Dimension == sluice.Requests || l.Dimension == sluice.Spend
}
