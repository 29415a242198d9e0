package tabletop

import (
	"fmt"
	"slices"
	"strings"

	"sluice"
)

// Expectation is one line of what is expected, such as
// "interactive.ttft.p99 < 800ms" or "after: tenant.quiet.slo >= 99%".
//
//	[phase:] [subject.]metric[.stat] (< | <= | > | >= | ==) (value | bound | [factor *] [phase:] [subject.]metric[.stat])
//
// A subject is a class, tenant.NAME, source.NAME, backend.NAME, or all, which may be
// left out. An expectation that names no phase is judged in each; one phase after
// another is told apart by its name. Make it with [ParseExpectation].
type Expectation struct {
	Text string
	Line int // in the file; 0 if there is none

	parsed bool
	phase  string // empty: each
	left   operand
	op     string
	right  operand // where it has a metric
	factor float64
	value  float64 // in the metric's unit
	unit   unit
	bound  bool // the right side is the metric's own bound
}

// Names is what an expectation may name.
type Names struct {
	Phases, Classes, Tenants, Sources, Backends []string
}

// Names is what expectations of the scenario may name.
func (s *Scenario) Names() Names {
	n := Names{Phases: s.PhaseNames()}
	seen := map[string]bool{}
	once := func(to *[]string, kind, name string) {
		if !seen[kind+name] {
			seen[kind+name] = true
			*to = append(*to, name)
		}
	}
	for i := range s.Sources {
		x := &s.Sources[i]
		once(&n.Classes, "c ", x.Class.String())
		once(&n.Tenants, "t ", string(x.Tenant))
		once(&n.Sources, "s ", x.Name)
	}
	for _, m := range s.Machines {
		once(&n.Backends, "b ", string(m.Backend))
	}
	return n
}

// ExpectationError says what is wrong with an expectation's text, and where.
type ExpectationError struct {
	Column int // from 1, in bytes
	What   string
	Fix    string
}

func (e *ExpectationError) Error() string {
	return fmt.Sprintf("column %d: %s: %s", e.Column, e.What, e.Fix)
}

// operand is one figure that an expectation names.
type operand struct {
	kind   string // all, class, tenant, source, backend
	name   string
	metric *metric
	stat   string
	phase  string // empty: the one that is judged
}

// ParseExpectation reads an expectation. The error is an *ExpectationError.
func ParseExpectation(text string, names Names) (Expectation, error) {
	p := &parser{text: text, names: names}
	e := Expectation{Text: strings.TrimSpace(text), parsed: true, factor: 1}
	err := p.expectation(&e)
	if err != nil {
		return Expectation{}, err
	}
	return e, nil
}

// parser reads one expectation.
type parser struct {
	text  string
	at    int
	names Names
}

func (p *parser) fail(at int, what, fix string) *ExpectationError {
	return &ExpectationError{Column: at + 1, What: what, Fix: fix}
}

func (p *parser) skip() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

// word reads up to what cannot be part of a name or value.
func (p *parser) word() (string, int) {
	p.skip()
	from := p.at
	for p.at < len(p.text) && !strings.ContainsRune(" \t<>=*:", rune(p.text[p.at])) {
		p.at++
	}
	return p.text[from:p.at], from
}

// phase reads "NAME:", if that is what comes.
func (p *parser) phase() (string, error) {
	before := p.at
	name, from := p.word()
	p.skip()
	if p.at == len(p.text) || p.text[p.at] != ':' {
		p.at = before
		return "", nil
	}
	p.at++
	if !slices.Contains(p.names.Phases, name) {
		return "", p.fail(from, fmt.Sprintf("there is no phase %q", name), suggest(name, p.names.Phases))
	}
	return name, nil
}

var operators = []string{"<=", ">=", "==", "<", ">"}

func (p *parser) operator() (string, error) {
	p.skip()
	for _, op := range operators {
		if strings.HasPrefix(p.text[p.at:], op) {
			p.at += len(op)
			return op, nil
		}
	}
	return "", p.fail(p.at, "a comparison is missing", "write <, <=, ==, >= or > and what to compare with")
}

func (p *parser) expectation(e *Expectation) (err error) {
	if e.phase, err = p.phase(); err != nil {
		return err
	}
	if e.left, err = p.operand(); err != nil {
		return err
	}
	if e.op, err = p.operator(); err != nil {
		return err
	}
	if err := p.right(e); err != nil {
		return err
	}
	p.skip()
	if p.at < len(p.text) {
		return p.fail(p.at, fmt.Sprintf("%q is left over", p.text[p.at:]), "an expectation has one comparison: write another line")
	}
	return nil
}

// right reads what is compared with.
func (p *parser) right(e *Expectation) error {
	word, from := p.word()
	if word == "" {
		return p.fail(from, "there is nothing to compare with", "write a value such as "+e.left.metric.unit.example()+", or another metric")
	}
	if word == "bound" {
		e.bound = true
		if !e.left.metric.bounded {
			return p.fail(from, fmt.Sprintf("%s has no bound of its own", e.left.metric.name), "write a value such as "+e.left.metric.unit.example())
		}
		return nil
	}
	v, u, isValue := parseValue(word)
	p.skip()
	if isValue && p.at < len(p.text) && p.text[p.at] == '*' {
		if u != unitCount {
			return p.fail(from, fmt.Sprintf("%q is no factor", word), "write a number, such as 1.25 * before: "+e.left.text())
		}
		p.at++
		e.factor = v
		isValue = false
	} else if !isValue {
		p.at = from
	}
	if isValue {
		e.value, e.unit = v, u
		if e.left.metric.unit.takes(u) {
			return nil
		}
		return p.fail(from, fmt.Sprintf("%s is %s, and %q is not", e.left.metric.name, e.left.metric.unit, word), "write a value such as "+e.left.metric.unit.example())
	}
	return p.other(e)
}

