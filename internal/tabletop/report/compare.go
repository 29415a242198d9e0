package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/tabletop"
)

// ErrNothing says that there is no result to render.
var ErrNothing = errors.New("no results to report: run at least one policy")

// comparison is several results of one scenario, joined. Every slice that is
// called of has one entry per result, nil where the result lacks the thing.
type comparison struct {
	results  []*tabletop.Result
	names    []string // of the policies, distinct
	phases   []phase
	verdicts []verdict
	marks    []tabletop.Mark
}

type phase struct {
	name     string
	from, to time.Duration
	of       []*tabletop.Phase
}

type verdict struct {
	text, phase string
	line        int
	of          []*tabletop.Verdict
}

// group is a class, a tenant or a source within a phase or in all of them.
type group struct {
	kind, name string
	of         []*tabletop.Figures
}

// compare joins results.
func compare(results []*tabletop.Result) (*comparison, error) {
	if len(results) == 0 || slices.Contains(results, nil) {
		return nil, ErrNothing
	}
	c := &comparison{results: results}
	for i, r := range results {
		c.names = append(c.names, c.label(r))
		c.addPhases(i, r)
		c.addVerdicts(i, r)
		for _, m := range r.Marks {
			if !slices.Contains(c.marks, m) {
				c.marks = append(c.marks, m)
			}
		}
	}
	slices.SortStableFunc(c.phases, func(a, b phase) int { return int(min(1, max(-1, a.from-b.from))) })
	slices.SortStableFunc(c.marks, func(a, b tabletop.Mark) int { return int(min(1, max(-1, a.At-b.At))) })
	return c, nil
}

// label names a result by what tells it from the others.
func (c *comparison) label(r *tabletop.Result) string {
	name := clean(r.Policy)
	if len(r.Acts) > 0 {
		name += "+" + clean(strings.Join(r.Acts, "+"))
	}
	if r.Seed != c.results[0].Seed {
		name += fmt.Sprintf(" seed %d", r.Seed)
	}
	plain := name
	for n := 2; slices.Contains(c.names, name); n++ {
		name = fmt.Sprintf("%s #%d", plain, n)
	}
	return name
}

func (c *comparison) addPhases(i int, r *tabletop.Result) {
	for n := range r.Phases {
		p := &r.Phases[n]
		at := slices.IndexFunc(c.phases, func(q phase) bool { return q.name == p.Name && q.from == p.From })
		if at < 0 {
			at = len(c.phases)
			c.phases = append(c.phases, phase{name: p.Name, from: p.From, of: make([]*tabletop.Phase, len(c.results))})
		}
		q := &c.phases[at]
		q.to, q.of[i] = max(q.to, p.To), p
	}
}

func (c *comparison) addVerdicts(i int, r *tabletop.Result) {
	for n := range r.Verdicts {
		v := &r.Verdicts[n]
		at := slices.IndexFunc(c.verdicts, func(w verdict) bool {
			return w.text == v.Text && w.phase == v.Phase && w.line == v.Line && w.of[i] == nil
		})
		if at < 0 {
			at = len(c.verdicts)
			c.verdicts = append(c.verdicts, verdict{v.Text, v.Phase, v.Line, make([]*tabletop.Verdict, len(c.results))})
		}
		c.verdicts[at].of[i] = v
	}
}

// state is how a run is judged. One that was interrupted has not passed, whatever
// it met so far.
type state string

const (
	passed      state = "passed"
	failed      state = "failed"
	interrupted state = "interrupted"
)

func stateOf(r *tabletop.Result) state {
	switch {
	case !r.Passed:
		return failed
	case r.Partial:
		return interrupted
	}
	return passed
}

// met counts a result's verdicts.
func met(r *tabletop.Result) (yes, all int) {
	for _, v := range r.Verdicts {
		if v.Passed {
			yes++
		}
	}
	return yes, len(r.Verdicts)
}

// groups lists the classes, tenants and, where they say more than tenants do or
// an expectation names one, sources of phases, each in the order in which it first occurs.
func (c *comparison) groups(phases ...phase) []group {
	var out []group
	for _, kind := range []string{"class", "tenant", "source"} {
		first, tenants := len(out), ofKind(out, "tenant")
		for _, p := range phases {
			for i, of := range p.of {
				if of != nil {
					out = join(out, first, named(of, kind), kind, i, len(c.results))
				}
			}
		}
		if kind == "source" && len(out)-first <= tenants && !slices.ContainsFunc(out[first:], c.expects) {
			out = out[:first]
		}
	}
	return out
}

func ofKind(groups []group, kind string) (n int) {
	for _, g := range groups {
		if g.kind == kind {
			n++
		}
	}
	return n
}

func named(p *tabletop.Phase, kind string) []tabletop.Named {
	switch kind {
	case "class":
		return p.Classes
	case "tenant":
		return p.Tenants
	}
	return p.Sources
}

// join adds the figures of result i to the groups of a kind, which begin at first.
func join(out []group, first int, add []tabletop.Named, kind string, i, results int) []group {
	for n := range add {
		at := slices.IndexFunc(out[first:], func(g group) bool { return g.name == add[n].Name })
		if at < 0 {
			at = len(out) - first
			out = append(out, group{kind, add[n].Name, make([]*tabletop.Figures, results)})
		}
		g := &out[first+at]
		if g.of[i] == nil {
			g.of[i] = &add[n].Figures
		}
	}
	return out
}

