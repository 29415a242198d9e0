package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/tabletop"
	"sluice/internal/tabletop/report"
)

// render is the page of results, checked for what every page must be.
func render(t *testing.T, results []*tabletop.Result, o report.HTMLOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, results, o); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	read := withoutScript(s)
	for _, bad := range []string{"http:", "https:", "//", "url(", "@import", "<link", "<img", "src=", "{{", "NaN", "+Inf", "ZgotmplZ", "%!"} {
		if i := strings.Index(read, bad); i >= 0 {
			t.Errorf("the page has %q, want nothing that loads, and nothing left of a template: %.80s", bad, read[max(0, i-20):])
		}
	}
	for _, svg := range pictures(t, s) {
		if err := wellFormed(svg); err != nil {
			t.Errorf("a picture is not well-formed XML: %v\n%.300s", err, svg)
		}
	}
	for _, what := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(s, "<"+what+">")
		inline, _, _ := strings.Cut(rest, "</"+what+">")
		sum := sha256.Sum256([]byte(inline))
		// html/template writes + in an attribute as a reference.
		want := strings.ReplaceAll(what+"-src &#39;sha256-"+base64.StdEncoding.EncodeToString(sum[:]), "+", "&#43;")
		if !strings.Contains(s, want) {
			t.Errorf("the page's policy does not allow its own %s: want %s", what, want)
		}
	}
	if ids := duplicates(regexp.MustCompile(`\sid="([^"]*)"`).FindAllStringSubmatch(s, -1)); len(ids) > 0 {
		t.Errorf("ids occur twice: %v", ids)
	}
	return s
}

func withoutScript(s string) string {
	before, rest, _ := strings.Cut(s, "<script>")
	_, after, _ := strings.Cut(rest, "</script>")
	return before + after
}

func duplicates(found [][]string) (out []string) {
	seen := map[string]bool{}
	for _, m := range found {
		if seen[m[1]] {
			out = append(out, m[1])
		}
		seen[m[1]] = true
	}
	return out
}

// pictures are the outermost svg elements of a page.
func pictures(t *testing.T, s string) (out []string) {
	t.Helper()
	depth, start := 0, 0
	for _, m := range regexp.MustCompile(`<svg[\s>]|</svg>`).FindAllStringIndex(s, -1) {
		if s[m[0]+1] != '/' {
			if depth == 0 {
				start = m[0]
			}
			depth++
			continue
		}
		if depth--; depth == 0 {
			out = append(out, s[start:m[1]])
		}
	}
	if depth != 0 {
		t.Errorf("svg elements do not match: %d are open at the end", depth)
	}
	return out
}

