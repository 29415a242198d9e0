package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sluice/internal/tabletop"
)

// TableOptions is how the table is set.
type TableOptions struct {
	Width   int  // columns of the terminal; 100 if 0, at least 60
	Color   bool // with ANSI colours and weights
	Unicode bool // with characters beyond ASCII
}

// tableGroups bounds the tenants, and likewise the sources, that a table lists.
const tableGroups = 10

// Table writes the report for a terminal: the verdict, goodput, what happened,
// the expectations, each phase's figures with all policies side by side, retries
// and books. The first result is the one that matters.
func Table(w io.Writer, results []*tabletop.Result, o TableOptions) error {
	c, err := compare(results)
	if err != nil {
		return err
	}
	if o.Width == 0 {
		o.Width = 100
	}
	t := &sheet{comparison: c, ink: ink{o.Color, o.Unicode}, wide: max(60, min(o.Width, 200))}
	t.head()
	t.summary()
	t.timeline()
	t.expectations()
	for _, p := range c.phases {
		t.phase(p)
	}
	t.retries()
	t.books()
	t.fairness()
	_, err = io.WriteString(w, t.b.String())
	return err
}

// sheet is a table while it is written.
type sheet struct {
	*comparison
	ink
	wide int
	b    strings.Builder
}

func (t *sheet) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// title begins a part.
func (t *sheet) title(s, about string) {
	t.line("")
	s = cut(s, t.wide-6)
	if about != "" {
		about = cut(" · "+about, max(0, t.wide-width(s)-6))
	}
	rule := strings.Repeat("─", max(2, t.wide-width(s)-width(about)-4))
	t.line(t.in(faint, "── ") + t.in(bold, s) + t.in(faint, about+" "+rule))
}

func (t *sheet) head() {
	r := t.results[0]
	facts := fmt.Sprintf("seed %d · %s of virtual time, judged from %s", r.Seed, moment(r.Length), moment(r.Warmup))
	if len(r.Acts) > 0 {
		facts += " · act " + clean(strings.Join(r.Acts, ", "))
	}
	name := clean(r.Scenario)
	if width(name)+2+width(facts) <= t.wide {
		t.line(t.in(bold, name) + "  " + t.in(faint, facts))
	} else {
		t.line(t.in(bold, cut(name, t.wide)))
		for _, l := range wrapped(facts, t.wide) {
			t.line(t.in(faint, l))
		}
	}
	for _, l := range wrapped(clean(r.About), t.wide) {
		t.line(t.text(l))
	}
	t.line("")
	names := 0
	for _, n := range t.names {
		names = max(names, min(24, width(n)))
	}
	for i, r := range t.results {
		t.verdict(i, r, names)
	}
}

// verdict is one policy's line at the top.
func (t *sheet) verdict(i int, r *tabletop.Result, names int) {
	yes, all := met(r)
	mark := map[state]string{passed: t.in(green, "✓ PASSED"), failed: t.in(red, "✗ FAILED"), interrupted: t.in(amber, "… CUT   ")}[stateOf(r)]
	says := fmt.Sprintf("%d of %d expectations met", yes, all)
	if all == 0 {
		says = "no expectations"
	}
	t.line(mark + "  " + t.in(bold, left(clean(t.names[i]), names)) + "  " + t.text(says))
	if r.Partial {
		t.line(strings.Repeat(" ", 10) + t.in(amber, "interrupted at "+moment(r.Ended)+": figures are those up to there"))
	}
}

// summary is goodput and the SLO of each class over all phases.
func (t *sheet) summary() {
	t.title("Goodput", "all phases")
	t.summaryGrid().write(&t.b, t.ink, t.wide)
}

