package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is what a run found.
type report struct {
	Against string  `json:"against"` // what Sluice is compared with
	Go      string  `json:"go"`
	System  string  `json:"system"`
	CPUs    int     `json:"cpus"`
	Load    string  `json:"load_average,omitempty"` // of the machine when the run began
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	Rows    []*row  `json:"rows"`

	Requests   int64  `json:"requests"` // over all loads and gateways
	Chunks     int64  `json:"chunks"`
	Wrong      int64  `json:"wrong"`
	FirstWrong string `json:"first_wrong,omitempty"`

	round int
}

// row is one figure of both gateways.
type row struct {
	Name   string    `json:"name"`
	What   string    `json:"what"`
	Unit   string    `json:"unit"`
	Target string    `json:"target,omitempty"`
	Plain  []float64 `json:"plain"`  // of each round
	Sluice []float64 `json:"sluice"` // likewise
	Met    *bool     `json:"met,omitempty"`

	Summary summary `json:"summary"`

	met func(summary) bool // nil where there is no target
}

// summary is least and median over the rounds. Ratios are of one round each, so
// that what disturbs a round disturbs both sides.
type summary struct {
	Plain  stat `json:"plain"`
	Sluice stat `json:"sluice"`
	Ratio  stat `json:"ratio"`
	Added  stat `json:"difference"`
}

type stat struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
}

func statOf(v []float64) stat {
	if len(v) == 0 {
		return stat{}
	}
	v = slices.Sorted(slices.Values(v))
	return stat{v[0], (v[(len(v)-1)/2] + v[len(v)/2]) / 2}
}

func newReport(o options) *report {
	r := &report{Against: "ReverseProxy", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Rounds: o.rounds}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load = strings.Join(strings.Fields(string(text))[:3], " ")
	}
	if o.against != "" {
		r.Against = o.against
	}
	add := func(w *row) {
		r.Rows = append(r.Rows, w)
	}
	for _, l := range loads {
		if !o.wants(l.name) {
			continue
		}
		unit := "µs of CPU per request"
		if l.chunk {
			unit = "µs of CPU per chunk"
		}
		add(&row{
			Name: l.name, What: l.what, Unit: unit, Target: fmt.Sprintf("≤ %.2f ×", l.target),
			met: func(s summary) bool { return s.Ratio.Median <= l.target },
		})
	}
	if o.wants("memory") {
		what := fmt.Sprintf("memory, %d open streams", openStreams)
		add(&row{
			Name: "rss", What: what, Unit: "KB resident per stream", Target: fmt.Sprintf("≤ %d KB", memoryTarget),
			met: func(s summary) bool { return s.Sluice.Median <= memoryTarget },
		})
		add(&row{Name: "heap", What: what, Unit: "KB of heap and stacks per stream"})
	}
	if o.wants("latency") {
		what := fmt.Sprintf("added latency, %d requests/s, open loop", latencyRate)
		add(&row{
			Name: "p50", What: what, Unit: "µs at the median", Target: fmt.Sprintf("≤ + %d µs", latencyGrace.Microseconds()),
			met: func(s summary) bool { return s.Added.Median <= float64(latencyGrace.Microseconds()) },
		})
		add(&row{Name: "p99", What: what, Unit: "µs at the 99th percentile"})
	}
	return r
}

func (r *report) row(name string) *row {
	i := slices.IndexFunc(r.Rows, func(w *row) bool { return w.Name == name })
	return r.Rows[i]
}

// note takes the figure of one gateway in one round.
func (r *report) note(g *gateway, name string, v float64) {
	w := r.row(name)
	if g.base {
		w.Plain = append(w.Plain, v)
	} else {
		w.Sluice = append(w.Sluice, v)
	}
	w.sum()
}

func (w *row) sum() {
	var ratio, added []float64
	for i := range min(len(w.Plain), len(w.Sluice)) {
		ratio = append(ratio, w.Sluice[i]/w.Plain[i])
		added = append(added, w.Sluice[i]-w.Plain[i])
	}
	w.Summary = summary{statOf(w.Plain), statOf(w.Sluice), statOf(ratio), statOf(added)}
	if w.met != nil {
		met := w.met(w.Summary)
		w.Met = &met
	}
}

// took notes what a gateway did under a load.
func (r *report) took(who string, l load, res result) {
	r.Requests += res.requests
	r.Chunks += res.chunks
	r.Wrong += res.wrong
	if res.first != nil && r.FirstWrong == "" {
		r.FirstWrong = fmt.Sprintf("%s under %s: %v", who, l.name, res.first)
	}
}

// table prints the report for people.
func (r *report) table(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s, %d processors", r.Go, r.System, r.CPUs)
	if r.Load != "" {
		fmt.Fprintf(w, ", load average %s before", r.Load)
	}
	fmt.Fprintf(w, "; %d rounds in %.0f s; %d requests and %d chunks, %d wrong\n\n", r.Rounds, r.Seconds, r.Requests, r.Chunks, r.Wrong)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\t\t%s\t\tSluice\t\tSluice ÷ %[1]s\t\t\t\n", r.Against)
	fmt.Fprintln(t, "load\tfigure\tmin\tmedian\tmin\tmedian\tmin\tmedian\ttarget\t")
	for _, x := range r.Rows {
		s := x.Summary
		mark := ""
		if x.Met != nil {
			mark = map[bool]string{true: "met", false: "MISSED"}[*x.Met]
		}
		ratio := [2]string{times(s.Ratio.Min), times(s.Ratio.Median)}
		if x.Name == "p50" || x.Name == "p99" {
			ratio = [2]string{fmt.Sprintf("%+.0f µs", s.Added.Min), fmt.Sprintf("%+.0f µs", s.Added.Median)}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.What, x.Unit,
			short(s.Plain.Min), short(s.Plain.Median), short(s.Sluice.Min), short(s.Sluice.Median), ratio[0], ratio[1], x.Target, mark)
	}
	return t.Flush()
}

func times(v float64) string { return fmt.Sprintf("%.2f ×", v) }

// short has three digits that mean something.
func short(v float64) string {
	if math.Abs(v) < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
