package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sluice"
)

// Claim is what one model asks of a shared fleet.
type Claim struct {
	Name      string
	Replica   Replica
	Workloads []Workload
	Weight    int64 // of its demand, served or not; 0 is 1
	Min       int64 // replicas that it has in any case
	Headroom  Share // of its engines' time to keep free
	SLO       SLO   // what is served beyond it counts as not served

	Or    []Replica // other sizes of a replica, of which one is taken for all
	Start Span      // time until a new replica serves; 0 is DefaultStart
}

// DefaultStart is the time until a new replica serves, in seconds, where nothing is
// said.
const DefaultStart = 120

// start is that time.
func (c *Claim) start() Amount {
	if c.Start.Sign() == 0 {
		return Int(DefaultStart)
	}
	return c.Start.Amount
}

// The bounds of an allocation: the search takes models × GPUs × replicas steps.
const (
	MaxAllocated = 2048 // GPUs
	MaxModels    = 32
	MaxWeight    = 1_000_000
)

// Allotment is what one model gets.
type Allotment struct {
	Name        string
	Profile     string // of its replicas
	Replicas    int64
	GPUs        int64
	Needed      int64       // replicas for all of its demand with its headroom
	Demand      Demand      // all of it
	Satisfied   Amount      // part of the demand that fits, at most 1
	Headroom    Amount      // what fits ÷ what is asked for; 0 where nothing is
	Utilisation Utilisation // of its replicas, by all of its demand; zero without a replica
	Binding     Binding
	Target      Amount   // part of its engines' time that headroom and SLO leave
	Latency     *Latency // to be expected; nil where more is asked for than its replicas take
}

// Allocation is GPUs shared between models.
type Allocation struct {
	GPUs      int64
	Spare     int64  // that are too few for any further replica
	Satisfied Amount // Σ weight·satisfied ÷ Σ weight
	Models    []Allotment
}

// Allocate shares GPUs between models. Among all ways to choose whole replicas,
// each model at least its minimum, it takes
//
//  1. one with the most satisfied demand, Σ weight · min(1, capacity/demand);
//  2. of these, one whose least capacity/demand over all models is largest;
//
// and then gives what is left, replica by replica, to the model whose
// capacity/demand is least, the first listed of equals. Capacity is replicas ×
// what one takes with its headroom kept free and its SLO kept: the satisfied demand
// is goodput.
//
// Of several sizes that a model's replicas may have, it begins with the one that holds
// the demand on the fewest GPUs, and tries each other one, model by model, as long as
// that is better by the same two rules.
//
// The first is a knapsack: concave in each model, but with replicas of different
// sizes no greedy order is best, so that dynamic programming over GPUs finds it
// exactly (to 10⁻⁹ of a demand). The second is a search over all values that
// capacity/demand can have, each tried as a minimum that must not cost anything of
// the first.
func Allocate(gpus int64, claims []Claim) (Allocation, error) {
	claims, err := sized(claims)
	if err != nil {
		return Allocation{}, err
	}
	best, err := allocate(gpus, claims)
	for better := true; better; {
		better = false
		for i := range claims {
			for k := range claims[i].Or {
				try := slices.Clone(claims)
				try[i].Or = slices.Clone(claims[i].Or)
				try[i].Replica, try[i].Or[k] = claims[i].Or[k], claims[i].Replica
				if a, e := allocate(gpus, try); e == nil && (err != nil || a.beats(&best)) {
					best, err, claims, better = a, nil, try, true
				}
			}
		}
	}
	return best, err
}

// sized gives every claim the size of which its demand takes the fewest GPUs, and
// leaves out those that cannot serve it.
func sized(claims []Claim) ([]Claim, error) {
	out := slices.Clone(claims)
	for i := range out {
		c := &out[i]
		if len(c.Or) == 0 {
			continue
		}
		var able []Replica
		var least Amount
		var fault error
		for _, r := range append([]Replica{c.Replica}, c.Or...) {
			one := *c
			one.Replica = r
			it, err := itemOf(one)
			if err != nil {
				fault = cmp.Or(fault, err)
				continue
			}
			if gpus := it.load.Times(Int(r.GPUs)); len(able) == 0 || gpus.Cmp(least) < 0 {
				able, least = append([]Replica{r}, able...), gpus
			} else {
				able = append(able, r)
			}
		}
		if len(able) == 0 {
			e := *sluice.AsError(fault)
			e.Param = fmt.Sprintf("models[%d].%s", i, e.Param)
			return nil, &e
		}
		c.Replica, c.Or = able[0], able[1:]
	}
	return out, nil
}

// beats reports whether an allocation satisfies more, or leaves the model that has the
// least room more of it.
func (a *Allocation) beats(b *Allocation) bool {
	if c := a.Satisfied.Cmp(b.Satisfied); c != 0 {
		return c > 0
	}
	least := func(x *Allocation) (low Amount, ok bool) {
		for i := range x.Models {
			if m := &x.Models[i]; m.Demand.Attempts.Sign() > 0 && (!ok || m.Headroom.Cmp(low) < 0) {
				low, ok = m.Headroom, true
			}
		}
		return low, ok
	}
	mine, _ := least(a)
	theirs, ok := least(b)
	return ok && mine.Cmp(theirs) > 0
}

// minima are what the models are to have in any case, beside the GPUs that there are.
func minima(gpus int64, claims []Claim) string {
	var parts []string
	sum := int64(0)
	for i := range claims {
		if c := &claims[i]; c.Min > 0 {
			parts = append(parts, fmt.Sprintf("%s %d × %d GPUs", c.Name, c.Min, c.Replica.GPUs))
			sum += c.Min * c.Replica.GPUs
		}
	}
	return fmt.Sprintf("%d of %d (%s)", sum, gpus, strings.Join(parts, ", "))
}

// allocate is Allocate with one size for each model.
func allocate(gpus int64, claims []Claim) (Allocation, error) {
	items, err := itemsOf(gpus, claims)
	if err != nil {
		return Allocation{}, err
	}
	best, chosen := knapsack(gpus, items)
	if best < 0 {
		e := sluice.Invalid("gpus", "does not hold the minimum of every model: %s", minima(gpus, claims))
		e.Hint = "lower min of some models, or plan for more GPUs"
		return Allocation{}, e
	}
	ratios := candidates(gpus, items)
	// Every ratio up to the largest that can be kept can be kept.
	at, _ := slices.BinarySearchFunc(ratios, struct{}{}, func(r Amount, _ struct{}) int {
		raised := atLeast(items, r)
		if got, _ := knapsack(gpus, raised); got == best {
			return -1
		}
		return 1
	})
	if at > 0 {
		_, chosen = knapsack(gpus, atLeast(items, ratios[at-1]))
	}
	giveRest(gpus, items, chosen)
	return allocation(gpus, items, chosen), nil
}
