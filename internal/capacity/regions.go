package capacity

import (
	"fmt"

	"sluice"
)

// Region is the machines of one region, and what is asked of them at home.
type Region struct {
	Name      string
	Replica   Replica
	Replicas  int64
	Workloads []Workload // none: nothing is known of its demand
	Target    Share      // part of the engines' time that may be planned for; 0 is all of it
	Stated    *Amount    // the headroom that is in force, in place of the planner's; nil takes that
}

// RegionPlan is what one region has to spare, and who has for it.
type RegionPlan struct {
	Name     string
	Replicas int64
	GPUs     int64
	Used     Amount // of its engines' time, by its own demand
	Headroom Amount // what that leaves of the target, in whole percents, rounded down: 0.31
	InForce  Amount // the stated one, else that
	// Absorbed is the part of its own demand that the headrooms in force of the
	// others take while it is lost: 1 or more is all of it. Known is whether its demand
	// is.
	Absorbed Amount
	Known    bool
}

// MaxRegions bounds the regions of a plan.
const MaxRegions = 64

// PlanRegions finds the headroom of each region, 1 − u for a demand that uses u of its
// engines' time, and whether the others can bear its loss. A demand D that comes to a
// region i, whose caches do not know its prompts, would use u_i(D) of the engines'
// time there; with headroom h_i it takes h_i ÷ u_i(D) of it, and all together
//
//	absorbed = Σ h_i ÷ u_i(D)
//
// The error names the region and the field.
func PlanRegions(regions []Region) ([]RegionPlan, error) {
	if len(regions) > MaxRegions {
		return nil, sluice.Invalid("", "has %d regions, the bound is %d", len(regions), MaxRegions)
	}
	out := make([]RegionPlan, len(regions))
	for i := range regions {
		r, p := &regions[i], &out[i]
		*p = RegionPlan{Name: r.Name, Replicas: r.Replicas, GPUs: r.Replicas * r.Replica.GPUs, Known: len(r.Workloads) > 0}
		var err error
		if p.Used, err = r.used(r.Workloads); err != nil {
			return nil, ofRegion(r.Name, err)
		}
		target := r.Target.Amount
		if target.Sign() == 0 {
			target = Int(1)
		}
		p.Headroom = Max(Int(0), target.Minus(p.Used)).coarse(100)
		p.InForce = p.Headroom
		if r.Stated != nil {
			p.InForce = *r.Stated
		}
	}
	for i := range regions {
		for j := range regions {
			if i == j || !out[i].Known || regions[j].Replicas == 0 {
				continue
			}
			asked, err := regions[j].used(cold(regions[i].Workloads))
			if err != nil {
				return nil, ofRegion(regions[i].Name, err)
			}
			if asked.Sign() > 0 {
				out[i].Absorbed = out[i].Absorbed.Plus(out[j].InForce.Over(asked))
			}
		}
	}
	return out, nil
}

// used is the part of the region's engines' time that a demand takes.
func (r *Region) used(demand []Workload) (Amount, error) {
	if len(demand) == 0 || r.Replicas == 0 {
		return Amount{}, nil
	}
	p, err := Solve(Question{Workloads: demand, Replica: r.Replica, GPUs: r.Replicas * r.Replica.GPUs})
	return p.Utilisation.Engine, err
}

// cold is a demand of which no cache knows a prompt.
func cold(demand []Workload) []Workload {
	out := make([]Workload, len(demand))
	for i, w := range demand {
		w.Hit = Share{}
		out[i] = w
	}
	return out
}

// ofRegion puts the region before the field of an error.
func ofRegion(name string, err error) error {
	e := *sluice.AsError(err)
	e.Param = fmt.Sprintf("regions.%s.%s", name, e.Param)
	return &e
}
