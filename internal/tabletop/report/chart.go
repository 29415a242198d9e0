package report

import (
	"fmt"
	"strings"
	"time"

	"sluice/internal/tabletop"
)

// The size of a chart in its own units; the page scales it.
const (
	chartWidth, chartHeight = 360, 172
	plotLeft, plotTop       = 46, 8
	plotWidth, plotHeight   = 306, 132
)

// timeOf counts columns.
func timeOf(columns int) time.Duration { return time.Duration(columns) }

// curve is one line of a chart.
type curve struct {
	policy int    // its color and dash
	name   string // what the reader is told: "sluice p99"
	kind   string // class of its style: p50, p99, fair, asked …
	values []float64
}

// pile is a policy's curves on top of each other, the first at the bottom.
type pile struct {
	policy string
	parts  []curve
}

// chart is one panel: curves over time on one scale.
type chart struct {
	title, about string
	unit         unit
	curves       []curve
	piles        []pile // one of each policy, instead of curves
	key          string // unique in the page
}

// svg draws the chart.
func (c chart) svg(a axis) string {
	if c.piles != nil {
		return c.heaps(a)
	}
	var lines [][]float64
	for _, l := range c.curves {
		lines = append(lines, l.values)
	}
	s := newScale(c.unit, lines...)
	if s.log {
		c.about += ", logarithmic"
	}
	var b strings.Builder
	c.open(&b)
	gridY(&b, s, plotLeft, plotWidth)
	b.WriteString(`<use href="#xa"/>`)
	c.plot(&b, s, a, plotLeft, plotWidth)
	for i := len(c.curves) - 1; i >= 0; i-- { // the first policy on top
		l := c.curves[i]
		if l.kind == "asked" {
			fmt.Fprintf(&b, `<path class="asked" data-n="%s" d="%s"/>`, esc(l.name), area(s, l.values))
			continue
		}
		fmt.Fprintf(&b, `<path class="l p%d %s" data-n="%s" d="%s"/>`, l.policy%palette, l.kind, esc(l.name), path(s, l.values))
	}
	b.WriteString(`</svg></svg>`)
	return b.String()
}

// palette is how many policies have a style of their own.
const palette = 4

// open begins the picture with its name and what it shows in words.
func (c chart) open(b *strings.Builder) {
	fmt.Fprintf(b, `<svg class="chart" viewBox="0 0 %d %d" role="img" tabindex="0" aria-labelledby="%s-t"><title id="%s-t">%s</title>`,
		chartWidth, chartHeight, c.key, c.key, esc(c.title+", "+c.about))
}

// plot begins the inner picture, whose units are columns and thousandths of the height.
func (c chart) plot(b *strings.Builder, s scale, a axis, x, wide int) {
	log := ""
	if s.log {
		log = ` data-log="1"`
	}
	fmt.Fprintf(b, `<svg class="plot" x="%d" y="%d" width="%d" height="%d" viewBox="-.5 0 %d %d" preserveAspectRatio="none" data-u="%s" data-lo="%g" data-hi="%g"%s><use href="#bg"/>`,
		x, plotTop, wide, plotHeight, a.columns, tall, esc(c.unit.name), s.lo, s.hi, log)
}

// gridY writes the ticks of the value axis and their lines.
func gridY(b *strings.Builder, s scale, x, wide int) {
	var d strings.Builder
	for _, t := range s.ticks {
		y := plotTop + float64(s.y(t))*plotHeight/tall
		fmt.Fprintf(&d, "M%d %.1fh%d", x, y, wide)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" class="ty">%s</text>`, plotLeft-5, y+3.5, esc(tick(s, t)))
	}
	fmt.Fprintf(b, `<path class="grid" d="%s"/>`, d.String())
}

// tick writes a value of an axis without needless decimals.
func tick(s scale, x float64) string {
	q := s.write(x)
	if strings.Contains(q.Num, ".") && !strings.Contains(q.Num, "e") {
		end := len(q.Num)
		suffix := ""
		if last := q.Num[end-1]; last < '0' || last > '9' {
			suffix, end = string(last), end-1
		}
		q.Num = strings.TrimRight(strings.TrimRight(q.Num[:end], "0"), ".") + suffix
	}
	if x == 0 {
		return q.Num
	}
	return q.String()
}

