package cli

import (
	"fmt"
	"strings"

	"sluice/internal/admin"
	"sluice/internal/capacity"
	"sluice/internal/config"
)

type capacityRegionsCmd struct {
	File string `arg:"" help:"The gateway's configuration file, whose regions say what is asked of them; see docs/routing.md." type:"path"`
	output
}

// regionPlan is one region, as a number for programs.
type regionPlan struct {
	Region   string   `json:"region"`
	Replicas int64    `json:"replicas"`
	GPUs     int64    `json:"gpus"`
	Engine   *float64 `json:"engine,omitempty"`   // part of its engines' time that its own demand uses; absent where no demand is known
	Planner  *float64 `json:"planner,omitempty"`  // what that leaves
	Headroom float64  `json:"headroom"`           // in force
	Absorbed *float64 `json:"absorbed,omitempty"` // part of its demand that the others take when it is lost
}

// Run plans the regions of a configuration.
func (c *capacityRegionsCmd) Run(env *Env) error {
	cfg, err := config.Load(c.File, env.Getenv)
	if err != nil {
		return err
	}
	plans, err := cfg.RegionPlans()
	if err != nil {
		return planned(c.File, err)
	}
	return c.print(env.Stdout, regionsView(plans))
}

func regionsView(plans []capacity.RegionPlan) view {
	all := []regionPlan{}
	v := view{columns: []string{"region", "replicas", "gpus", "engine", "planner", "headroom", "absorbed"}}
	rows := [][]string{{"region", "replicas", "GPUs", "own demand", "leaves", "headroom", "", "when it is lost, the others take"}}
	known, short := false, []string{}
	for i := range plans {
		p := &plans[i]
		r := regionPlan{Region: p.Name, Replicas: p.Replicas, GPUs: p.GPUs, Headroom: p.InForce.Float()}
		engine, leaves, absorbed, taken := "", "", "", "its demand is not known"
		cells := [3]string{}
		if p.Known {
			known = true
			used, left, part := p.Used.Float(), p.Headroom.Float(), p.Absorbed.Float()
			r.Engine, r.Planner, r.Absorbed = &used, &left, &part
			engine, leaves, absorbed = number(used), number(left), number(part)
			cells = [3]string{share(used), share(left), absorbed}
			if taken = "all of it, " + factor(part) + " times"; p.Absorbed.Cmp(capacity.Int(1)) < 0 {
				taken = share(part) + " of it"
				short = append(short, p.Name)
			}
		}
		all = append(all, r)
		v.rows = append(v.rows, []string{p.Name, count(p.Replicas), count(p.GPUs), engine, leaves, number(r.Headroom), absorbed})
		rows = append(rows, []string{p.Name, count(p.Replicas), count(p.GPUs), cells[0], cells[1], share(r.Headroom), bar(r.Headroom), taken})
	}
	v.data = struct {
		Regions []regionPlan `json:"regions"`
	}{all}
	var text strings.Builder
	switch {
	case len(plans) == 0:
		text.WriteString("No backend is in a region.\n")
	case !known:
		text.WriteString("No region has a demand: what the others could take is not known.\n\n")
	case len(short) == 0:
		text.WriteString("The loss of any one region is absorbed by the others.\n\n")
	default:
		fmt.Fprintf(&text, "The loss of %s is not absorbed by the others.\n\n", strings.Join(short, ", or of "))
	}
	if len(plans) > 0 {
		text.WriteString(columns(rows, "lrrrrrll"))
		text.WriteString("\n" + admin.IllustrativeNote + "\n")
	}
	v.text = text.String()
	return v
}
