package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Rate is how many per time: 5/s, 20/min, 1000/h. Its value is per second.
type Rate float64

const rateFix = "write a number and a time: 5/s, 20/min or 1000/h"

// maxRate is the most requests per second of a source.
const maxRate = 100_000

var ratePeriods = map[string]float64{"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}

// UnmarshalText reads a rate above 0.
func (r *Rate) UnmarshalText(b []byte) error {
	digits, period, ok := strings.Cut(strings.ReplaceAll(string(b), "_", ""), "/")
	seconds, known := ratePeriods[strings.TrimSpace(period)]
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	switch {
	case !ok || !known || err != nil || math.IsNaN(v):
		return wrong(rateFix, "%q is not a rate", b)
	case v < 0:
		return wrong(rateFix, "%q is negative", b)
	case v == 0:
		return wrong("write more, or leave the source out", "a rate of 0 sends nothing")
	case v/seconds > maxRate:
		return wrong("write at most 100000/s, or split the source", "%q is too much for one source", b)
	}
	*r = Rate(v / seconds)
	return nil
}

// Share is a part in percent with at most one decimal: 25%, 2.5%. Its value is
// in thousandths.
type Share int64

const shareFix = "write 0% to 100%, with at most one decimal"

// UnmarshalText reads 0% to 100%.
func (s *Share) UnmarshalText(b []byte) error {
	digits, ok := strings.CutSuffix(string(b), "%")
	v, err := scaled(digits, map[string]int64{"": 10}, shareFix)
	if !ok || err != nil || v > 1000 {
		return wrong(shareFix, "%q is not a share", b)
	}
	*s = Share(v)
	return nil
}

func (s Share) String() string { return percent(int64(s)) }

// Names is one name, or a list of them.
type Names []string

func (l *Names) decodeNode(d *decoder, n node, path string) {
	if _, ok := n.(*ast.SequenceNode); ok {
		type plain Names // without this method
		d.into(n, (*plain)(l), path)
		return
	}
	if text, ok := d.scalar(n, path); ok {
		d.pos[index(path, 0)] = nodePos(n)
		*l = Names{text}
	}
}

// Arrivals is when requests come: a rate, or one of the processes.
type Arrivals struct {
	Poisson *Rate  `json:"poisson,omitempty" jsonschema:"independently, so many per time; the same as the rate alone"`
	Even    *Rate  `json:"even,omitempty" jsonschema:"with the same time between any two"`
	Gamma   *Burst `json:"gamma,omitempty" jsonschema:"in bursts: {rate: 5/s, cv: 4}"`
	Weibull *Burst `json:"weibull,omitempty" jsonschema:"likewise, with a heavier tail"`
	Trace   *Trace `json:"trace,omitempty" jsonschema:"as they came once: the rows of a recording, with their lengths"`
}

// Burst is a renewal process.
type Burst struct {
	Rate Rate    `json:"rate" jsonschema:"mean"`
	CV   float64 `json:"cv" jsonschema:"coefficient of variation of the times between arrivals: 1 is Poisson, more is burstier; at most 100"`
}

// Trace is a recording.
type Trace struct {
	File    string   `json:"file,omitempty" jsonschema:"its file, relative to the scenario: Azure, Mooncake, Qwen, VTC, BurstGPT, ServeGen, Vidur, JSONL, or any with columns"`
	Shape   string   `json:"shape,omitempty" jsonschema:"in place of a file: rows that are made up in the shape of a published trace, such as azure-conv"`
	Columns *Columns `json:"columns,omitempty" jsonschema:"columns of a CSV file, or members of a JSONL one, that is of no known format"`
	Client  string   `json:"client,omitempty" jsonschema:"its rows alone"`
	Scale   float64  `json:"scale,omitempty" jsonschema:"how many times as fast it is played; 1 if left out"`
	Limit   Count    `json:"limit,omitempty" jsonschema:"most rows; all if left out, at most 1M"`
	Loop    bool     `json:"loop,omitempty" jsonschema:"begin again at its end"`
}

// Columns names the columns of a trace.
type Columns struct {
	At     string   `json:"at" jsonschema:"when: a number, or a date and time"`
	Input  string   `json:"input" jsonschema:"input tokens"`
	Output string   `json:"output" jsonschema:"output tokens"`
	Client string   `json:"client,omitempty" jsonschema:"who"`
	Unit   TimeUnit `json:"unit,omitempty" jsonschema:"of the number: s, ms, us or ns; s if left out"`
}

// TimeUnit is s, ms, us or ns.
type TimeUnit string

func (TimeUnit) words() []string { return []string{"s", "ms", "us", "ns"} }

func (a *Arrivals) decodeNode(d *decoder, n node, path string) {
	if _, ok := d.asMapping(n); ok {
		type plain Arrivals // without this method
		d.into(n, (*plain)(a), path)
		return
	}
	text, ok := d.scalar(n, path)
	if !ok {
		return
	}
	var r Rate
	if err := r.UnmarshalText([]byte(text)); err != nil {
		d.reportError(n, path, err)
		return
	}
	a.Poisson = &r
}

// onlyOne reports unless exactly one of the fields of a section is given.
func (r *reader) onlyOne(at string, given map[string]bool) bool {
	var have []string
	for _, name := range sorted(given) {
		if given[name] {
			have = append(have, name)
		}
	}
	if r.brokenAt(at) {
		return len(have) == 1
	}
	switch len(have) {
	case 1:
		return true
	case 0:
		r.fail(at, "give it one of "+strings.Join(sorted(given), ", "), "says none of what it could")
	default:
		r.fail(at, "keep one of them", "says %s at once", strings.Join(have, " and "))
	}
	return false
}

// brokenAt reports whether something at or below a path has been reported.
func (r *reader) brokenAt(at string) bool {
	for p := range r.d.broken {
		if p == at || strings.HasPrefix(p, at+".") || strings.HasPrefix(p, at+"[") {
			return true
		}
	}
	return false
}

func (r *reader) between(at string, v, least, most float64) {
	if v < least || v > most {
		r.fail(at, fmt.Sprintf("write a number from %g to %g", least, most), "%g is out of range", v)
	}
}
