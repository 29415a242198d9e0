package report

import "strings"

// cell is one figure in a grid.
type cell struct {
	quantity
	style style
}

// column is a pair of figures to compare, or more: one of each policy.
type column struct {
	head  string
	about string   // a sentence, where there is room for one
	cells [][]cell // by row, then by policy; nil for a row that is only a title
}

// grid is rows of figures of several policies side by side. Columns that do not
// fit a line are put into a block below, with the rows' names again.
type grid struct {
	policies []string
	rows     []string
	columns  []column
}

// write adds the grid to b in lines of at most the given width.
func (g grid) write(b *strings.Builder, k ink, wide int) {
	names := 0
	for _, r := range g.rows {
		names = max(names, width(r))
	}
	names = min(names, max(12, wide/3))
	blocks := 0
	for i := 0; i < len(g.columns); {
		block, used := []laid{}, names
		for ; i < len(g.columns); i++ {
			c := g.lay(g.columns[i])
			if len(block) > 0 && used+2+c.width > wide {
				break
			}
			block, used = append(block, c), used+2+c.width
		}
		if blocks > 0 {
			b.WriteByte('\n')
		}
		blocks++
		g.block(b, k, names, block)
	}
}

// laid is a column with its widths.
type laid struct {
	column
	nums, units []int // by policy
	apart       bool  // a space stands before units: all but % and ×
	width       int
}

func (g grid) lay(c column) laid {
	n := len(g.policies)
	l := laid{column: c, nums: make([]int, n), units: make([]int, n)}
	for _, row := range c.cells {
		for p, q := range row {
			num := q.Num
			if !q.known() {
				num = "–"
			}
			l.apart = l.apart || q.Unit != "" && q.Unit != "%" && q.Unit != "×"
			l.nums[p], l.units[p] = max(l.nums[p], width(num)), max(l.units[p], width(q.Unit))
		}
	}
	for p := range n {
		if n > 1 {
			l.nums[p] = max(l.nums[p], width(label(g.policies[p]))-l.unit(p))
		}
		l.width += l.nums[p] + l.unit(p)
	}
	l.width += n - 1
	if extra := width(c.head) - l.width; extra > 0 {
		l.nums[0] += extra
		l.width += extra
	}
	return l
}

// unit is the room for a policy's unit and the space before it.
func (l laid) unit(p int) int {
	if l.apart && l.units[p] > 0 {
		return l.units[p] + 1
	}
	return l.units[p]
}

// label is a policy's name, short enough for a column.
func label(policy string) string { return cut(policy, 12) }

func (g grid) block(b *strings.Builder, k ink, names int, block []laid) {
	line := strings.Repeat(" ", names)
	for _, l := range block {
		line += "  " + k.in(bold, right(l.head, l.width))
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	if len(g.policies) > 1 {
		line = strings.Repeat(" ", names) + " "
		for _, l := range block {
			for p, name := range g.policies {
				line += " " + k.in(faint, right(label(name), l.nums[p]+l.unit(p)))
			}
			line += " "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for r, name := range g.rows {
		if g.titled(r) {
			b.WriteString(k.in(faint, name) + "\n")
			continue
		}
		var line strings.Builder
		line.WriteString(k.text(left(name, names)) + " ")
		for _, l := range block {
			for p := range g.policies {
				line.WriteString(" " + g.figure(k, l, r, p))
			}
			line.WriteString(" ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// titled reports whether row r is only a title of those that follow.
func (g grid) titled(r int) bool { return len(g.columns) > 0 && g.columns[0].cells[r] == nil }

func (g grid) figure(k ink, l laid, r, p int) string {
	q := l.cells[r][p]
	if !q.known() {
		return k.in(faint, right("–", l.nums[p])+strings.Repeat(" ", l.unit(p)))
	}
	unit := ""
	if l.unit(p) > 0 {
		unit = left(q.Unit, l.units[p])
		if l.apart {
			unit = " " + unit
		}
	}
	return k.in(q.style, right(q.Num, l.nums[p])+unit)
}
