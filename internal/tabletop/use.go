package tabletop

import (
	"time"

	"sluice/internal/fleet"
)

// use is what a machine did since it was last read off. Memory is taken to change
// evenly between two moments at which the machine was looked at, which are never
// further apart than two steps that end something.
type use struct {
	attempts, failed int64

	at       time.Duration
	load     fleet.Load
	busy     time.Duration // something ran
	area     float64       // of memory in use, token seconds
	room     float64       // of memory there, token seconds
	most     int64         // of memory in use, permille
	prefill  float64       // what it could have prefilled, tokens
	baseline fleet.Totals  // at the last reading
}

// touched takes the time since the machine was last looked at.
func (u *use) touched(m *machine, now time.Duration) {
	load := m.sim.Load()
	if d := now - u.at; d > 0 {
		if u.load.Running > 0 {
			u.busy += d
		}
		s := d.Seconds()
		u.area += s * float64(u.load.KVUsed+load.KVUsed) / 2
		u.room += s * float64(load.KVCapacity)
		if u.load.Health == fleet.Serving {
			u.prefill += s * float64(m.prefillRate())
		}
	}
	u.most = max(u.most, load.Permille())
	u.at, u.load = now, load
}

// read is what was done since the last reading, over a span.
func (u *use) read(m *machine, now, span time.Duration) BackendUse {
	u.touched(m, now)
	t := m.sim.Totals()
	b := BackendUse{Backend: m.spec.Backend, Attempts: u.attempts, Failed: u.failed, KVMax: u.most}
	prefilled, hits := t.Prefilled-u.baseline.Prefilled, t.CacheHits-u.baseline.CacheHits
	if span > 0 {
		b.Busy = int64(u.busy) * 1000 / int64(span)
	}
	if u.room > 0 {
		b.KVMean = int64(u.area * 1000 / u.room)
	}
	if u.prefill > 0 {
		b.Prefill = int64(float64(prefilled) * 1000 / u.prefill)
	}
	b.Hits = permille(hits, hits+prefilled)
	b.Prefilled, b.HitTokens = prefilled, hits
	*u = use{at: now, load: u.load, baseline: t, most: u.load.Permille()}
	return b
}

// prefillRate is what the machine can prefill in a second; 0 where that has no
// bound.
func (m *machine) prefillRate() int64 {
	if m.spec.Replica == nil {
		return 0
	}
	return max(m.spec.Replica.PrefillRate, 1) * m.speed / 1000
}

// permille is a part in thousandths, rounded; 0 of nothing.
func permille[T ~int64](part, whole T) int64 {
	if whole <= 0 {
		return 0
	}
	return int64((part*1000 + whole/2) / whole)
}
