package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"sluice/internal/tabletop"
)

// card is a policy's verdict and its large figures.
func (c *comparison) card(i int) policyCard {
	r := c.results[i]
	yes, all := met(r)
	sum := c.total(i, "", "")
	card := policyCard{
		Index: i % palette, Name: clean(c.names[i]), State: stateOf(r), Verdict: fmt.Sprintf("%d of %d expectations met", yes, all),
		Goodput: amount(sum.perSecond(sum.good)), Asked: amount(sum.perSecond(sum.requests)).String(),
		Refused: count(sum.refused).String(), Cost: dollars(sum.perGood()).String(),
		Amplification: times(sum.amplification).String(), Lost: fmt.Sprintf("%d lost, %d twice, %d open", sum.lost, sum.twice, sum.open),
	}
	if sum.attempts == 0 {
		card.Amplification = quantity{}.String()
	}
	if all == 0 {
		card.Verdict = "no expectations"
	}
	if r.Partial {
		card.Partial = "interrupted at " + moment(r.Ended)
	}
	card.SLO, card.SLOOf = percent(sum.slo()), "of all requests"
	if g, ok := c.first(c.groups(c.phases...)); ok {
		card.SLO, card.SLOOf = percent(c.total(i, g.kind, g.name).slo()), clean(g.name)
	}
	for _, of := range c.told() {
		t := c.total(i, of.kind, of.name)
		card.Bars = append(card.Bars, bar{clean(of.name), of.kind, percent(t.slo()), float64(max(0, t.slo())) / 10})
	}
	for _, v := range c.verdicts {
		if of := v.of[i]; of != nil && !of.Passed {
			if len(card.Failing) == 3 {
				card.FailingMore++
				continue
			}
			card.Failing = append(card.Failing, v.title()+" (got "+clean(of.Got)+")")
		}
	}
	return card
}

// expected is the table of expectations.
func (c *comparison) expected() (out []expected) {
	for _, v := range c.verdicts {
		e := expected{Text: clean(v.text), Phase: clean(v.phase)}
		for i, of := range v.of {
			if of == nil {
				e.Of = append(e.Of, gotCell{})
				continue
			}
			cell := gotCell{Known: true, Passed: of.Passed, Got: clean(of.Got)}
			if want := clean(of.Want); e.Want == "" {
				e.Want = want
			} else if want != e.Want {
				cell.Want = want
			}
			e.Of = append(e.Of, cell)
			e.Failed = e.Failed || i == 0 && !of.Passed
		}
		out = append(out, e)
	}
	for first, i := 0, 0; i < len(out); i++ {
		if out[i].Text != out[first].Text {
			first = i
		}
		out[first].Rows++
	}
	return out
}

func (c *comparison) phaseRow(p phase, most int) phaseRow {
	g, leftOut := c.phaseGrid(p, most)
	row := phaseRow{Name: clean(p.name), When: moment(p.from) + " to " + moment(p.to)}
	row.Grid = newHTMLGrid("Figures of "+row.Name+", "+row.When, g)
	row.Backends = newHTMLGrid("Backends in "+row.Name, c.backendGrid(p, pageBackends))
	var left []string
	for _, kind := range []string{"tenant", "source"} {
		if n := leftOut[kind]; n > 0 {
			left = append(left, fmt.Sprintf("%d more %ss with fewer requests", n, kind))
		}
	}
	row.Left = strings.Join(left, " and ")
	return row
}

// fill draws the charts of groups and pools.
func (d drawing) fill(p *page, groups []lines) {
	scales := d.sparkScales(groups)
	told := d.telling(groups)
	for i, g := range groups {
		part := groupPart{Key: fmt.Sprintf("g%d", i), Kind: g.kind, Name: clean(g.name)}
		part.Open = i == 0 || i == told
		part.Charts = d.parts(d.charts(g, part.Key))
		part.Grid = newHTMLGrid(part.Name+" by phase", d.groupGrid(g.kind, g.name))
		p.Groups = append(p.Groups, part)
		p.Glance = append(p.Glance, d.glance(part, g, scales))
	}
	for i, pl := range d.pools() {
		key := fmt.Sprintf("p%d", i)
		p.Pools = append(p.Pools, groupPart{Key: key, Kind: "pool", Name: clean(pl.name), Charts: d.parts(d.poolCharts(pl, key))})
	}
}

