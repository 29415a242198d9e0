package report

import (
	"slices"

	"sluice/internal/tabletop"
)

// What the parts of a report are about.
const (
	retriesAbout  = "attempts upstream; what clients sent again stands apart"
	booksAbout    = "lost, twice and open must be 0"
	fairnessAbout = "largest difference of service by weight between two tenants, and its bound"
)

// fact is one figure of a phase as a whole.
type fact struct {
	head, about string
	show        func(p *tabletop.Phase) quantity
	zero        bool // anything but 0 is a fault
}

// retryFacts tell the gateway's attempts from what clients sent again.
var retryFacts = []fact{
	{"admitted", "requests that the gateway took, resubmissions included", func(p *tabletop.Phase) quantity { return count(p.Retries.Admitted) }, false},
	{"attempts", "attempts upstream", func(p *tabletop.Phase) quantity { return count(p.Retries.Attempts) }, false},
	{"amplification", "attempts by request that was dispatched", func(p *tabletop.Phase) quantity {
		if p.Retries.Attempts == 0 {
			return quantity{}
		}
		return times(p.Retries.Amplification)
	}, false},
	{"no budget", "retries that the retry budget refused", func(p *tabletop.Phase) quantity { return count(p.Retries.Refused) }, false},
	{"resubmitted", "what clients sent again after a refusal or a failure", func(p *tabletop.Phase) quantity { return count(p.Retries.Resubmitted) }, false},
}

// bookFacts are the conservation of requests and money.
var bookFacts = []fact{
	{"admitted", "requests with a hold", func(p *tabletop.Phase) quantity { return count(p.Books.Admitted) }, false},
	{"settled", "requests settled", func(p *tabletop.Phase) quantity { return count(p.Books.Settled) }, false},
	{"lost", "ended without a settlement", func(p *tabletop.Phase) quantity { return count(p.Books.Lost) }, true},
	{"twice", "settled more than once", func(p *tabletop.Phase) quantity { return count(p.Books.Twice) }, true},
	{"open", "holds that outlived their request", func(p *tabletop.Phase) quantity { return count(p.Books.Open) }, true},
	{"cost", "settled cost", func(p *tabletop.Phase) quantity { return dollars(p.Books.Cost) }, false},
}

// factsGrid has a row for each phase.
func (c *comparison) factsGrid(facts []fact) grid {
	g := grid{policies: c.names}
	for _, p := range c.phases {
		g.rows = append(g.rows, clean(p.name))
	}
	for _, f := range facts {
		col := column{head: f.head, about: f.about}
		for _, p := range c.phases {
			row := make([]cell, len(p.of))
			for i, of := range p.of {
				if of != nil {
					row[i] = cell{f.show(of), standing(i)}
					if f.zero && row[i].Num != "0" {
						row[i].style = red
					}
				}
			}
			col.cells = append(col.cells, row)
		}
		g.columns = append(g.columns, col)
	}
	return g
}

// standing is the style of policy i's figures: all but the first stand back.
func standing(i int) style {
	if i > 0 {
		return faint
	}
	return plain
}

// summaryGrid is what can be summed over all phases, of everyone, each class and
// what expectations name.
func (c *comparison) summaryGrid() grid {
	g := grid{policies: c.names, columns: []column{
		{head: "good/s", about: metrics[0].about},
		{head: "SLO", about: metrics[1].about},
		{head: "asked/s", about: "requests first submitted, per second"},
		{head: "refused", about: "refusals, those of resubmissions included"},
		{head: "$/good", about: "cost of all requests by useful completion"},
	}}
	row := func(name, kind, of string) {
		g.rows = append(g.rows, name)
		cells := make([][]cell, len(g.columns))
		for i := range c.results {
			sum := c.total(i, kind, of)
			for n, q := range []quantity{amount(sum.perSecond(sum.good)), percent(sum.slo()), amount(sum.perSecond(sum.requests)), count(sum.refused), dollars(sum.perGood())} {
				st := standing(i)
				if n < 2 {
					st = bold
				}
				cells[n] = append(cells[n], cell{q, st})
			}
		}
		for n := range cells {
			g.columns[n].cells = append(g.columns[n].cells, cells[n])
		}
	}
	row("everyone", "", "")
	for _, of := range c.told() {
		row(of.title(), of.kind, of.name)
	}
	return g
}

// phaseGrid is every metric of a phase, of everyone and of each group, with at
// most the given number of tenants and of sources; it says how many of each kind
// it left out.
func (c *comparison) phaseGrid(p phase, most int) (grid, map[string]int) {
	groups, leftOut := c.bounded(c.groups(p), most)
	all := group{kind: "all", name: "everyone", of: make([]*tabletop.Figures, len(c.results))}
	for i, of := range p.of {
		if of != nil {
			all.of[i] = &of.All
		}
	}
	groups = entitled(append([]group{all}, groups...))
	g := grid{policies: c.names}
	for _, of := range groups {
		g.rows = append(g.rows, of.title())
	}
	for _, m := range metrics {
		g.columns = append(g.columns, m.column(groups))
	}
	for _, reason := range reasonsOf(groups) {
		g.columns = append(g.columns, refusedFor(reason).column(groups))
	}
	return g, leftOut
}

