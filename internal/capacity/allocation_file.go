package capacity

import (
	"fmt"
	"slices"

	"sluice"
)

// Model is a claim as a file has it.
type Model struct {
	Name     string   `json:"name" jsonschema:"what the model is called"`
	Profile  string   `json:"profile,omitempty" jsonschema:"what one replica of it is: a name that sluice capacity profiles lists"`
	Profiles []string `json:"profiles,omitempty" jsonschema:"what one replica of it may be, such as groups of 4 and of 8 GPUs, of which one is taken; in place of profile"`
	Weight   int64    `json:"weight,omitempty" jsonschema:"how much its demand counts beside others'; 1 if left out"`
	Min      int64    `json:"min,omitempty" jsonschema:"replicas that it has in any case"`
	Headroom Share    `json:"headroom,omitzero" jsonschema:"part of its engines' time to keep free: 20%"`
	SLO      SLO      `json:"slo,omitzero" jsonschema:"what its users are promised: what is served later counts as not served"`
	Start    Span     `json:"start,omitzero" jsonschema:"until a new replica serves; 2m if left out"`
	RPS      *Rate    `json:"rps,omitempty" jsonschema:"requests per second of all rows together, which share is of"`
	Demand   []Row    `json:"demand" jsonschema:"what is asked of it"`
}

// sizes are the names of its profiles.
func (m *Model) sizes() []string {
	if len(m.Profiles) > 0 {
		return m.Profiles
	}
	return []string{m.Profile}
}

// MovesFile is how much may be moved.
type MovesFile struct {
	Most    *int64 `json:"most,omitempty" jsonschema:"backends that are drained at most; 8 if left out"`
	Horizon *Span  `json:"horizon,omitempty" jsonschema:"within which a move has to pay for itself; 1h if left out"`
}

// AllocationFile is models that share a fleet.
type AllocationFile struct {
	GPUs    int64      `json:"gpus,omitempty" jsonschema:"GPUs of the fleet; those of domains if left out"`
	Domains []Domain   `json:"domains,omitempty" jsonschema:"what fails together, and holds whole replicas"`
	Models  []Model    `json:"models" jsonschema:"the models that share it"`
	Current []Standing `json:"current,omitempty" jsonschema:"the replicas that run"`
	Moves   MovesFile  `json:"moves,omitzero" jsonschema:"how much may be moved"`
}

// mostSizes bounds the profiles of a model.
const mostSizes = 8

// Check reports what is wrong beyond single values, by path. An empty fix is
// none.
func (f *AllocationFile) Check(report func(path, cause, fix string)) {
	f.checkFleet(report)
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
		m.check(at, report)
	}
	f.checkCurrent(report)
}

// checkCurrent holds what runs to names that the gateway's configuration can have: they
// become part of commands.
func (f *AllocationFile) checkCurrent(report func(path, cause, fix string)) {
	seen := map[string]bool{}
	for i, s := range f.Current {
		at := fmt.Sprintf("current[%d]", i)
		if err := sluice.ValidName(s.Backend); err != nil {
			report(at+".backend", err.Error(), "write the backend's name as sluice backend list has it")
		} else if seen[s.Backend] {
			report(at+".backend", fmt.Sprintf("%q is listed twice", s.Backend), "list each replica once, under its own name")
		}
		seen[s.Backend] = true
		if !slices.ContainsFunc(f.Models, func(m Model) bool { return m.Name == s.Model }) {
			report(at+".model", fmt.Sprintf("names %q, which is not one of models", s.Model), "write one of models, or add it there")
		}
		if s.Domain == "" && len(f.Domains) <= 1 {
			continue
		}
		if !slices.ContainsFunc(f.Domains, func(d Domain) bool { return d.Name == s.Domain }) {
			report(at+".domain", fmt.Sprintf("names %q, which is not one of domains", s.Domain), "write one of domains, or add it there")
		}
	}
}

