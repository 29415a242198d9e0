package route

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"sluice"
	"sluice/internal/sched"
)

// Validate reports every way in which a table cannot be put into force. The
// configuration is checked with file and line before it becomes a table; this
// holds for tables from anywhere.
func (t *Table) Validate() error {
	if t == nil {
		return errors.New("routing table is missing")
	}
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	seen := make(map[sluice.BackendID]sluice.PoolID)
	for _, id := range slices.Sorted(maps.Keys(t.Pools)) {
		p := t.Pools[id]
		if p == nil || p.ID != id {
			problem("pool %q is filed under another name", id)
			continue
		}
		if err := p.Ladder.Validate(); err != nil {
			problem("the ladder of pool %q: %w", id, err)
		}
		if n := len(p.Backends); n > sched.MaxBackends {
			problem("pool %q has %d backends, more than %d", id, n, sched.MaxBackends)
		}
		for _, b := range p.Backends {
			if b == nil || b.ID == "" {
				problem("pool %q has a backend without a name", id)
				continue
			}
			if other, ok := seen[b.ID]; ok {
				problem("backend %q is in pools %q and %q: a backend belongs to one pool", b.ID, other, id)
			}
			seen[b.ID] = id
			if b.Weight < 0 || b.Capacity.Concurrency < 0 || b.Capacity.KVTokens < 0 || b.Capacity.PrefillTokens < 0 {
				problem("backend %q has a negative weight or capacity", b.ID)
			}
			for i, k := range b.Keys {
				if k.ID == "" || k.Weight < 0 || k.Weight > MaxKeyWeight || slices.ContainsFunc(b.Keys[:i], func(o Key) bool { return o.ID == k.ID }) {
					problem("backend %q has a credential without a name of its own, or with a weight out of range", b.ID)
				}
			}
			if slices.Min(b.Capacity.Rates[:]) < 0 || slices.Max(b.Capacity.Rates[:]) > MaxRate {
				problem("backend %q has a rate out of range", b.ID)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.Models)) {
		m := t.Models[id]
		if m == nil || m.ID != id {
			problem("model %q is filed under another name", id)
			continue
		}
		if len(m.Pools) == 0 {
			problem("model %q has no pool", id)
		}
		for _, p := range slices.Concat(m.Pools, m.Fallback) {
			if t.Pools[p] == nil {
				problem("model %q names the pool %q, which does not exist", id, p)
			}
		}
		if m.Hedge != nil && !m.Hedge.valid() {
			problem("model %q: hedging takes a time from %v to %v, or a share from %d to %d thousandths", id, MinHedgeAfter, MaxHedgeAfter, MinHedgePermille, MaxHedgePermille)
		}
		errs = append(errs, m.terms()...)
		errs = append(errs, t.locality(m))
		errs = append(errs, m.shadows(t.Pools)...)
		errs = append(errs, validateLimits("model "+string(id), m.Limits))
	}
	errs = append(errs, validateLimits("fleet", t.Fleet), t.headroom())
	if r := t.Retries; r.Attempts < 0 || r.Attempts > MaxAttempts || r.Share > 1000 || r.Minimum > MaxRetryMinimum {
		problem("retries out of range: at most %d attempts, 1000 thousandths and %d a second", MaxAttempts, MaxRetryMinimum)
	}
	if !t.Breaker.inRange() {
		problem("breaker out of range: shares are thousandths, times at most %v", MaxBreakTime)
	}
	return errors.Join(errs...)
}

func validateLimits(of string, limits []sluice.Limit) error {
	for _, l := range limits {
		if l.Amount <= 0 || int(l.Dimension) >= sluice.NumDimensions || int(l.Window) >= sluice.NumWindows ||
			l.Dimension.Gauge() != (l.Window == sluice.NoWindow) {
			return fmt.Errorf("limit %v per %v of %s: use a positive amount, and a window unless it is a gauge", l.Dimension, l.Window, of)
		}
	}
	return nil
}
