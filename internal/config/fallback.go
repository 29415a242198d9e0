package config

import (
	"slices"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/route"
)

// Fallback is a pool to fall back to, written as its name or as a mapping.
type Fallback struct {
	Pool             string     `json:"pool" jsonschema:"a name of pools"`
	Evaluated        *Evaluated `json:"evaluated,omitempty" jsonschema:"the evaluation that says it can stand in; recorded with every attempt there. It or allow_unevaluated is needed"`
	MaxRisk          Risk       `json:"max_risk,omitempty" jsonschema:"highest risk label that it takes: low, normal or high; all if left out"`
	AllowUnevaluated bool       `json:"allow_unevaluated,omitempty" jsonschema:"stand in without an evaluation"`
}

func (f *Fallback) decodeNode(d *decoder, n node, path string) {
	if _, ok := d.asMapping(n); ok {
		type plain Fallback // without this method
		d.into(n, (*plain)(f), path)
		return
	}
	if text, ok := d.scalar(n, path); ok {
		f.Pool = text
	}
}

// Evaluated names an evaluation.
type Evaluated struct {
	Suite string  `json:"suite" jsonschema:"what was run: a name"`
	Score float64 `json:"score" jsonschema:"its result"`
	Date  Time    `json:"date" jsonschema:"when"`
}

func (e *Evaluated) record() *route.Evaluation {
	return &route.Evaluation{Suite: e.Suite, Score: strconv.FormatFloat(e.Score, 'f', -1, 64), Date: e.Date.UTC().Format(time.DateOnly)}
}

// evaluated reports a fallback that nothing says can stand in: what answers instead
// of the model that was asked for has to answer well enough.
func (v *validator) evaluated(path, at string, f *Fallback) {
	if f.Evaluated == nil {
		if !f.AllowUnevaluated {
			v.fail(at, "run your evaluation against it and write {pool: "+f.Pool+", evaluated: {suite: NAME, score: 0.9, date: 2026-11-01}}, or accept it as it is: {pool: "+f.Pool+", allow_unevaluated: true}",
				"fallback %q is not evaluated: nothing says that it can stand in", f.Pool)
		}
		return
	}
	if at := join(join(path, "evaluated"), "suite"); f.Evaluated.Suite != "" {
		if err := sluice.ValidName(f.Evaluated.Suite); err != nil {
			v.fail(at, "write a name such as support-v3", "%s", err)
		}
	}
}

// fallbacks warns of fallbacks that cannot do what they are for.
func (l *linter) fallbacks(path string, m *Model) {
	domains := make(map[string]string) // failure domain → a first-choice backend in it
	var dialects []Dialect
	for _, pool := range m.names() {
		for _, b := range l.c.Pools[pool].Backends {
			if domains[b.domain()] == "" && b.Weight > 0 {
				domains[b.domain()] = b.Name
			}
			dialects = append(dialects, l.c.Providers[b.Provider].Dialect)
		}
	}
	for i, f := range m.Fallback {
		at := index(join(path, "fallback"), i)
		if f.Evaluated != nil && f.Evaluated.Date.After(l.now) {
			l.warn(join(join(at, "evaluated"), "date"), "write the day on which it was run", "the evaluation is of a day to come")
		}
		if f.Evaluated != nil && f.AllowUnevaluated {
			l.warn(join(at, "allow_unevaluated"), "remove it", "the fallback is evaluated: allow_unevaluated does nothing")
		}
		speaks := false
		told := make(map[string]bool)
		for _, b := range l.c.Pools[f.Pool].Backends {
			speaks = speaks || slices.Contains(dialects, l.c.Providers[b.Provider].Dialect)
			d := b.domain()
			if domains[d] != "" && !told[d] {
				told[d] = true
				l.warn(at, "fall back to a pool in another domain, or mend the domains if they are wrong",
					"fallback backend %q is in failure domain %q, as %q is, which it replaces: both fail together", b.Name, d, domains[d])
			}
		}
		if !speaks {
			l.warn(at, "fall back to backends of the same dialect, or see docs/dialects.md for what is carried", "no backend of fallback pool %q speaks a dialect of the model's first pools: of what failed there only that goes on here which translates", f.Pool)
		}
	}
}

// wayOut warns where a single failure domain holds all that serves a model in a
// dialect: when it fails, so does the model. The simulated fleet is in this process
// and fails with it.
func (l *linter) wayOut(path, name string, m *Model) {
	if l.c.file == DemoName {
		return // there is no file to mend
	}
	domains := make(map[Dialect][]string)
	for _, pool := range m.open() {
		for _, b := range l.c.Pools[pool].Backends {
			if p := l.c.Providers[b.Provider]; b.Weight > 0 && !p.Simulated && !slices.Contains(domains[p.Dialect], b.domain()) {
				domains[p.Dialect] = append(domains[p.Dialect], b.domain())
			}
		}
	}
	for _, d := range sorted(domains) {
		in := domains[d]
		if len(in) > 1 {
			continue
		}
		out := "there is no way out when it fails"
		for other, elsewhere := range domains {
			if other != d && (len(elsewhere) > 1 || elsewhere[0] != in[0]) {
				out = "when it fails, only what can be put into another dialect goes on"
			}
		}
		l.warn(path, "add a fallback that fails apart from it: fallback: [{pool: NAME, evaluated: {…}}]; or, if its backends fail apart, name the domain of each: domain: NAME",
			"all that serves model %q in the %s dialect is in failure domain %q: %s", name, d, in[0], out)
	}
}

// open are the pools of a model that everybody has, first choices first.
func (m *Model) open() (out []string) {
	for _, p := range m.Pools {
		if len(p.Tenants)+len(p.Classes) == 0 && p.Canary == 0 {
			out = append(out, p.Pool)
		}
	}
	for _, f := range m.Fallback {
		out = append(out, f.Pool)
	}
	return out
}