// other reads another metric to compare with.
func (p *parser) other(e *Expectation) (err error) {
	phase, err := p.phase()
	if err != nil {
		return err
	}
	p.skip()
	from := p.at
	if e.right, err = p.operand(); err != nil {
		return err
	}
	e.right.phase = phase
	if e.right.metric.unit != e.left.metric.unit {
		return p.fail(from, fmt.Sprintf("%s is %s, and %s %s", e.left.metric.name, e.left.metric.unit, e.right.metric.name, e.right.metric.unit), "compare what has the same unit")
	}
	return nil
}

// operand reads [subject.]metric[.stat].
func (p *parser) operand() (o operand, err error) {
	word, from := p.word()
	if word == "" {
		return o, p.fail(from, "a metric is missing", "write one such as interactive.ttft.p99 or slo")
	}
	rest, at := word, from
	next := func() string {
		head, tail, _ := strings.Cut(rest, ".")
		at += len(rest) - len(tail)
		rest = tail
		return head
	}
	o.kind = "all"
	head, _, _ := strings.Cut(word, ".")
	switch {
	case head == "all":
		next()
	case slices.Contains(p.names.Classes, head):
		o.kind, o.name = "class", next()
	case classWord(head):
		return o, p.fail(from, fmt.Sprintf("no source of this scenario is of class %s", head), suggest(head, p.names.Classes))
	case head == "tenant" || head == "source" || head == "backend":
		o.kind = next()
		known := map[string][]string{"tenant": p.names.Tenants, "source": p.names.Sources, "backend": p.names.Backends}[o.kind]
		if o.name = longest(rest, known); o.name == "" {
			name, _, _ := strings.Cut(rest, ".")
			return o, p.fail(at, fmt.Sprintf("there is no %s %q", o.kind, name), suggest(name, known))
		}
		at += min(len(o.name)+1, len(rest))
		rest = strings.TrimPrefix(rest[len(o.name):], ".")
	}
	return o, p.metric(&o, rest, at, from)
}

// metric reads metric[.stat].
func (p *parser) metric(o *operand, rest string, at, from int) error {
	for i := range metrics {
		m := &metrics[i]
		if rest != m.name && !strings.HasPrefix(rest, m.name+".") || o.metric != nil && len(m.name) < len(o.metric.name) {
			continue
		}
		o.metric = m
	}
	if o.metric == nil {
		var known []string
		for i := range metrics {
			if metrics[i].of(o.kind) {
				known = append(known, metrics[i].name)
			}
		}
		word := rest
		if i := strings.LastIndexByte(rest, '.'); i > 0 && !slices.Contains(known, rest) {
			word = rest[:i]
		}
		if word == "" {
			return p.fail(at, "a metric is missing", "write one after the name, such as "+p.text[from:at]+".slo")
		}
		fix := suggest(word, known)
		if o.kind == "all" {
			fix = suggest(word, append(append([]string{"tenant.NAME", "source.NAME", "backend.NAME"}, p.names.Classes...), known...))
		}
		return p.fail(at, fmt.Sprintf("%q is no metric", rest), fix)
	}
	if !o.metric.of(o.kind) {
		return p.fail(at, fmt.Sprintf("a %s has no %s", o.kind, o.metric.name), "it is a metric of "+o.metric.subjects())
	}
	o.stat = strings.TrimPrefix(strings.TrimPrefix(rest, o.metric.name), ".")
	switch stats := o.metric.stats; {
	case o.stat == "" && (stats == nil || o.metric.plain):
	case o.stat == "":
		return p.fail(at+len(o.metric.name), fmt.Sprintf("which figure of %s?", o.metric.name), "write one of "+o.metric.name+"."+strings.Join(stats, ", ."))
	case !slices.Contains(stats, o.stat):
		return p.fail(at+len(o.metric.name)+1, fmt.Sprintf("%s has no %q", o.metric.name, o.stat), suggest(o.stat, stats))
	}
	return nil
}

func (o *operand) text() string {
	var parts []string
	switch o.kind {
	case "all":
	case "class":
		parts = append(parts, o.name)
	default:
		parts = append(parts, o.kind, o.name)
	}
	parts = append(parts, o.metric.name)
	if o.stat != "" {
		parts = append(parts, o.stat)
	}
	return strings.Join(parts, ".")
}

// longest is the longest of the known names that the text begins with.
func longest(text string, known []string) (found string) {
	for _, k := range known {
		if (text == k || strings.HasPrefix(text, k+".")) && len(k) > len(found) {
			found = k
		}
	}
	return found
}

func classWord(s string) bool {
	var c sluice.Class
	return c.UnmarshalText([]byte(s)) == nil
}

// suggest names the nearest of the known words.
func suggest(word string, known []string) string {
	best, least := "", len(word)/2+2
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	switch {
	case len(known) == 0:
		return "there is none here to name"
	case best != "":
		return fmt.Sprintf("did you mean %s?", best)
	case len(known) > 12:
		known = known[:12]
	}
	return "use one of " + strings.Join(known, ", ")
}

// distance is how many letters to add, leave out or change make one word the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			cost := diagonal
			if a[i] != b[k] {
				cost++
			}
			diagonal = row[k+1]
			row[k+1] = min(cost, row[k]+1, row[k+1]+1)
		}
	}
	return row[len(b)]
}