// bounded keeps at most n groups of a kind, those with the most requests and
// those that an expectation names, in their order, and says how many it left out.
func (c *comparison) bounded(groups []group, n int) (kept []group, left map[string]int) {
	left = map[string]int{}
	for _, kind := range []string{"class", "tenant", "source"} {
		var all []group
		for _, g := range groups {
			if g.kind == kind {
				all = append(all, g)
			}
		}
		ranked := slices.Clone(all)
		slices.SortStableFunc(ranked, func(a, b group) int {
			return int(min(1, max(-1, c.weight(b)-c.weight(a))))
		})
		ranked = ranked[:min(n, len(ranked))]
		for _, g := range all {
			if slices.ContainsFunc(ranked, func(r group) bool { return r.name == g.name }) {
				kept = append(kept, g)
			}
		}
		left[kind] = len(all) - len(ranked)
	}
	return kept, left
}

// weight is how much a group has to say.
func (c *comparison) weight(g group) (w int64) {
	for _, f := range g.of {
		if f != nil {
			w += f.Requests
		}
	}
	if c.expects(g) {
		w += 1 << 40
	}
	return w
}

// names reports whether the expectation is of the group: tenant.NAME.metric.
func (v verdict) names(kind, name string) bool {
	return strings.Contains(v.text, kind+"."+name+".")
}

// mostTold bounds the tenants and sources that are shown with the verdict.
const mostTold = 6

// told are the groups that belong to the verdict: the classes, and the tenants
// and sources that expectations name.
func (c *comparison) told() []group {
	named := 0
	return slices.DeleteFunc(c.groups(c.phases...), func(g group) bool {
		if g.kind == "class" {
			return false
		}
		if !c.expects(g) || named == mostTold {
			return true
		}
		named++
		return false
	})
}

// first is the group that the first expectation of a group names, or else the
// highest class.
func (c *comparison) first(groups []group) (g group, ok bool) {
	for _, v := range c.verdicts {
		for _, g := range groups {
			if v.names(g.kind, g.name) || g.kind == "class" && slices.Contains(strings.FieldsFunc(v.text, func(r rune) bool { return r == ' ' || r == '.' || r == ':' }), g.name) {
				return g, true
			}
		}
	}
	if len(groups) == 0 {
		return group{}, false
	}
	return groups[0], true
}

// expects reports whether an expectation names the group.
func (c *comparison) expects(g group) bool {
	return slices.ContainsFunc(c.verdicts, func(v verdict) bool { return v.names(g.kind, g.name) })
}

// totals are the figures of all phases of a result together that can be summed:
// no percentiles.
type totals struct {
	judged                             time.Duration
	requests, good, willing, completed int64
	refused, admitted, settled         int64
	lost, twice, open                  int64
	attempts, resubmitted, budget      int64
	amplification                      int64 // of the phase in which it is highest, permille
	cost                               sluice.Nano
}

// slo is the permille of requests, but for those that left by their own will,
// that were good; −1 if there was none.
func (t totals) slo() int64 {
	if t.willing <= 0 {
		return -1
	}
	return t.good * 1000 / t.willing
}

// perSecond is n over the judged time.
func (t totals) perSecond(n int64) float64 {
	if t.judged <= 0 {
		return -1
	}
	return float64(n) / t.judged.Seconds()
}

// perGood is the cost per useful completion; −1 if there was none.
func (t totals) perGood() sluice.Nano {
	if t.good <= 0 {
		return -1
	}
	return t.cost / sluice.Nano(t.good)
}

// add sums one group's figures of a phase.
func (t *totals) add(f *tabletop.Figures, over time.Duration) {
	t.judged += over
	t.requests += f.Requests
	t.good += f.Good
	t.completed += f.Completed
	t.willing += f.Requests - f.Left
	t.cost += f.Cost
	t.refused += refusals(f)
}

// refusals counts every refusal, resubmissions included.
func refusals(f *tabletop.Figures) (n int64) {
	for _, r := range f.Reasons {
		n += r.Count
	}
	return n
}

// total sums the phases of result i: of all requests, or of the group that is named.
func (c *comparison) total(i int, kind, name string) totals {
	var t totals
	for _, p := range c.phases {
		of := p.of[i]
		if of == nil {
			continue
		}
		over := of.To - of.From
		if kind != "" {
			if n := slices.IndexFunc(named(of, kind), func(n tabletop.Named) bool { return n.Name == name }); n >= 0 {
				t.add(&named(of, kind)[n].Figures, over)
			} else {
				t.judged += over
			}
			continue
		}
		t.add(&of.All, over)
		t.admitted, t.attempts = t.admitted+of.Retries.Admitted, t.attempts+of.Retries.Attempts
		t.resubmitted, t.budget = t.resubmitted+of.Retries.Resubmitted, t.budget+of.Retries.Refused
		t.settled, t.lost = t.settled+of.Books.Settled, t.lost+of.Books.Lost
		t.twice, t.open = t.twice+of.Books.Twice, t.open+of.Books.Open
		t.amplification = max(t.amplification, of.Retries.Amplification)
	}
	return t
}