// timeline draws the phases over the run, and what happened in it.
func (t *sheet) timeline() {
	end := t.results[0].Length
	for _, r := range t.results {
		end = max(end, r.Length)
	}
	if end <= 0 || len(t.phases) == 0 {
		return
	}
	t.title("Timeline", moment(end))
	at := func(d time.Duration) int { return int(int64(t.wide-1) * int64(min(d, end)) / int64(end)) }
	bar := []rune(strings.Repeat("░", t.wide))
	for i, p := range t.phases {
		from, to := at(p.from), at(p.to)
		if i == len(t.phases)-1 {
			to = t.wide
		}
		for x := from; x < to; x++ {
			bar[x] = '─'
		}
		if from < t.wide {
			bar[from] = '│'
		}
		for n, r := range []rune(cut(clean(p.name), max(0, to-from-3))) {
			bar[from+2+n] = r
		}
	}
	t.line(t.text(string(bar)))
	marks := []rune(strings.Repeat(" ", t.wide))
	for i, m := range t.marks {
		for n, r := range []rune(fmt.Sprint(i + 1)) {
			if x := at(m.At) + n; x < t.wide && (n > 0 || marks[x] == ' ') {
				marks[x] = r
			} else {
				break
			}
		}
	}
	t.line(t.in(amber, string(marks)))
	for i, m := range t.marks {
		if i == 20 {
			t.line(t.in(faint, fmt.Sprintf("    and %d more", len(t.marks)-i)))
			break
		}
		t.line(t.in(amber, right(fmt.Sprint(i+1), 3)) + "  " + right(moment(m.At), 7) + "  " + t.text(cut(clean(m.Label), t.wide-14)))
	}
}

// expectations lists what was expected with what each policy got.
func (t *sheet) expectations() {
	if len(t.verdicts) == 0 {
		return
	}
	t.title("Expectations", "what each policy got")
	cols := make([]int, len(t.names))
	for i, n := range t.names {
		cols[i] = max(width(label(clean(n)))+2, 8)
		for _, v := range t.verdicts {
			if v.of[i] != nil {
				cols[i] = max(cols[i], min(24, width(clean(v.of[i].Got)))+2)
			}
		}
	}
	room := t.wide
	for _, c := range cols {
		room -= c + 2
	}
	texts := make([]string, len(t.verdicts))
	longest := 0
	for i, v := range t.verdicts {
		texts[i] = v.title()
		longest = max(longest, width(texts[i]))
	}
	room = max(20, min(room, longest))
	var head strings.Builder
	head.WriteString(left("", room))
	for i, n := range t.names {
		head.WriteString("  " + right(label(clean(n)), cols[i]))
	}
	t.line(t.in(faint, head.String()))
	for i, v := range t.verdicts {
		lines := wrapped(texts[i], room)
		if len(lines) == 0 {
			lines = []string{""}
		}
		var line strings.Builder
		line.WriteString(t.text(left(lines[0], room)))
		for n, of := range v.of {
			line.WriteString("  " + t.got(of, cols[n]))
		}
		t.line(line.String())
		for _, l := range lines[1:] {
			t.line("  " + t.text(cut(l, room)))
		}
	}
}

// title is the expectation with its phase, where the text does not name it.
func (v verdict) title() string {
	if v.phase == "" || strings.HasPrefix(v.text, v.phase+":") {
		return clean(v.text)
	}
	return clean(v.phase + ": " + v.text)
}

func (t *sheet) got(v *tabletop.Verdict, n int) string {
	if v == nil {
		return t.in(faint, right("–", n))
	}
	if v.Passed {
		return t.text(right(cut(clean(v.Got), n-2), n-2)) + " " + t.in(green, "✓")
	}
	return t.in(red, right(cut(clean(v.Got), n-2), n-2)+" ✗")
}

// phase is the figures of one phase.
func (t *sheet) phase(p phase) {
	t.title(clean(p.name), moment(p.from)+" to "+moment(p.to))
	g, leftOut := t.phaseGrid(p, tableGroups)
	g.write(&t.b, t.ink, t.wide)
	for _, kind := range []string{"tenant", "source"} {
		if n := leftOut[kind]; n > 0 {
			t.line(t.in(faint, fmt.Sprintf("and %d more %ss with fewer requests: see the JSON", n, kind)))
		}
	}
}

// retries sets attempts and resubmissions apart, phase by phase.
func (t *sheet) retries() {
	t.grid("Retries", retriesAbout, t.factsGrid(retryFacts))
}

// books shows that nothing is lost and nothing settled twice.
func (t *sheet) books() {
	t.grid("Books", booksAbout, t.factsGrid(bookFacts))
}

// fairness sets the largest difference of service beside its bound.
func (t *sheet) fairness() {
	t.grid("Fairness", fairnessAbout, t.fairnessGrid())
}

func (t *sheet) grid(title, about string, g grid) {
	if len(g.rows) > 0 {
		t.title(title, about)
		g.write(&t.b, t.ink, t.wide)
	}
}