// telling is the index of the tenant that has most to tell: one for which a
// policy fails an expectation, or else one that an expectation names; −1 if there
// is none.
func (c *comparison) telling(groups []lines) int {
	named := -1
	for i, g := range groups {
		if g.kind != "tenant" {
			continue
		}
		for _, v := range c.verdicts {
			if !v.names(g.kind, g.name) {
				continue
			}
			if slices.ContainsFunc(v.of, func(of *tabletop.Verdict) bool { return of != nil && !of.Passed }) {
				return i
			}
			if named < 0 {
				named = i
			}
		}
	}
	return named
}

func (d drawing) parts(charts []chart) (out []chartPart) {
	for _, c := range charts {
		part := chartPart{Title: c.title, About: c.about, SVG: template.HTML(c.svg(d.axis))}
		for _, l := range c.curves {
			if l.kind != "want" {
				part.Desc = append(part.Desc, clean(l.name)+": "+summary(d.axis, c.unit, l.values))
			}
		}
		for _, p := range c.piles {
			for _, l := range p.parts {
				part.Desc = append(part.Desc, clean(l.name)+": "+summary(d.axis, c.unit, l.values))
			}
		}
		part.Reasons = d.keys(c.piles)
		out = append(out, part)
	}
	return out
}

// keys are the reasons that occur in piles.
func (d drawing) keys(piles []pile) (out []reasonKey) {
	for i, reason := range d.reasons {
		key := reasonKey{i % reasonPalette, reason.String()}
		for _, p := range piles {
			for _, l := range p.parts {
				some := slices.ContainsFunc(l.values, func(x float64) bool { return x > 0 })
				if some && strings.HasSuffix(l.name, ": "+key.Name) && !slices.Contains(out, key) {
					out = append(out, key)
				}
			}
		}
	}
	return out
}

// sparkColumns are the small charts of each group at a glance.
var sparkColumns = []struct {
	title string
	unit  unit
	of    func(d drawing, s tabletop.Series, l *tabletop.Line) []float64
}{
	{"Goodput", inRate, func(d drawing, s tabletop.Series, l *tabletop.Line) []float64 { return rates(d.axis, s, l.Good) }},
	{"TTFT p99", inSeconds, func(d drawing, s tabletop.Series, l *tabletop.Line) []float64 {
		return highest(d.axis, s, l.TTFT99, 1e-9)
	}},
	{"Queue age", inSeconds, func(d drawing, s tabletop.Series, l *tabletop.Line) []float64 {
		return highest(d.axis, s, l.QueueAge, 1e-9)
	}},
	{"Refused", inRate, func(d drawing, s tabletop.Series, l *tabletop.Line) []float64 { return refusalRate(d.axis, s, l) }},
}

// refusalRate is refusals per second for any reason.
func refusalRate(a axis, s tabletop.Series, l *tabletop.Line) []float64 {
	out := make([]float64, a.columns)
	for _, r := range l.Rejected {
		for c, x := range rates(a, s, r.Counts) {
			out[c] += zero(x)
		}
	}
	return out
}

// coarse makes a small chart's points out of a large one's: the highest of each few.
func coarse(values []float64) []float64 {
	k := (len(values) + sparkPoints - 1) / sparkPoints
	out := make([]float64, (len(values)+k-1)/k)
	for i := range out {
		out[i] = missing
		for _, x := range values[i*k : min(len(values), (i+1)*k)] {
			if out[i] != out[i] || x > out[i] {
				out[i] = x
			}
		}
	}
	return out
}

const sparkPoints = 60

