package sched

import (
	"time"

	"sluice"
)

// contract is a Contract and what runs inside of it.
type contract struct {
	Contract
	used    Amounts
	running int
	level   int64 // of its work: what may still be dispatched inside
	at      time.Time
	wanted  bool // something waits that it admits, as of the last Next
}

// contract takes over the configured contracts. One of the same tenant keeps
// what runs in it.
func (q *Queue) contract(list []Contract) {
	var next []*contract
	for _, k := range list {
		if k.Reclaim <= 0 {
			k.Reclaim = DefaultReclaim
		}
		c := q.contractOf(k.Tenant)
		if c == nil {
			c = &contract{}
		}
		c.Contract = k
		next = append(next, c)
	}
	q.contracts = next
	q.tenants.each(func(t *tenant) { t.contract = q.contractOf(t.id) })
}

func (q *Queue) contractOf(id sluice.TenantID) *contract {
	for _, k := range q.contracts {
		if k.Tenant == id {
			return k
		}
	}
	return nil
}

func (k *contract) reserve(d int) int64 {
	switch d {
	case Slots:
		return k.Slots
	case KV:
		return int64(k.KV)
	}
	return 0
}

// refill brings its work up to now: at most what Reclaim brings.
func (k *contract) refill(now time.Time) {
	if k.WorkPerSecond == 0 {
		return
	}
	most := int64(k.Reclaim) / int64(time.Millisecond) * k.WorkPerSecond / 1000
	if k.at.IsZero() {
		k.at, k.level = now, most
		return
	}
	ms := now.Sub(k.at).Milliseconds()
	if ms <= 0 {
		return
	}
	ms = min(ms, int64(24*time.Hour/time.Millisecond))
	gained := ms * k.WorkPerSecond / 1000
	if gained == 0 {
		return
	}
	k.level = min(most, k.level+gained)
	k.at = now
}

// paid reports whether its work per second allows a further request inside.
func (k *contract) paid() bool { return k.WorkPerSecond == 0 || k.level > 0 }

// admits reports whether an item has room inside.
func (k *contract) admits(it *Item) bool {
	if !k.paid() {
		return false
	}
	for _, d := range [...]int{Slots, KV} {
		if r := k.reserve(d); r > 0 && k.used[d]+it.Need[d] > r {
			return false
		}
	}
	return true
}

func (k *contract) take(it *Item) {
	for d := range it.Need {
		k.used[d] += it.Need[d]
	}
	k.running++
	k.level -= it.Upfront
}

// keeps is what of its reserve is not in use and not lent. While something of its
// tenant waits that it admits, nothing more is lent.
func (k *contract) keeps(d int, short bool) int64 {
	if !k.paid() {
		return 0
	}
	if !k.wanted && (k.Lend == LendAll || k.Lend == LendShort && short) {
		return 0
	}
	return max(0, k.reserve(d)-k.used[d])
}

// inside is the next item of a contract's tenant that fits inside of its reserve
// and on a backend. What fits the reserve but no backend gathers at once.
func (q *Queue) inside(k *contract, room Room) *Item {
	k.wanted = false
	for c := range q.classes {
		t := q.tenants.find(tenantID{sluice.Class(c), k.Tenant})
		if t == nil || t.ready == 0 {
			continue
		}
		for s := t.seats; s != nil; s = s.next {
			if !s.inLane.in() {
				continue
			}
			it := s.head()
			if !k.admits(it) {
				continue
			}
			if room.Fits(it, true) {
				it.contract = k
				return it
			}
			k.wanted = true
			if q.gathers == nil && room.Gather(it) {
				q.gathers = it
			}
		}
	}
	return nil
}

// short reports whether an item is predicted to end before any contract must
// have its reserve back.
func (q *Queue) short(it *Item) bool {
	if len(q.contracts) == 0 {
		return false
	}
	reclaim := q.contracts[0].Reclaim
	for _, k := range q.contracts {
		reclaim = min(reclaim, k.Reclaim)
	}
	held := q.pace.lasts(it.Cost)
	return held > 0 && held <= reclaim
}
