package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/capacity"
	"sluice/internal/route"
)

// Region is what a region has to spare for the requests of others.
type Region struct {
	Headroom Headroom       `json:"headroom,omitempty" jsonschema:"part of the capacity of its backends that requests at home elsewhere may occupy: 30%, or planner, which is what its own demand leaves; planner if there is a demand, else 25%"`
	Demand   []RegionDemand `json:"demand,omitempty" jsonschema:"what it is asked for at home, at its peak"`
	Profile  string         `json:"profile,omitempty" jsonschema:"what one of its backends is to the planner: a name that sluice capacity profiles lists; llama-3.1-8b-1xh100 if left out"`
	Replicas Count          `json:"replicas,omitempty" jsonschema:"how many of these it has; its backends that take work if left out"`
	Target   Percent        `json:"target,omitempty" jsonschema:"part of their time that may be planned for; all of it if left out"`
}

// RegionDemand is a row of a region's demand, in the words of the planner.
type RegionDemand struct {
	Tenant   string `json:"tenant,omitempty" jsonschema:"whose requests these are, or what they are for"`
	RPS      Figure `json:"rps" jsonschema:"requests per second, or per another time: 30, 20/min"`
	Input    Figure `json:"input" jsonschema:"tokens of the prompt: 1500, or 1500,2%:100k"`
	Output   Figure `json:"output" jsonschema:"tokens of the answer, in the same form"`
	CacheHit Figure `json:"cache_hit,omitempty" jsonschema:"part of the input that the prefix cache has: 60%"`
	Retries  Figure `json:"retries,omitempty" jsonschema:"attempts beyond the first, per request: 10%"`
}

// Figure is a number of the planner as it is written.
type Figure string

// Headroom is a share, planner, or empty.
type Headroom string

// byPlanner is the headroom that the demand leaves.
const byPlanner Headroom = "planner"

// defaultHeadroom is that of a region of which nothing is said.
const defaultHeadroom Percent = 25

// UnmarshalText reads a share or planner.
func (h *Headroom) UnmarshalText(b []byte) error {
	var share Percent
	if string(b) != string(byPlanner) && share.UnmarshalText(b) != nil {
		return wrong("write a whole number from 0% to 100%, or planner", "%q is not a headroom", b)
	}
	*h = Headroom(b)
	return nil
}

// stated is the share, false if there is none.
func (h Headroom) stated() (Percent, bool) {
	var share Percent
	return share, share.UnmarshalText([]byte(h)) == nil
}

// Locality is in which region the requests of a model are served.
type Locality struct {
	Prefer   Names    `json:"prefer" jsonschema:"local, where the gateway stands, or regions in the order in which they are tried; those that are left out come after them, as they stand in the pools"`
	Failover Failover `json:"failover,omitempty" jsonschema:"when a request leaves the first of them: loss (no backend there is healthy), or overload (nor where it would wait there for longer than it may). What takes it is bounded by the headroom of the region where it goes"`
	Return   Duration `json:"return,omitempty" jsonschema:"how long the traffic takes to come back to a region that was lost, from a tenth of it on in a straight line; 2m if left out"`
}

// Failover is when a request leaves its home.
type Failover string

const failoverOverload Failover = "overload"

func (Failover) words() []string { return []string{"loss", string(failoverOverload)} }

// local is the word for where the gateway stands.
const local = "local"

// localityOf is the locality of a model: its own, else that of its first pool; nil if
// neither has one. path is where it stands.
func (c *Config) localityOf(name string) (l *Locality, path string) {
	m := c.Models[name]
	if m.Locality != nil {
		return m.Locality, join(join("models", name), "locality")
	}
	for _, p := range m.names()[:min(1, len(m.Pools))] {
		if pool := c.Pools[p]; pool != nil && pool.Locality != nil {
			return pool.Locality, join(join("pools", p), "locality")
		}
	}
	return nil, ""
}

// order is the regions of a model in the order in which they are tried.
func (c *Config) order(m *Model, l *Locality) (out []string) {
	add := func(r string) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, r := range l.Prefer {
		if r == local {
			r = c.Region
		}
		add(r)
	}
	names := m.names()
	for _, f := range m.Fallback {
		names = append(names, f.Pool)
	}
	unnamed := false
	for _, name := range names {
		p := c.Pools[name]
		if p == nil {
			continue
		}
		for i := range p.Backends {
			if r := p.Backends[i].Region; r != "" {
				add(r)
			} else {
				unnamed = true
			}
		}
	}
	if unnamed { // nobody's home comes last
		add("")
	}
	return out
}

// locality is a model's, for the table; nil if it has none, or for the naive policy.
func (b *builder) locality(name string) *route.Locality {
	l, _ := b.c.localityOf(name)
	if l == nil || b.c.Policy == Naive {
		return nil
	}
	return &route.Locality{Regions: b.c.order(b.c.Models[name], l), Overload: l.Failover == failoverOverload, Return: time.Duration(l.Return)}
}

// headrooms are those of all regions that backends are in, for the table.
func (b *builder) headrooms() map[string]int64 {
	plans, err := b.c.RegionPlans()
	if err != nil {
		b.planned(err)
		return nil
	}
	out := make(map[string]int64, len(plans))
	for _, p := range plans {
		out[p.Name] = p.InForce.Times(capacity.Int(1000)).Floor()
	}
	return out
}