// entitled puts a title before the tenants and before the sources.
func entitled(groups []group) (out []group) {
	kind := ""
	for _, g := range groups {
		if g.kind != kind && (g.kind == "tenant" || g.kind == "source") {
			out = append(out, group{name: g.kind + "s"})
		}
		kind = g.kind
		out = append(out, g)
	}
	return out
}

// groupGrid is every metric of one group, with a row for each phase.
func (c *comparison) groupGrid(kind, name string) grid {
	g := grid{policies: c.names}
	var rows []group
	for _, p := range c.phases {
		for _, of := range c.groups(p) {
			if of.kind == kind && of.name == name {
				g.rows, rows = append(g.rows, clean(p.name)), append(rows, of)
			}
		}
	}
	for _, m := range metrics {
		g.columns = append(g.columns, m.column(rows))
	}
	for _, reason := range reasonsOf(rows) {
		g.columns = append(g.columns, refusedFor(reason).column(rows))
	}
	return g
}

// title names a group in a row.
func (g group) title() string {
	if g.kind == "tenant" || g.kind == "source" {
		return "  " + clean(g.name)
	}
	return clean(g.name)
}

// column is the metric of groups.
func (m metric) column(groups []group) column {
	c := column{head: m.head, about: m.about}
	for _, g := range groups {
		var row []cell
		if g.of != nil {
			row = make([]cell, len(g.of))
		}
		for i, f := range g.of {
			if f != nil && (g.kind != "all" || !m.part) {
				row[i] = cell{m.show(f), standing(i)}
			}
		}
		c.cells = append(c.cells, row)
	}
	return c
}

// gap is the fairness of one pool and class in a phase.
type gap struct {
	title string
	of    []*tabletop.FairnessGap
}

// gaps joins the fairness of phases.
func (c *comparison) gaps() (out []gap) {
	for _, p := range c.phases {
		first := len(out)
		for i, of := range p.of {
			if of == nil {
				continue
			}
			for n := range of.Fairness {
				f := &of.Fairness[n]
				title := clean(p.name + ": " + string(f.Pool) + ", " + f.Class)
				at := slices.IndexFunc(out[first:], func(g gap) bool { return g.title == title })
				if at < 0 {
					at = len(out) - first
					out = append(out, gap{title, make([]*tabletop.FairnessGap, len(c.results))})
				}
				out[first+at].of[i] = f
			}
		}
	}
	return out
}

// fairnessGrid has a row for each phase, pool and class.
func (c *comparison) fairnessGrid() grid {
	g := grid{policies: c.names}
	widest, bound := column{head: "gap", about: fairnessAbout}, column{head: "bound", about: "what the scheduler guarantees"}
	for _, of := range c.gaps() {
		g.rows = append(g.rows, of.title)
		a, b := make([]cell, len(of.of)), make([]cell, len(of.of))
		for i, f := range of.of {
			if f == nil {
				continue
			}
			a[i], b[i] = cell{count(f.Gap), standing(i)}, cell{count(f.Bound), standing(i)}
			if f.Gap > f.Bound {
				a[i].style = red
			}
		}
		widest.cells, bound.cells = append(widest.cells, a), append(bound.cells, b)
	}
	g.columns = []column{widest, bound}
	return g
}

// backendFacts are what the backends did; how busy they were comes last.
var backendFacts = []struct {
	head, about string
	show        func(u tabletop.BackendUse) quantity
}{
	{"attempts", "attempts sent to it", func(u tabletop.BackendUse) quantity { return count(u.Attempts) }},
	{"failed", "of them failed", func(u tabletop.BackendUse) quantity { return count(u.Failed) }},
	{"prefix hits", "input found in its cache", func(u tabletop.BackendUse) quantity { return percent(u.Hits) }},
	{"prefill", "of what it could prefill", func(u tabletop.BackendUse) quantity { return percent(u.Prefill) }},
	{"KV mean", "mean occupancy of its memory", func(u tabletop.BackendUse) quantity { return percent(u.KVMean) }},
	{"KV max", "highest occupancy of its memory", func(u tabletop.BackendUse) quantity { return percent(u.KVMax) }},
	{"busy", "part of the time in which something ran", func(u tabletop.BackendUse) quantity { return percent(u.Busy) }},
}

// backendGrid has a row for each backend of a phase, at most the given number.
func (c *comparison) backendGrid(p phase, most int) grid {
	g := grid{policies: c.names}
	var rows [][]*tabletop.BackendUse
	for i, of := range p.of {
		if of == nil {
			continue
		}
		for n := range of.Backends {
			name := clean(string(of.Backends[n].Backend))
			at := slices.Index(g.rows, name)
			if at < 0 {
				if len(rows) == most {
					continue
				}
				at = len(rows)
				g.rows, rows = append(g.rows, name), append(rows, make([]*tabletop.BackendUse, len(c.results)))
			}
			rows[at][i] = &of.Backends[n]
		}
	}
	for _, f := range backendFacts {
		col := column{head: f.head, about: f.about}
		for _, of := range rows {
			row := make([]cell, len(of))
			for i, u := range of {
				if u != nil {
					row[i] = cell{f.show(*u), standing(i)}
				}
			}
			col.cells = append(col.cells, row)
		}
		g.columns = append(g.columns, col)
	}
	return g
}
