package config

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"sluice"
	"sluice/internal/route"
)

// Hedge gives a request whose first content is late a second attempt beside the first.
type Hedge struct {
	After   HedgeAfter     `json:"after" jsonschema:"how long the first content may take: a time such as 800ms, or p95, within which 95% of the first contents of the pool have come of late, from p50 to p99.9"`
	Classes []sluice.Class `json:"classes,omitempty" jsonschema:"classes that are hedged: interactive, standard, batch; interactive if left out"`
}

// HedgeAfter is a time, or a percentile of what is learned of a pool: 800ms, p95, p99.5.
type HedgeAfter struct {
	Time     Duration
	Permille int64 // 0 is a time
}

const hedgeAfterFix = "write a time such as 800ms, from 1ms to 10m, or a percentile such as p95, from p50 to p99.9"

// UnmarshalText reads either.
func (h *HedgeAfter) UnmarshalText(b []byte) error {
	digits, is := strings.CutPrefix(string(b), "p")
	if !is {
		*h = HedgeAfter{}
		if err := h.Time.UnmarshalText(b); err != nil {
			return wrong(hedgeAfterFix, "%q is neither a time nor a percentile", b)
		}
		return nil
	}
	p, ok := new(big.Rat).SetString(digits)
	if !ok || strings.ContainsAny(digits, "/eExX_+-") {
		return wrong(hedgeAfterFix, "%q is no percentile", b)
	}
	if p.Mul(p, big.NewRat(10, 1)); !p.IsInt() || !p.Num().IsInt64() {
		return wrong(hedgeAfterFix, "%q is finer than a thousandth", b)
	}
	*h = HedgeAfter{Permille: p.Num().Int64()}
	if h.Permille < route.MinHedgePermille || h.Permille > route.MaxHedgePermille {
		return wrong(hedgeAfterFix, "%q is out of range", b)
	}
	return nil
}

func (h HedgeAfter) String() string {
	switch {
	case h.Permille == 0:
		return h.Time.String()
	case h.Permille%10 == 0:
		return fmt.Sprintf("p%d", h.Permille/10)
	}
	return fmt.Sprintf("p%d.%d", h.Permille/10, h.Permille%10)
}

// MarshalText writes what UnmarshalText reads.
func (h HedgeAfter) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// hedge is what the model hedges; nil if nothing, as by the naive policy.
func (m *Model) hedge(p Policy) *route.Hedging {
	if m.Hedge == nil || p == Naive {
		return nil
	}
	out := &route.Hedging{After: time.Duration(m.Hedge.After.Time), Permille: m.Hedge.After.Permille}
	for _, c := range m.Hedge.Classes {
		out.Classes[c] = true
	}
	if len(m.Hedge.Classes) == 0 {
		out.Classes[sluice.Interactive] = true
	}
	return out
}

// hedge reports a time that nothing can be hedged after, and classes that stand twice.
func (v *validator) hedge(path string, m *Model) {
	if m.Hedge == nil {
		return
	}
	at := join(path, "hedge")
	if t := time.Duration(m.Hedge.After.Time); m.Hedge.After.Permille == 0 && (t < route.MinHedgeAfter || t > route.MaxHedgeAfter) {
		cause := fmt.Sprintf("%v is out of range", m.Hedge.After)
		if t == 0 {
			cause = "nothing says when a first content is late"
		}
		v.fail(join(at, "after"), hedgeAfterFix, "%s", cause)
	}
	for i, c := range m.Hedge.Classes {
		for _, before := range m.Hedge.Classes[:i] {
			if c == before {
				v.fail(index(join(at, "classes"), i), "remove it", "%q stands twice", c)
			}
		}
	}
}

// hedge warns of hedging that never happens, or that helps nobody.
func (l *linter) hedge(path string, m *Model) {
	if m.Hedge == nil {
		return
	}
	at := join(path, "hedge")
	r := l.c.Retries
	switch {
	case l.c.Policy == Naive:
		l.warn(at, "write policy: fair, or leave it out at the top", "not in force with policy: naive")
		return
	case r.Attempts <= 1:
		l.warn(at, "write retries: {attempts: 2} or more, or remove it", "a hedge is an attempt, and a request may have one")
		return
	case r.Budget == 0 && r.Minimum == 0:
		l.warn(at, "give retries a budget, or remove it", "a hedge takes of the retry budget, and there is none")
		return
	}
	backends, domains := 0, make(map[string]bool)
	for _, name := range m.names() {
		if p := l.c.Pools[name]; p != nil {
			for i := range p.Backends {
				backends++
				domains[p.Backends[i].domain()] = true
			}
		}
	}
	switch {
	case backends < 2:
		l.warn(at, "add a backend to its pools, or remove it", "the model's first pools have one backend: there is none to hedge on, since fallbacks are for what has failed")
	case len(domains) < 2:
		l.warn(at, "name the domain of each backend, or add one in another", "all backends of the model's first pools are in one failure domain: a hedge shares the fate of what it is beside")
	}
}
