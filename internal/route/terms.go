package route

import (
	"fmt"
	"slices"

	"sluice"
)

// Terms are who may have one of a model's first pools, and how often it is tried
// first.
type Terms struct {
	Tenants []sluice.TenantID // empty is all
	Classes []sluice.Class    // empty is all
	Weight  int64             // share of the requests that try it first, against the other pools with weights; 0 if none has one
	Canary  int64             // of ten thousand requests, those that try it first; the others do not have it at all
}

// Sticky is what of a request decides which pool it tries first: requests that have
// it in common go the same way.
type Sticky uint8

// What may decide.
const (
	ByRequest Sticky = iota // each by itself
	ByRun                   // the run of the tenant, else the request
	ByUser                  // the tenant's end user, else the request
	BySession               // the session of the tenant, else the request; within pools too
)

// CanaryParts is what a canary's share is of.
const CanaryParts = 10_000

// IsCanary reports whether the pool is tried first by a part of the requests, and by
// no others at all.
func (t *Terms) IsCanary() bool { return t != nil && t.Canary > 0 }

// open reports whether a caller meets the conditions.
func (t *Terms) open(p *sluice.Principal, c sluice.Class) bool {
	return t == nil || (len(t.Tenants) == 0 || slices.Contains(t.Tenants, p.Tenant)) && (len(t.Classes) == 0 || slices.Contains(t.Classes, c))
}

// Asker is whose request it is, as far as it decides between a model's pools.
type Asker struct {
	ID        sluice.RequestID
	Principal *sluice.Principal
	Session   Session
	Class     sluice.Class
	Pinned    bool // it can go to one place alone: canaries are open to it, whose turn it may be
}

// First is the first pools of a request in the order in which it tries them: a
// canary that is its turn, then the others whose conditions it meets, drawn by
// weight where they have weights. The same request draws the same; a larger canary
// keeps those that it has. One that can go to one place alone has every canary, in case
// that is there. It uses the space of to.
func (m *Model) First(a *Asker, to []sluice.PoolID) []sluice.PoolID {
	if m.Terms == nil {
		return m.Pools
	}
	key, to := m.key(a), to[:0]
	draw := int64(mix(key) % CanaryParts)
	for _, pool := range m.Pools {
		if t := m.Terms[pool]; t.IsCanary() {
			if (a.Pinned || draw >= 0 && draw < t.Canary) && t.open(a.Principal, a.Class) {
				to = append(to, pool)
			}
			draw -= t.Canary
		}
	}
	canaries := len(to)
	for _, pool := range m.Pools {
		if t := m.Terms[pool]; !t.IsCanary() && t.open(a.Principal, a.Class) {
			to = append(to, pool)
		}
	}
	m.draw(key, to[canaries:])
	return to
}

// draw puts pools with weights into an order in which each comes next as often as
// its weight says.
func (m *Model) draw(key uint64, pools []sluice.PoolID) {
	for i := range pools {
		var total int64
		for _, p := range pools[i:] {
			total += m.weight(p)
		}
		if total == 0 {
			return
		}
		key = mix(key + 1)
		at := int64(key % uint64(total))
		for j := i; j < len(pools); j++ {
			if at -= m.weight(pools[j]); at < 0 {
				next := pools[j]
				copy(pools[i+1:j+1], pools[i:j])
				pools[i] = next
				break
			}
		}
	}
}

func (m *Model) weight(p sluice.PoolID) int64 {
	if t := m.Terms[p]; t != nil {
		return t.Weight
	}
	return 0
}

// key is what decides for a request: another for each model.
func (m *Model) key(a *Asker) uint64 {
	p := a.Principal
	h := hash(14695981039346656037, string(m.ID))
	switch {
	case m.Sticky == ByRun && p.Run != "":
		return hash(hash(h, string(p.Tenant)), string(p.Run))
	case m.Sticky == ByUser && p.User != "":
		return hash(hash(h, string(p.Tenant)), string(p.User))
	case m.Sticky == BySession && a.Session != 0:
		return mix(h ^ uint64(a.Session))
	}
	return hash(h, string(a.ID))
}

// hash is FNV-1a of s and an end, from h on.
func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return (h ^ 0xff) * 1099511628211
}

// mix is the finaliser of splitmix64: FNV's low bits alone are not even enough.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// terms reports terms that cannot be put into force.
func (m *Model) terms() []error {
	if m.Terms == nil {
		return nil
	}
	var errs []error
	var canary int64
	anyone, weighted, others := false, 0, 0
	for _, p := range m.Pools {
		t := m.Terms[p]
		if t == nil {
			t = &Terms{}
		}
		canary += t.Canary
		switch {
		case t.Weight < 0 || t.Weight > maxTermsWeight || t.Canary < 0:
			errs = append(errs, fmt.Errorf("model %q has a weight or canary of pool %q out of range", m.ID, p))
		case t.Canary > 0:
		default:
			anyone = anyone || len(t.Tenants)+len(t.Classes) == 0
			if others++; t.Weight > 0 {
				weighted++
			}
		}
	}
	if canary > CanaryParts || !anyone || weighted > 0 && weighted < others {
		errs = append(errs, fmt.Errorf("model %q has canaries beyond the whole, no pool that is open to all, or weights for some pools alone", m.ID))
	}
	return errs
}

// maxTermsWeight keeps sums of weights within range.
const maxTermsWeight = 1_000_000