func wellFormed(s string) error {
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		if _, err := d.Token(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

var pair = []string{"sluice", "naive"}

func TestHTMLHasEverything(t *testing.T) {
	s := render(t, made(shape{policies: pair, tenants: 3, buckets: 120}), report.HTMLOptions{Source: "name: noisy-tenant\n", Command: "sluice tabletop run noisy-tenant --seed 7"})
	for _, want := range []string{
		`badge passed`, `badge failed`, "15 of 15 expectations met", "goodput, of 100/s asked for", "within target, interactive",
		"interactive.ttft.p99 &lt; 800ms", "noisy sends 20k prompts", "Time to first token", "Time per output token", "Queue age", "Active KV", "Refused", "Share of the work",
		"Cost per useful completion", "Demand", "Backends up", "data-n=\"naive p99\"", "data-n=\"expected p99 below\"", "queue_timeout", "resubmitted", "sluice tabletop run noisy-tenant --seed 7", "name: noisy-tenant",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if got := strings.Count(s, `<details class="group"`); got != 10 {
		t.Errorf("got %d groups and pools with charts, want 10", got)
	}
}

func TestHTMLIsBounded(t *testing.T) {
	for _, s := range []shape{
		{policies: pair, tenants: 20, buckets: 240},
		{policies: []string{"sluice", "naive", "a", "b", "c"}, tenants: 30, buckets: 240},
	} {
		page := render(t, made(s), report.HTMLOptions{Source: strings.Repeat("x", 1<<20)})
		if most := 1_000_000 + 130<<10; len(page) > most {
			t.Errorf("%d policies: the page has %d bytes, want at most %d", len(s.policies), len(page), most)
		}
	}
}

func TestHTMLIsTheSameTwice(t *testing.T) {
	s := shape{policies: pair, tenants: 3, buckets: 60}
	if a, b := render(t, made(s), report.HTMLOptions{}), render(t, made(s), report.HTMLOptions{}); a != b {
		t.Error("two pages of the same results differ")
	}
}

func TestHTMLEscapes(t *testing.T) {
	hostile := []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'; DROP TABLE x; --`, "a\x1b[31mb\nc\u202e", `</title></svg><script>`, `]]>&amp;{{.}}` + "`", `javascript:alert(1)`}
	results := made(shape{policies: []string{hostile[0], hostile[1]}, tenants: len(hostile), buckets: 20, names: func(i int) string { return hostile[i] }})
	for _, r := range results {
		r.Scenario, r.About, r.Acts = hostile[4], hostile[1], []string{hostile[0]}
		r.Marks = append(r.Marks, tabletop.Mark{At: time.Minute, Label: hostile[1]})
		r.Phases[1].Name = hostile[4]
		r.Verdicts[0].Text, r.Verdicts[0].Got = hostile[0], hostile[1]
		r.Phases[0].Backends[0].Backend, r.Phases[0].Fairness[0].Pool = sluice.BackendID(hostile[4]), sluice.PoolID(hostile[0])
		r.Series.Pools[0].Pool = sluice.PoolID(hostile[1])
	}
	var b bytes.Buffer
	if err := report.HTML(&b, results, report.HTMLOptions{Source: hostile[4], Command: hostile[0]}); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	for _, bad := range []string{"<script>alert", "<img", "onerror=alert(1)>", "\x1b", "\u202e", "</title></svg>", `href="javascript`} {
		if strings.Contains(s, bad) {
			t.Errorf("the page has %q unescaped", bad)
		}
	}
	if got := strings.Count(s, "<script>"); got != 1 {
		t.Errorf("the page has %d scripts, want its own alone", got)
	}
	for _, svg := range pictures(t, s) {
		if err := wellFormed(svg); err != nil {
			t.Errorf("a picture is not well-formed XML: %v\n%.300s", err, svg)
		}
	}
	b.Reset()
	if err := report.Table(&b, results, report.TableOptions{Unicode: true}); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(b.String(), "\x1b\u202e\r"); i >= 0 {
		t.Errorf("the table passes a control character on: %q", b.String()[max(0, i-20):i+20])
	}
}

// oddities are results that are whole, and unlike those of a finished rehearsal.
func oddities() map[string][]*tabletop.Result {
	alone := func(mod func(r *tabletop.Result)) []*tabletop.Result {
		out := made(shape{policies: pair, tenants: 2, buckets: 30})
		mod(out[0])
		return out
	}
	return map[string][]*tabletop.Result{
		"one policy":   made(shape{policies: []string{"sluice"}, buckets: 30}),
		"one bucket":   made(shape{policies: pair, buckets: 1}),
		"no bucket":    made(shape{policies: pair}),
		"many buckets": made(shape{policies: pair, tenants: 1, buckets: 240}),
		"five":         made(shape{policies: []string{"sluice", "naive", "a", "b", "c"}, buckets: 30}),
		"same policy":  made(shape{policies: []string{"sluice", "sluice"}, buckets: 30}),
		"nothing":      {{Scenario: "empty", Policy: "sluice", Passed: true}},
		"interrupted": alone(func(r *tabletop.Result) {
			r.Partial, r.Ended, r.Passed = true, 4*time.Minute, false
			r.Phases, r.Series.Count = r.Phases[:2], 12
		}),
		"interrupted early": alone(func(r *tabletop.Result) {
			r.Partial, r.Ended, r.Phases, r.Verdicts, r.Series = true, time.Second, nil, nil, tabletop.Series{}
		}),
		"idle": alone(func(r *tabletop.Result) {
			for i := range r.Phases {
				r.Phases[i].All, r.Phases[i].Classes = tabletop.Figures{Goodput: math.NaN()}, nil
				for n := range r.Phases[i].Tenants {
					r.Phases[i].Tenants[n].Figures = tabletop.Figures{Share: -1, PerGood: -1}
				}
			}
			for i := range r.Series.Groups {
				l := &r.Series.Groups[i]
				for b := range l.Requests {
					l.Requests[b], l.Good[b], l.TTFT50[b], l.TTFT99[b], l.TPOT50[b], l.TPOT99[b], l.QueueAge[b], l.PerGood[b], l.Share[b] = 0, 0, -1, -1, -1, -1, -1, -1, -1
				}
			}
		}),
		"huge": alone(func(r *tabletop.Result) {
			r.Phases[0].All.Requests, r.Phases[0].All.Cost, r.Phases[0].All.TTFT.P99 = 1<<50, math.MaxInt64, math.MaxInt64
			r.Phases[0].All.Goodput = 1e300
			for b := range r.Series.Groups[0].KV {
				r.Series.Groups[0].KV[b], r.Series.Groups[0].TTFT99[b], r.Series.Groups[0].Input[b] = 1<<62, math.MaxInt64, 1<<60
			}
		}),
		"short lines": alone(func(r *tabletop.Result) {
			r.Series.Groups[0] = tabletop.Line{Kind: "class", Name: "interactive", Requests: []int64{1}}
		}),
		"other bucket": alone(func(r *tabletop.Result) { r.Series.Bucket, r.Series.Count = 7*time.Second, 20 }),
		"many marks": alone(func(r *tabletop.Result) {
			for i := range 60 {
				r.Marks = append(r.Marks, tabletop.Mark{At: time.Duration(i) * 10 * time.Second, Label: fmt.Sprint("event ", i)})
			}
		}),
	}
}

func TestOdditiesRender(t *testing.T) {
	for name, results := range oddities() {
		t.Run(name, func(t *testing.T) {
			render(t, results, report.HTMLOptions{})
			for _, o := range []report.TableOptions{{Width: 80}, {Width: 20, Unicode: true, Color: true}, {Width: 160, Unicode: true}} {
				var b bytes.Buffer
				if err := report.Table(&b, results, o); err != nil {
					t.Fatal(err)
				}
				for l := range strings.SplitSeq(b.String(), "\n") {
					if o.Width == 80 && len(l) > 80 && len(results) < 4 {
						t.Errorf("a line has %d columns, want at most 80: %s", len(l), l)
					}
					if strings.Contains(l, "NaN") || strings.Contains(l, "Inf") {
						t.Errorf("a figure is no number: %s", l)
					}
				}
			}
			if err := report.JSON(io.Discard, results); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNothingToReport(t *testing.T) {
	for _, results := range [][]*tabletop.Result{nil, {nil}} {
		if err := report.Table(io.Discard, results, report.TableOptions{}); !errors.Is(err, report.ErrNothing) {
			t.Errorf("Table: got %v, want %v", err, report.ErrNothing)
		}
		if err := report.JSON(io.Discard, results); !errors.Is(err, report.ErrNothing) {
			t.Errorf("JSON: got %v, want %v", err, report.ErrNothing)
		}
		if err := report.HTML(io.Discard, results, report.HTMLOptions{}); !errors.Is(err, report.ErrNothing) {
			t.Errorf("HTML: got %v, want %v", err, report.ErrNothing)
		}
	}
}

func TestInterruptedHasNotPassed(t *testing.T) {
	results := made(shape{policies: []string{"sluice"}, buckets: 12, partial: true})
	if s := render(t, results, report.HTMLOptions{}); !strings.Contains(s, "badge interrupted") || !strings.Contains(s, "interrupted at 10m20s") || strings.Contains(s, "sluice passed") {
		t.Error("the page does not say that the run was interrupted")
	}
	var table, doc bytes.Buffer
	if err := errors.Join(report.Table(&table, results, report.TableOptions{}), report.JSON(&doc, results)); err != nil {
		t.Fatal(err)
	}
	if s := table.String(); !strings.Contains(s, "~ CUT     sluice") || !strings.Contains(s, "interrupted at 10m20s: figures are those up to there") {
		t.Errorf("the table does not say that the run was interrupted:\n%.400s", s)
	}
	if !strings.Contains(doc.String(), `"passed": false,`+"\n  \"results\"") {
		t.Error("JSON says that an interrupted run has passed")
	}
}

// TestPageWants: what is wanted may differ between policies. The column has that of
// the first, and what another had to reach stands with what it got.
func TestPageWants(t *testing.T) {
	results := made(shape{policies: []string{"sluice", "naive"}, tenants: 2, buckets: 20})
	for i, want := range []string{"<= 1290000", "<= 2717400"} {
		for k := range results[i].Verdicts {
			if v := &results[i].Verdicts[k]; v.Text == "fairness.gap <= bound" {
				v.Want, v.Passed = want, i == 0 || v.Phase == "before"
			}
		}
	}
	page := render(t, results, report.HTMLOptions{})
	if n := strings.Count(page, "<td>&lt;= 1290000</td>"); n != 3 {
		t.Errorf("the first policy's bound is what is wanted in %d phases, want 3", n)
	}
	if n := strings.Count(page, "<small>wants &lt;= 2717400</small>"); n != 3 || strings.Contains(page, "<td>&lt;= 2717400</td>") {
		t.Errorf("the other policy's bound stands with what it got in %d phases, want 3, met or not", n)
	}
}
