package capacity

import (
	"fmt"
	"slices"

	"sluice"
)

// Claim is what one model asks of a shared fleet.
type Claim struct {
	Name      string
	Replica   Replica
	Workloads []Workload
	Weight    int64 // of its demand, served or not; 0 is 1
	Min       int64 // replicas that it has in any case
	Headroom  Share // of its engines' time to keep free, for its latency target
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
	Replicas    int64
	GPUs        int64
	Needed      int64       // replicas for all of its demand with its headroom
	Demand      Demand      // all of it
	Satisfied   Amount      // part of the demand that fits, at most 1
	Headroom    Amount      // what fits ÷ what is asked for; 0 where nothing is
	Utilisation Utilisation // of its replicas, by all of its demand; zero without a replica
	Binding     Binding
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
// what one takes with its headroom kept free.
//
// The first is a knapsack: concave in each model, but with replicas of different
// sizes no greedy order is best, so that dynamic programming over GPUs finds it
// exactly (to 10⁻⁹ of a demand). The second is a search over all values that
// capacity/demand can have, each tried as a minimum that must not cost anything of
// the first.
func Allocate(gpus int64, claims []Claim) (Allocation, error) {
	items, err := itemsOf(gpus, claims)
	if err != nil {
		return Allocation{}, err
	}
	best, chosen := knapsack(gpus, items)
	if best < 0 {
		e := sluice.Invalid("gpus", "does not hold the minimum of every model")
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

// Model is a claim as a file has it.
type Model struct {
	Name     string `json:"name" jsonschema:"what the model is called"`
	Profile  string `json:"profile" jsonschema:"what one replica of it is: a name that sluice capacity profiles lists"`
	Weight   int64  `json:"weight,omitempty" jsonschema:"how much its demand counts beside others'; 1 if left out"`
	Min      int64  `json:"min,omitempty" jsonschema:"replicas that it has in any case"`
	Headroom Share  `json:"headroom,omitzero" jsonschema:"part of its engines' time to keep free, for its latency target: 20%"`
	RPS      *Rate  `json:"rps,omitempty" jsonschema:"requests per second of all rows together, which share is of"`
	Demand   []Row  `json:"demand" jsonschema:"what is asked of it"`
}

// AllocationFile is models that share a fleet.
type AllocationFile struct {
	GPUs   int64   `json:"gpus" jsonschema:"GPUs of the fleet"`
	Models []Model `json:"models" jsonschema:"the models that share it"`
}

// Check reports what is wrong beyond single values, by path. An empty fix is
// none.
func (f *AllocationFile) Check(report func(path, cause, fix string)) {
	if f.GPUs < 1 || f.GPUs > MaxAllocated {
		report("gpus", fmt.Sprintf("is not between 1 and %d", MaxAllocated), "")
	}
	if len(f.Models) == 0 || len(f.Models) > MaxModels {
		report("models", fmt.Sprintf("has %d models", len(f.Models)), fmt.Sprintf("list 1 to %d", MaxModels))
	}
	seen := map[string]bool{}
	for i := range f.Models {
		m := &f.Models[i]
		at := fmt.Sprintf("models[%d]", i)
		if seen[m.Name] {
			report(at+".name", fmt.Sprintf("%q is listed twice", m.Name), "give one model all of its demand")
		}
		seen[m.Name] = true
		for _, bound := range []struct {
			name      string
			got, most int64
		}{{"weight", m.Weight, MaxWeight}, {"min", m.Min, MaxAllocated}} {
			if bound.got < 0 || bound.got > bound.most {
				report(at+"."+bound.name, fmt.Sprintf("is not between 0 and %d", bound.most), "")
			}
		}
		if m.Headroom.Cmp(Int(1)) >= 0 {
			report(at+".headroom", "is all of the engines' time", "write a share below 100%, such as 20%")
		}
		for k := range m.Demand {
			if _, err := m.Demand[k].Workload(m.RPS); err != nil {
				e := sluice.AsError(err)
				report(fmt.Sprintf("%s.demand[%d].%s", at, k, e.Param), e.Msg, e.Hint)
			}
		}
	}
}

// Claims are the models with their replicas, which find knows by the profile's
// name. The error names the model and its field.
func (f *AllocationFile) Claims(find func(profile string) (Replica, error)) ([]Claim, error) {
	var out []Claim
	for i := range f.Models {
		m := &f.Models[i]
		c := Claim{Name: m.Name, Weight: m.Weight, Min: m.Min, Headroom: m.Headroom}
		var err error
		if c.Replica, err = find(m.Profile); err != nil {
			e := *sluice.AsError(err)
			e.Param = fmt.Sprintf("models[%d].profile", i)
			return nil, &e
		}
		for k := range m.Demand {
			w, err := m.Demand[k].Workload(m.RPS)
			if err != nil {
				e := *sluice.AsError(err)
				e.Param = fmt.Sprintf("models[%d].demand[%d].%s", i, k, e.Param)
				return nil, &e
			}
			c.Workloads = append(c.Workloads, w)
		}
		out = append(out, c)
	}
	return out, nil
}