// sparkScales are the scales of small charts: each column has one for all groups
// and policies of a kind, so that they can be compared.
func (d drawing) sparkScales(groups []lines) map[string][]scale {
	out := map[string][]scale{}
	for _, kind := range []string{"class", "tenant"} {
		for _, col := range sparkColumns {
			var all [][]float64
			for _, g := range groups {
				if g.kind == kind {
					for _, c := range d.curves(g, "", "", func(s tabletop.Series, l *tabletop.Line) []float64 { return col.of(d, s, l) }) {
						all = append(all, c.values)
					}
				}
			}
			out[kind] = append(out[kind], newScale(col.unit, all...))
		}
	}
	return out
}

// glance is a group's row of small charts.
func (d drawing) glance(part groupPart, g lines, scales map[string][]scale) glance {
	out := glance{Key: part.Key, Kind: g.kind, Name: part.Name}
	for i := range d.drawn() {
		slo := percent(d.total(i, g.kind, g.name).slo())
		if l := g.of[i]; !slo.known() && l != nil {
			slo = goodShare(l)
		}
		out.SLO = append(out.SLO, slo)
	}
	for i, col := range sparkColumns {
		curves := d.curves(g, "", "p99", func(s tabletop.Series, l *tabletop.Line) []float64 { return col.of(d, s, l) })
		s := newScale(col.unit)
		if of := scales[g.kind]; of != nil {
			s = of[i]
		}
		out.Sparks = append(out.Sparks, template.HTML(spark(s, curves, col.title+" of "+g.name)))
	}
	return out
}

// goodShare is the part of a line's requests that were good, for groups that
// phases do not have.
func goodShare(l *tabletop.Line) quantity {
	var good, all int64
	for i, n := range l.Requests {
		all += n
		if i < len(l.Good) {
			good += l.Good[i]
		}
	}
	if all <= 0 {
		return quantity{}
	}
	return percent(good * 1000 / all)
}

// spark draws a small chart without axes.
func spark(s scale, curves []curve, title string) string {
	n := 1
	for i := range curves {
		curves[i].values = coarse(curves[i].values)
		n = max(n, len(curves[i].values))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark" viewBox="-.5 -40 %d %d" preserveAspectRatio="none" role="img"><title>%s</title>`, n, tall+80, esc(title))
	for i := len(curves) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, `<path class="l p%d p99" d="%s"/>`, curves[i].policy%palette, path(s, curves[i].values))
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// timeline draws the phases of the run, and where events are, over its length.
func timeline(a axis, c *comparison) string {
	var b strings.Builder
	part := func(x float64) float64 { return 100 * (x + 0.5) / float64(a.columns) }
	b.WriteString(`<svg class="timeline" width="100%" height="64" role="img" aria-label="The phases of the run and the events in it; the list below has the same."><rect class="warm" x="0" y="14" width="100%" height="26"/>`)
	for i, p := range c.phases {
		from, to := part(a.at(p.from)), part(a.at(p.to))
		fmt.Fprintf(&b, `<svg x="%.3f%%" y="14" width="%.3f%%" height="26"><rect class="tp%d" width="100%%" height="26"/><text x="8" y="17" class="tn">%s</text></svg>`, from, max(0, to-from), i%2, esc(p.name))
	}
	for _, t := range timeTicks(a, 8) {
		x, anchor := part(a.at(t)), "middle"
		switch {
		case t == 0:
			anchor = "start"
		case x > 96:
			anchor = "end"
		}
		fmt.Fprintf(&b, `<text class="tt" text-anchor="%s" x="%.3f%%" y="56">%s</text>`, anchor, x, moment(t))
	}
	for _, m := range c.marks {
		x := part(a.at(m.At))
		fmt.Fprintf(&b, `<line class="tm" x1="%.3f%%" x2="%.3f%%" y1="12" y2="42"><title>%s</title></line>`, x, x, esc(m.Label))
	}
	for _, n := range numbered(a, c.marks, 100, 2.4) {
		fmt.Fprintf(&b, `<text class="te" x="%.3f%%" y="10">%s</text>`, min(98, max(1, n.x)), n.label)
	}
	b.WriteString(`</svg>`)
	return b.String()
}
