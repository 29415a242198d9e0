package route

import (
	"fmt"
	"slices"

	"sluice"
)

// Shadow is a pool that gets copies of a part of a model's requests, to see how it
// would serve them: nobody but the operator sees what it answers.
type Shadow struct {
	Pool    sluice.PoolID
	Share   int64             // of CanaryParts: the requests that are copied
	Tenants []sluice.TenantID // whose; empty is all
	Classes []sluice.Class    // empty is all
	MaxRisk sluice.Risk       // the highest label of what is copied; RiskNone is no bound
	Limits  []sluice.Limit    // of its own account, at ScopeShadow
}

// Skip is why a copy was not sent, empty if it was. It is a word of Left, the
// dimension of the account's limit that had no room, or one of these.
type Skip string

// Why a copy was not sent.
const (
	Sent         Skip = ""
	SkipSame     Skip = "same_pool"     // the request runs in that pool itself
	SkipEffects  Skip = "effects"       // the provider would run tools once more, or it names what only one provider has
	SkipWaiting  Skip = "waiting"       // somebody waits for the pool
	SkipReserved Skip = "reserved"      // what is free is kept for a class or a contract
	SkipBusy     Skip = "busy"          // as many copies run in this process as may
	SkipBytes    Skip = "bytes"         // the bodies of those that run have as many bytes as they may
	SkipShutdown Skip = "shutting_down" // the gateway drains
	SkipGone     Skip = "gone"          // the pool is not configured any more
)

// Copies are the model's shadows whose turn a request is, in their order. The draw is
// that of a canary, by the request or by what the model sticks to, but another one for
// each shadow: a shadow is not of the very requests that a canary takes. A larger share
// keeps the requests that it has.
func (m *Model) Copies(a *Asker) (out []*Shadow) {
	if len(m.Shadows) == 0 {
		return nil
	}
	key := m.key(a)
	for i := range m.Shadows {
		s := &m.Shadows[i]
		open := Terms{Tenants: s.Tenants, Classes: s.Classes}
		if int64(mix(hash(key, string(s.Pool)))%CanaryParts) < s.Share && open.open(a.Principal, a.Class) {
			out = append(out, s)
		}
	}
	return out
}

// Alone is the model as if the shadow's pool were all that serves it.
func (m *Model) Alone(s *Shadow) *Model {
	return &Model{ID: m.ID, Pools: []sluice.PoolID{s.Pool}, MaxSpend: m.MaxSpend, MaxRisk: s.Risks()}
}

// Risks is Model.MaxRisk for the shadow's pool.
func (s *Shadow) Risks() map[sluice.PoolID]sluice.Risk {
	if s.MaxRisk == sluice.RiskNone {
		return nil
	}
	return map[sluice.PoolID]sluice.Risk{s.Pool: s.MaxRisk}
}

// shadows reports shadows that cannot be put into force.
func (m *Model) shadows(pools map[sluice.PoolID]*Pool) []error {
	var errs []error
	for i := range m.Shadows {
		s := &m.Shadows[i]
		again := slices.ContainsFunc(m.Shadows[:i], func(o Shadow) bool { return o.Pool == s.Pool })
		if pools[s.Pool] == nil || again || s.Share <= 0 || s.Share > CanaryParts {
			errs = append(errs, fmt.Errorf("model %q has a shadow in pool %q that does not exist, stands twice, or has a share out of range", m.ID, s.Pool))
		}
		errs = append(errs, validateLimits(fmt.Sprintf("shadow %s of model %s", s.Pool, m.ID), s.Limits))
	}
	return errs
}
