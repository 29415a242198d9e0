package capacity

import (
	"fmt"
	"slices"

	"sluice"
)

// item is a claim, solved for one replica.
type item struct {
	claim  Claim
	demand Demand
	target Amount // part of the engines' time that headroom and SLO leave
	load   Amount // replicas that the demand fills, headroom kept; 0 if there is none
	min    int64  // replicas
	most   int64  // beyond which there is nothing more to satisfy
}

// valueScale is the value of a whole demand at weight 1.
const valueScale = 1_000_000_000

// value is what n replicas satisfy, by weight.
func (it *item) value(n int64) int64 {
	weight := max(it.claim.Weight, 1)
	if it.load.Sign() == 0 || Int(n).Cmp(it.load) >= 0 {
		return weight * valueScale
	}
	return weight * Int(n).Times(Int(valueScale)).Over(it.load).Floor()
}

// ratio is capacity/demand of n replicas.
func (it *item) ratio(n int64) Amount { return Int(n).Over(it.load) }

func itemsOf(gpus int64, claims []Claim) ([]item, error) {
	if gpus < 1 || gpus > MaxAllocated {
		return nil, sluice.Invalid("gpus", "is not between 1 and %d", MaxAllocated)
	}
	if len(claims) == 0 || len(claims) > MaxModels {
		return nil, sluice.Invalid("models", "has %d models: list 1 to %d", len(claims), MaxModels)
	}
	var out []item
	for i, c := range claims {
		it, err := itemOf(c)
		if err != nil {
			e := *sluice.AsError(err)
			e.Param = fmt.Sprintf("models[%d].%s", i, e.Param)
			return nil, &e
		}
		out = append(out, it)
	}
	return out, nil
}

func itemOf(c Claim) (item, error) {
	it := item{claim: c, min: c.Min}
	switch {
	case c.Replica.GPUs < 1:
		return it, sluice.Invalid("profile", "has no GPU")
	case c.Weight < 0 || c.Weight > MaxWeight:
		return it, sluice.Invalid("weight", "is not between 1 and %d", MaxWeight)
	case c.Min < 0 || c.Min > MaxAllocated:
		return it, sluice.Invalid("min", "is not between 0 and %d", MaxAllocated)
	case c.Headroom.Cmp(Int(1)) >= 0:
		return it, sluice.Invalid("headroom", "is all of the engines' time")
	}
	for i, w := range c.Workloads {
		if err := w.check(); err != nil {
			return it, onSide("demand", atIndex(i, err))
		}
	}
	var err error
	if it.demand, err = Total(c.Workloads); err != nil {
		return it, onSide("demand", err)
	}
	if _, err := c.Replica.needed(it.demand, Int(1).Minus(c.Headroom.Amount)); err != nil {
		return it, err
	}
	if it.target, err = c.Replica.bearable(it.demand, c.SLO, c.Headroom.Amount); err != nil {
		return it, err
	}
	u, _, _ := c.Replica.engineFor(it.demand).demandOn(it.demand)
	it.load = u.Engine.Over(it.target)
	it.most = max(it.load.Ceil(), it.min)
	return it, nil
}

// knapsack finds replicas of each item with the highest value, the fewest GPUs
// among equals and the most for later items among those. The value is −1 where
// the minimums do not fit.
func knapsack(gpus int64, items []item) (int64, []int64) {
	best := make([]int64, gpus+1) // by exactly so many GPUs; −1 cannot be
	for g := range best {
		best[g] = -1
	}
	best[0] = 0
	taken := make([][]int64, len(items))
	for i := range items {
		it := &items[i]
		values := make([]int64, 0, 64)
		for n := it.min; n <= max(it.most, it.min) && n*it.claim.Replica.GPUs <= gpus; n++ {
			values = append(values, it.value(n))
		}
		next, take := make([]int64, gpus+1), make([]int64, gpus+1)
		for g := range next {
			next[g] = -1
			for k, v := range values {
				before := int64(g) - (it.min+int64(k))*it.claim.Replica.GPUs
				if before < 0 {
					break
				}
				if best[before] >= 0 && best[before]+v > next[g] {
					next[g], take[g] = best[before]+v, it.min+int64(k)
				}
			}
		}
		best, taken[i] = next, take
	}
	most := slices.Max(best)
	if most < 0 {
		return -1, nil
	}
	g := int64(slices.Index(best, most))
	chosen := make([]int64, len(items))
	for i := len(items) - 1; i >= 0; i-- {
		chosen[i] = taken[i][g]
		g -= chosen[i] * items[i].claim.Replica.GPUs
	}
	return most, chosen
}

// candidates are all values above 0 that a capacity/demand can have, in order.
func candidates(gpus int64, items []item) []Amount {
	var out []Amount
	for i := range items {
		it := &items[i]
		if it.load.Sign() == 0 {
			continue
		}
		for n := int64(1); n*it.claim.Replica.GPUs <= gpus; n++ {
			out = append(out, it.ratio(n))
		}
	}
	slices.SortFunc(out, Amount.Cmp)
	return slices.CompactFunc(out, Amount.Equal)
}

// atLeast raises the minimums to what a capacity/demand takes.
func atLeast(items []item, ratio Amount) []item {
	out := slices.Clone(items)
	for i := range out {
		out[i].min = max(out[i].min, ratio.Times(out[i].load).Ceil())
	}
	return out
}

// giveRest hands out the GPUs that are left.
func giveRest(gpus int64, items []item, chosen []int64) {
	for {
		left := gpus
		for i := range items {
			left -= chosen[i] * items[i].claim.Replica.GPUs
		}
		to := -1
		for i := range items {
			it := &items[i]
			if it.load.Sign() == 0 || it.claim.Replica.GPUs > left {
				continue
			}
			if to < 0 || it.ratio(chosen[i]).Cmp(items[to].ratio(chosen[to])) < 0 {
				to = i
			}
		}
		if to < 0 {
			return
		}
		chosen[to]++
	}
}

func allocation(gpus int64, items []item, chosen []int64) Allocation {
	a := Allocation{GPUs: gpus, Spare: gpus}
	var weights Amount
	for i := range items {
		it, n := &items[i], chosen[i]
		m := Allotment{
			Name: it.claim.Name, Profile: it.claim.Replica.Name, Target: it.target, Replicas: n, GPUs: n * it.claim.Replica.GPUs, Needed: max(it.load.Ceil(), it.claim.Min), Demand: it.demand,
			Satisfied: Int(1), Headroom: it.ratio(n),
		}
		whole, _, _ := it.claim.Replica.engineFor(it.demand).demandOn(it.demand)
		m.Binding = whole.binding()
		if it.load.Sign() > 0 {
			m.Satisfied = Min(Int(1), m.Headroom)
		}
		if n > 0 {
			e, each := it.claim.Replica.engineFor(it.demand), it.demand.Times(Ratio(1, n))
			m.Utilisation, _, _ = e.demandOn(each)
			if l, ok := e.latency(each, m.Utilisation); ok && m.Satisfied.Cmp(Int(1)) == 0 {
				m.Latency = &l
			}
		}
		weight := Int(max(it.claim.Weight, 1))
		weights = weights.Plus(weight)
		a.Satisfied = a.Satisfied.Plus(weight.Times(m.Satisfied))
		a.Spare -= m.GPUs
		a.Models = append(a.Models, m)
	}
	a.Satisfied = a.Satisfied.Over(weights)
	return a
}