// checkFleet holds domains and moves to what can be.
func (f *AllocationFile) checkFleet(report func(path, cause, fix string)) {
	sum, seen := int64(0), map[string]bool{}
	for i, d := range f.Domains {
		at := fmt.Sprintf("domains[%d]", i)
		if d.GPUs < 1 || d.GPUs > MaxAllocated {
			report(at+".gpus", fmt.Sprintf("is not between 1 and %d", MaxAllocated), "write how many GPUs the domain has, or leave the domain out")
			return
		}
		if d.Name == "" || seen[d.Name] {
			report(at+".name", fmt.Sprintf("%q is empty, or listed twice", d.Name), "give each domain a name of its own")
		}
		seen[d.Name] = true
		sum += d.GPUs
	}
	if len(f.Domains) > MaxDomains {
		report("domains", fmt.Sprintf("has %d domains", len(f.Domains)), fmt.Sprintf("list at most %d", MaxDomains))
	}
	if f.GPUs == 0 {
		f.GPUs = sum
	}
	switch {
	case f.GPUs < 1 || f.GPUs > MaxAllocated:
		report("gpus", fmt.Sprintf("is not between 1 and %d", MaxAllocated), "write how many GPUs the models share, or list domains with theirs")
	case sum > 0 && f.GPUs != sum:
		report("gpus", fmt.Sprintf("is %d, and the domains have %d", f.GPUs, sum), "leave gpus out")
	}
	if n := f.Moves.Most; n != nil && (*n < 1 || *n > MaxMoves) {
		report("moves.most", fmt.Sprintf("is not between 1 and %d", MaxMoves), "leave current out to plan without moves")
	}
	if h := f.Moves.Horizon; h != nil && h.Sign() <= 0 {
		report("moves.horizon", "is no time: no move would pay for itself", "write a time such as 1h")
	}
}

func (m *Model) check(at string, report func(path, cause, fix string)) {
	for _, bound := range []struct {
		name      string
		got, most int64
	}{{"weight", m.Weight, MaxWeight}, {"min", m.Min, MaxAllocated}} {
		if bound.got < 0 || bound.got > bound.most {
			report(at+"."+bound.name, fmt.Sprintf("is %d, and not between 0 and %d", bound.got, bound.most), "write a number in between, or leave it out")
		}
	}
	if m.Profile == "" && len(m.Profiles) == 0 {
		report(at+".profile", "is missing", "write what one replica of it is: sluice capacity profiles lists them")
	}
	if m.Profile != "" && len(m.Profiles) > 0 {
		report(at+".profiles", "stands beside profile", "write one of them")
	}
	if len(m.Profiles) > mostSizes {
		report(at+".profiles", fmt.Sprintf("has %d profiles", len(m.Profiles)), fmt.Sprintf("list at most %d", mostSizes))
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

// Ways is what stands where, and how much may be moved; false where the file says
// nothing of either.
func (f *AllocationFile) Ways() (Ways, bool) {
	w := Ways{Domains: f.Domains, Current: f.Current, Fresh: len(f.Current) == 0}
	if n := f.Moves.Most; n != nil {
		w.Most = *n
	}
	if h := f.Moves.Horizon; h != nil {
		w.Horizon = *h
	}
	return w, len(f.Domains) > 0 || len(f.Current) > 0
}

// Claims are the models with their replicas, which find knows by the profile's
// name. The error names the model and its field.
func (f *AllocationFile) Claims(find func(profile string) (Replica, error)) ([]Claim, error) {
	var out []Claim
	for i := range f.Models {
		m := &f.Models[i]
		c := Claim{Name: m.Name, Weight: m.Weight, Min: m.Min, Headroom: m.Headroom, SLO: m.SLO, Start: m.Start}
		for k, name := range m.sizes() {
			r, err := find(name)
			if err != nil {
				e := *sluice.AsError(err)
				if e.Param = fmt.Sprintf("models[%d].profile", i); len(m.Profiles) > 0 {
					e.Param = fmt.Sprintf("models[%d].profiles[%d]", i, k)
				}
				return nil, &e
			}
			if k == 0 {
				c.Replica = r
			} else {
				c.Or = append(c.Or, r)
			}
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
