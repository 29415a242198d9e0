package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// esc makes text safe inside an element or a quoted attribute, of XML too.
func esc(s string) string { return html.EscapeString(clean(s)) }

// path draws values as one line for each run of columns that have one. A column
// alone is a dash of nearly its width.
func path(s scale, values []float64) string {
	var b strings.Builder
	for i := 0; i < len(values); {
		if math.IsNaN(values[i]) {
			i++
			continue
		}
		end := i
		for end < len(values) && !math.IsNaN(values[end]) {
			end++
		}
		if end-i == 1 {
			fmt.Fprintf(&b, "M%g %dh.8", float64(i)-0.4, s.y(values[i]))
		} else {
			fmt.Fprintf(&b, "M%d %d", i, s.y(values[i]))
			steps(&b, s, values[i:end])
		}
		i = end
	}
	return b.String()
}

// steps continues a path from the first value through the others; columns on a
// level are one step.
func steps(b *strings.Builder, s scale, values []float64) {
	at, first := s.y(values[0]), true
	for i := 1; i < len(values); {
		end, to := i, s.y(values[i])
		for to == at && end+1 < len(values) && s.y(values[end+1]) == at {
			end++
		}
		switch {
		case first:
			b.WriteByte('l')
		default:
			b.WriteByte(' ')
		}
		first = false
		b.WriteString(strconv.Itoa(end - i + 1))
		if to >= at {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(to - at))
		at, i = to, end+1
	}
}

// area draws values as what lies between them and the bottom.
func area(s scale, values []float64) string {
	var b strings.Builder
	filled := make([]float64, len(values))
	any := false
	for i, x := range values {
		filled[i] = zero(x)
		any = any || filled[i] > s.lo
	}
	if !any {
		return ""
	}
	fmt.Fprintf(&b, "M-.5 %dV%dH0", tall, s.y(filled[0]))
	if len(filled) > 1 {
		steps(&b, s, filled)
	}
	fmt.Fprintf(&b, "h.5V%dz", tall)
	return b.String()
}

// summary says in words what a line shows, for who does not see it.
func summary(a axis, u unit, values []float64) string {
	first, last, top, at := -1, -1, math.Inf(-1), 0
	for i, x := range values {
		if math.IsNaN(x) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		if x > top {
			top, at = x, i
		}
	}
	if first < 0 {
		return "no samples"
	}
	return fmt.Sprintf("from %s to %s, highest %s at %s", u.write(values[first]), u.write(values[last]), u.write(top), moment(a.width*timeOf(at)))
}
