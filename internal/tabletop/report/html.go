package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"sluice/internal/tabletop"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// HTMLOptions is what the page says beside the results.
type HTMLOptions struct {
	Source  string // the scenario file's text; at most 128 KiB of it are shown
	Command string // what to run for the same results
}

// Bounds of a page.
const (
	pageGroups   = 32 // groups with charts
	pageRows     = 24 // tenants, and likewise sources, in a phase's table
	pageBackends = 64 // backends in a phase's table
	pageSource   = 128 << 10
	pagePoints   = 100_000 // points of all curves of groups together, about
	pageColumns  = 240     // most columns of one chart
	pageBytes    = 1_000_000
)

// HTML writes the report as one page that needs nothing else: no script is
// needed to read it, and nothing is loaded. It stays below 1 MB, beside the
// scenario's text, as long as charts of 24 points and tables of 6 tenants fit.
func HTML(w io.Writer, results []*tabletop.Result, o HTMLOptions) error {
	c, err := compare(results)
	if err != nil {
		return err
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	groups := min(pageGroups, len(c.series()))
	room := limits{max(1, min(pageColumns, pagePoints/max(1, groups*c.drawn()*14))), pageRows, pageGroups}
	for {
		var b bytes.Buffer
		if err := t.Execute(&b, newPage(c, o, room)); err != nil {
			return err
		}
		if b.Len() <= pageBytes || room == leastRoom {
			_, err := w.Write(b.Bytes())
			return err
		}
		room = room.less()
	}
}

// limits are what a page may show.
type limits struct {
	columns int // of one chart
	rows    int // tenants, and likewise sources, in a phase's table
	groups  int // with charts
}

// leastRoom is what every page has room for.
var leastRoom = limits{24, 6, 4}

// less halves the points of charts, then the rows of tables, then the groups.
func (l limits) less() limits {
	switch {
	case l.columns > leastRoom.columns:
		l.columns = max(leastRoom.columns, l.columns/2)
	case l.rows > leastRoom.rows:
		l.rows = max(leastRoom.rows, l.rows/2)
	default:
		l.groups = max(leastRoom.groups, l.groups/2)
	}
	return l
}

// page is what the template shows.
type page struct {
	CSS        template.CSS
	JS         template.JS
	CSP        string
	Scenario   string
	About      string
	Facts      []string
	Partial    string
	Policies   []policyCard
	Summary    htmlGrid
	Expected   []expected
	Frame      template.HTML
	Timeline   template.HTML
	Marks      []markRow
	Phases     []phaseRow
	Point      string // how much time one point of a chart covers
	Step       float64
	Glance     []glance
	SparkHeads []string
	Groups     []groupPart
	Left       int
	Pools      []groupPart
	Rest       []titled
	Source     string
	Command    string
	Seed       uint64
	Drawn      []drawnPolicy
	Hidden     int
}

type policyCard struct {
	Index         int
	Name          string
	State         state
	Verdict       string
	Goodput       quantity
	Asked         string
	SLO           quantity
	SLOOf         string
	Bars          []bar
	Refused       string
	Cost          string
	Amplification string
	Lost          string
	Partial       string
	Failing       []string
	FailingMore   int
}

type bar struct {
	Name, Kind string
	SLO        quantity
	Percent    float64 // of the bar's length
}

type expected struct {
	Text, Phase, Want string
	Rows              int // that have the same text, at the first of them; else 0
	Of                []gotCell
	Failed            bool // under the first policy
}

type gotCell struct {
	Known, Passed bool
	Got           string
	Want          string // where it is not that of the first policy
}

type markRow struct {
	Number int
	At     string
	Label  string
}

type phaseRow struct {
	Name, When string
	Grid       htmlGrid
	Backends   htmlGrid
	Left       string
}

type groupPart struct {
	Key, Kind, Name string
	Open            bool
	Charts          []chartPart
	Grid            htmlGrid
}

type chartPart struct {
	Title, About string
	SVG          template.HTML
	Desc         []string
	Reasons      []reasonKey
}

type glance struct {
	Key, Kind, Name string
	SLO             []quantity
	Sparks          []template.HTML
}

type reasonKey struct {
	Index int
	Name  string
}

type titled struct {
	Title, About string
	Grid         htmlGrid
}

type drawnPolicy struct {
	Index int
	Name  string
}

// htmlGrid is a grid for the page.
type htmlGrid struct {
	Caption  string
	Policies []string
	Span     int
	Columns  []htmlColumn
	Rows     []htmlRow
}

// Wide is how many cells a row has beside its name, and the name.
func (g htmlGrid) Wide() int { return 1 + len(g.Columns)*g.Span }

type htmlColumn struct{ Head, About string }

type htmlRow struct {
	Name   string
	Inner  bool
	Title  bool // of the rows that follow
	Values []htmlValue
}

type htmlValue struct {
	Num, Unit string
	Class     string
}

func newHTMLGrid(caption string, g grid) htmlGrid {
	out := htmlGrid{Caption: caption, Policies: cleaned(g.policies), Span: len(g.policies)}
	for _, c := range g.columns {
		out.Columns = append(out.Columns, htmlColumn{c.head, c.about})
	}
	for r, name := range g.rows {
		row := htmlRow{Name: strings.TrimSpace(name), Inner: strings.HasPrefix(name, "  "), Title: g.titled(r)}
		for _, c := range g.columns {
			for p, v := range c.cells[r] {
				num := v.Num
				if !v.known() {
					num = "–"
				}
				class := ""
				switch {
				case v.style == red && p == 0:
					class = "f bad"
				case v.style == red:
					class = "bad"
				case p == 0:
					class = "f"
				}
				row.Values = append(row.Values, htmlValue{num, v.Unit, class})
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func cleaned(names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		out[i] = clean(out[i])
	}
	return out
}

// policy is the Content-Security-Policy of the page: what is in it and nothing else.
func policy(css, js string) string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", hash(css), hash(js))
}

func newPage(c *comparison, o HTMLOptions, room limits) page {
	r := c.results[0]
	groups := c.series()
	left := max(0, len(groups)-room.groups)
	groups = groups[:len(groups)-left]
	d := drawing{c, newAxis(c.results, room.columns), refusedReasons(groups)}
	p := page{
		CSS: template.CSS(pageCSS), JS: template.JS(pageJS), CSP: policy(pageCSS, pageJS),
		Scenario: clean(r.Scenario), About: clean(r.About), Seed: r.Seed, Command: clean(o.Command), Source: bounded(o.Source),
		Summary: newHTMLGrid("Over all phases", c.summaryGrid()), Expected: c.expected(),
		Frame: template.HTML(frame(d.axis, c)), Timeline: template.HTML(timeline(d.axis, c)),
		Point: duration(d.width).String(), Step: d.width.Seconds(), Left: left, Hidden: len(c.results) - c.drawn(),
	}
	p.Facts = []string{fmt.Sprintf("seed %d", r.Seed), moment(r.Length) + " of virtual time", "judged from " + moment(r.Warmup)}
	if len(r.Acts) > 0 {
		p.Facts = append(p.Facts, "act "+clean(strings.Join(r.Acts, ", ")))
	}
	for i := range c.results {
		p.Policies = append(p.Policies, c.card(i))
		if i < c.drawn() {
			p.Drawn = append(p.Drawn, drawnPolicy{i, clean(c.names[i])})
		}
	}
	for _, col := range sparkColumns {
		p.SparkHeads = append(p.SparkHeads, col.title)
	}
	for i, m := range c.marks {
		p.Marks = append(p.Marks, markRow{i + 1, moment(m.At), clean(m.Label)})
	}
	d.fill(&p, groups)
	for _, ph := range c.phases {
		p.Phases = append(p.Phases, c.phaseRow(ph, room.rows))
	}
	p.Rest = []titled{
		{"Retries", retriesAbout, newHTMLGrid("", c.factsGrid(retryFacts))},
		{"Books", booksAbout, newHTMLGrid("", c.factsGrid(bookFacts))},
		{"Fairness", fairnessAbout, newHTMLGrid("", c.fairnessGrid())},
	}
	return p
}

// bounded cuts a text that is too long for a page.
func bounded(s string) string {
	if len(s) > pageSource {
		return strings.ToValidUTF8(s[:pageSource], "") + "\n… (cut)"
	}
	return s
}
