package idempotency

import (
	"slices"

	"sluice"
)

// slack is the part of a bound, as 1 of so many, that is freed beyond it when something
// is dropped for it, so that not each further answer has to be.
const slack = 8

// Excess is how much of what each tenant has is to be dropped, so that none has more than
// b.PerTenant and all have no more than b.Total: from those that have most.
func Excess(has map[sluice.TenantID]int64, b Bounds) map[sluice.TenantID]int64 {
	out := make(map[sluice.TenantID]int64)
	total, sizes := int64(0), make([]int64, 0, len(has))
	for t, n := range has {
		if b.PerTenant > 0 && n > b.PerTenant-Overhead {
			out[t] = n - (b.PerTenant - b.PerTenant/slack)
			n -= out[t]
		}
		total += n
		sizes = append(sizes, n)
	}
	if b.Total <= 0 || total <= b.Total-Overhead {
		return out
	}
	level := levelOf(sizes, b.Total-b.Total/slack)
	for t, n := range has {
		if n-out[t] > level {
			out[t] = n - level
		}
	}
	return out
}

// levelOf is the height to which the tallest are cut so that all together are room.
func levelOf(sizes []int64, room int64) int64 {
	slices.Sort(sizes)
	below := int64(0)
	for i, n := range sizes {
		rest := int64(len(sizes) - i)
		if level := (room - below) / rest; level < n {
			return max(level, 0)
		}
		below += n
	}
	return room
}
