package demand

import "time"

// slots is how many parts the stabilisation window is kept in.
const slots = 61

// MaxStable is the longest stabilisation.
const MaxStable = time.Hour

// peaks is the highest rates of each part of the stabilisation window.
type peaks struct {
	slot  time.Duration // length of a part; 0 keeps none
	since time.Duration // when it began to be kept
	last  int64         // the part under way
	of    [slots][numKinds]Rates
}

// Stabilise says for how long before now the highest rates are kept: from now on, if
// that is another time than before.
func (m *Meter) Stabilise(now time.Time, stable time.Duration) {
	m.Tick(now)
	slot := time.Duration(0)
	if stable > 0 {
		slot = max(bucket, (min(stable, MaxStable)+slots-2)/(slots-1))
	}
	if slot != m.peaks.slot {
		m.peaks = peaks{slot: slot}
		m.peaks.start(m.now)
	}
}

func (p *peaks) start(now time.Duration) {
	p.since = now
	if p.slot > 0 {
		p.last = int64(now / p.slot)
	}
}

// at begins the part that a moment is in.
func (p *peaks) at(now time.Duration) {
	if p.slot == 0 {
		return
	}
	next := int64(now / p.slot)
	for p.last = max(p.last, next-slots); p.last < next; {
		p.last++
		p.of[p.last%slots] = [numKinds]Rates{}
	}
}

func (p *peaks) add(k Kind, r *Rates) {
	if p.slot == 0 {
		return
	}
	top := &p.of[p.last%slots][k]
	for i, n := range r {
		top[i] = max(top[i], n)
	}
}

// Peak is the highest rates over a minute of the stabilisation window, each axis by
// itself, those of now included. whole says that as much time has been seen.
func (m *Meter) Peak(now time.Time, batch bool) (top Rates, whole bool) {
	m.Tick(now)
	m.peaks.at(m.now)
	for k := range Kind(numKinds) {
		if k == Batch && !batch {
			continue
		}
		high := m.rates(k, Long, m.now)
		for s := range m.peaks.of {
			for i, n := range m.peaks.of[s][k] {
				high[i] = max(high[i], n)
			}
		}
		top.add(high)
	}
	return top, m.now-m.peaks.since >= Long+(slots-1)*m.peaks.slot
}