// planned reports what the planner cannot plan, where it stands.
func (b *builder) planned(err error) {
	e := sluice.AsError(err)
	b.problem(e.Param, e.Hint, "the planner has no answer: "+e.Msg)
}

// RegionPlans is what each region that backends are in, or that is described, has to
// spare, by name: the planner's figure, and the one in force. The error names the path
// of what the planner cannot plan.
func (c *Config) RegionPlans() ([]capacity.RegionPlan, error) {
	names := c.regions()
	for _, name := range sorted(c.Regions) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	questions := make([]capacity.Region, 0, len(names))
	for _, name := range names {
		q, err := c.Regions[name].question(name, c.replicas(name))
		if err != nil {
			return nil, err
		}
		questions = append(questions, q)
	}
	return capacity.PlanRegions(questions)
}

// replicas is how many backends of a region take work.
func (c *Config) replicas(region string) (n int64) {
	for _, p := range c.Pools {
		for i := range p.Backends {
			if b := &p.Backends[i]; b.Region == region && b.Weight > 0 {
				n++
			}
		}
	}
	return n
}

// question is what the planner is asked of a region; a nil one is not described.
func (r *Region) question(name string, replicas int64) (q capacity.Region, err error) {
	if r == nil {
		r = &Region{}
	}
	q = capacity.Region{Name: name, Replicas: replicas}
	if r.Replicas > 0 {
		q.Replicas = int64(r.Replicas)
	}
	if q.Replica, err = capacity.ReplicaNamed(r.Profile); err != nil {
		return q, under("regions."+name, err)
	}
	for i := range r.Demand {
		w, err := r.Demand[i].workload()
		if err != nil {
			return q, under(index(join(join("regions", name), "demand"), i), err)
		}
		q.Workloads = append(q.Workloads, w)
	}
	if r.Target > 0 {
		q.Target.Amount = capacity.Ratio(int64(r.Target), 100)
	}
	share, stated := r.Headroom.stated()
	if !stated && r.Headroom == "" && len(r.Demand) == 0 {
		share, stated = defaultHeadroom, true
	}
	if stated {
		a := capacity.Ratio(int64(share), 100)
		q.Stated = &a
	}
	return q, nil
}

// under puts a path before the field of an error.
func under(path string, err error) error {
	e := *sluice.AsError(err)
	e.Param = join(path, e.Param)
	return &e
}

// workload is the row as the planner takes it. The error names the field.
func (d *RegionDemand) workload() (capacity.Workload, error) {
	w := capacity.Row{Tenant: d.Tenant, RPS: new(capacity.Rate)}
	for _, f := range []struct {
		name string
		text Figure
		to   interface{ UnmarshalText([]byte) error }
	}{{"rps", d.RPS, w.RPS}, {"input", d.Input, &w.Input}, {"output", d.Output, &w.Output}, {"cache_hit", d.CacheHit, &w.CacheHit}, {"retries", d.Retries, &w.Retries}} {
		if f.text == "" {
			continue
		}
		if err := f.to.UnmarshalText([]byte(f.text)); err != nil {
			e := *sluice.AsError(err)
			e.Param = f.name
			return capacity.Workload{}, &e
		}
	}
	return w.Workload(nil)
}

// located reports localities that name no region that there is, and regions whose
// demand cannot be read.
func (v *validator) located() {
	known := v.c.regions()
	for _, name := range sorted(v.c.Models) {
		l, path := v.c.localityOf(name)
		if l == nil {
			continue
		}
		if len(l.Prefer) == 0 {
			v.fail(join(path, "prefer"), "write local, or a list of "+strings.Join(known, ", "), "says nowhere to be served first")
		}
		for i, r := range l.Prefer {
			at := index(join(path, "prefer"), i)
			switch {
			case r == local && v.c.Region == "":
				v.fail(at, "say at the top where the gateway stands: region: "+strings.Join(known[:min(1, len(known))], ""), "local is nowhere")
			case r != local && !slices.Contains(known, r):
				v.fail(at, suggest(r, known), "no backend is in region %q", r)
			case slices.Contains(l.Prefer[:i], r):
				v.fail(at, "remove it", "%q stands twice", r)
			}
		}
		if time.Duration(l.Return) > route.MaxReturn {
			v.fail(join(path, "return"), fmt.Sprintf("write at most %v", route.MaxReturn), "%v is longer than a return may take", time.Duration(l.Return))
		}
	}
	for _, name := range sorted(v.c.Regions) {
		v.region(name, v.c.Regions[name])
	}
}

func (v *validator) region(name string, r *Region) {
	path := join("regions", name)
	if r == nil {
		v.fail(path, "write {headroom: 30%}, or remove it", "says nothing")
		return
	}
	if _, err := r.question(name, v.c.replicas(name)); err != nil {
		e := sluice.AsError(err)
		v.fail(e.Param, e.Hint, "%s", e.Msg)
	}
	if r.Headroom == byPlanner && len(r.Demand) == 0 {
		v.fail(join(path, "headroom"), "write its demand: [{rps: 20, input: 1k, output: 200}], or a share", "the planner knows no demand of region %q", name)
	}
}