// heaps draws the piles side by side on one scale.
func (c chart) heaps(a axis) string {
	var tops [][]float64
	for _, p := range c.piles {
		tops = append(tops, heaped(a, p.parts)...)
	}
	s := newScale(c.unit, tops...)
	var b strings.Builder
	c.open(&b)
	gridY(&b, s, plotLeft, plotWidth)
	const gap = 8
	n := len(c.piles)
	wide := (plotWidth - gap*(n-1)) / n
	for i, p := range c.piles {
		x := plotLeft + i*(wide+gap)
		c.plot(&b, s, a, x, wide)
		heaps := heaped(a, p.parts)
		for k := len(heaps) - 1; k >= 0; k-- {
			if d := area(s, heaps[k]); d != "" {
				fmt.Fprintf(&b, `<path class="r r%s" data-n="%s" d="%s"/>`, p.parts[k].kind, esc(p.parts[k].name), d)
			}
		}
		b.WriteString(`</svg>`)
		if n > 1 {
			fmt.Fprintf(&b, `<text x="%d" y="%d" class="tx">%s</text>`, x+wide/2, plotTop+plotHeight+14, esc(cut(p.policy, max(6, wide/7))))
		}
	}
	if n == 1 {
		b.WriteString(`<use href="#xa"/>`)
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// heaped adds each curve of a pile to those below.
func heaped(a axis, parts []curve) [][]float64 {
	var out [][]float64
	for i, l := range parts {
		sum := make([]float64, a.columns)
		for c := range sum {
			sum[c] = zero(l.values[c])
			if i > 0 {
				sum[c] += out[i-1][c]
			}
		}
		out = append(out, sum)
	}
	return out
}

// frame draws what all charts of a page have in common, once: the phases and
// events behind every plot, and the axis of time below it.
func frame(a axis, c *comparison) string {
	var b strings.Builder
	b.WriteString(`<svg class="defs" width="0" height="0" aria-hidden="true"><defs><g id="bg">`)
	for i, p := range c.phases {
		from, to := a.at(p.from), a.at(p.to)
		fmt.Fprintf(&b, `<rect class="ph%d" x="%.2f" y="0" width="%.2f" height="%d"/>`, i%2, from, max(0, to-from), tall)
	}
	var d strings.Builder
	for _, m := range c.marks {
		fmt.Fprintf(&d, "M%.2f 0V%d", a.at(m.At), tall)
	}
	fmt.Fprintf(&b, `<path class="ev" d="%s"/></g><g id="xa">`, d.String())
	for _, t := range timeTicks(a, 5) {
		x := plotLeft + (a.at(t)+0.5)*plotWidth/float64(a.columns)
		anchor := ""
		if x > chartWidth-24 {
			anchor, x = ` end`, chartWidth-2
		}
		fmt.Fprintf(&b, `<path class="tk" d="M%.1f %dv4"/><text class="tx%s" x="%.1f" y="%d">%s</text>`, min(x, plotLeft+plotWidth), plotTop+plotHeight, anchor, x, plotTop+plotHeight+14, moment(t))
	}
	for _, m := range numbered(a, c.marks, plotWidth, 12) {
		fmt.Fprintf(&b, `<text class="te" x="%.1f" y="%d">%s</text>`, plotLeft+m.x, plotTop+plotHeight+27, m.label)
	}
	b.WriteString(`</g></defs></svg>`)
	return b.String()
}

// timeTicks are round moments, about n of them.
func timeTicks(a axis, n int) (out []time.Duration) {
	span := a.span().Seconds()
	step := niceTime(span / float64(n))
	if span < float64(n) {
		step = nice(span / float64(n))
	}
	for t := 0.0; t <= span*1.000001; t += step {
		out = append(out, time.Duration(t*float64(time.Second)))
	}
	return out
}

// numeral is where the number of an event, or of several close ones, is written.
type numeral struct {
	x     float64
	label string
}

// numbered places the numbers of marks over a width; those closer than apart
// share one place.
func numbered(a axis, marks []tabletop.Mark, wide, apart float64) (out []numeral) {
	first := 0
	for i, m := range marks {
		x := (a.at(m.At) + 0.5) * wide / float64(a.columns)
		if n := len(out); n > 0 && x-out[n-1].x < apart+5*float64(width(out[n-1].label)-1) {
			out[n-1].label = fmt.Sprintf("%d–%d", first+1, i+1)
			continue
		}
		first = i
		out = append(out, numeral{x, fmt.Sprint(i + 1)})
	}
	return out
}
