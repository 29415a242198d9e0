package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice/internal/config"
	"sluice/internal/tabletop"
	"sluice/internal/tabletop/report"
)

type tabletopRunCmd struct {
	scenarioArg
	Policy []string `help:"sluice, naive, a variant of the file, or all; several may be named. The first is judged, the others stand beside it (sluice,naive)." placeholder:"POLICY"`
	Seed   uint64   `help:"Of all that is drawn; the file's if left out. The same seed gives the same figures." placeholder:"N"`
	Act    []string `help:"Play one of the file's acts." placeholder:"NAME"`
	HTML   string   `name:"html" help:"Write the report as one HTML page." placeholder:"FILE" type:"path"`
	JSON   string   `name:"json" help:"Write the report as JSON." placeholder:"FILE" type:"path"`
	Quiet  bool     `short:"q" help:"No progress."`
	output
}

// Run plays the scenario. An interrupt cuts it short; the report says so.
func (c *tabletopRunCmd) Run(ctx context.Context, env *Env) error {
	s, err := c.read(env)
	if err != nil {
		return err
	}
	policies, err := c.policies(s)
	if err != nil {
		return err
	}
	if err := c.acts(s); err != nil {
		return err
	}
	outputs, err := openReports(c.HTML, c.JSON, report.HTMLOptions{Source: c.text(), Command: plain(strings.Join(append([]string{"sluice"}, env.Args...), " "))})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var results []*tabletop.Result
	for _, policy := range policies {
		r, err := c.play(ctx, env, s, policy)
		if err != nil {
			return &codedError{code: exitUsage, msg: err.Error()}
		}
		results = append(results, r)
		if r.Partial {
			break
		}
	}
	if err := outputs.write(results, env.Stderr); err != nil {
		return err
	}
	v, err := tabletopView(results, tableOptions(env))
	if err != nil {
		return err
	}
	if err := c.print(env.Stdout, v); err != nil {
		return err
	}
	return verdict(results, policies)
}

// policies are those to run, the one that is judged first.
func (c *tabletopRunCmd) policies(s *tabletop.Scenario) ([]string, error) {
	known := policyNames(s)
	if len(c.Policy) == 0 {
		return []string{config.PolicySluice, config.PolicyNaive}, nil
	}
	var out []string
	for _, name := range c.Policy {
		switch {
		case name == "all":
			out = append(out, known...)
		case !slices.Contains(known, name):
			return nil, &codedError{code: exitUsage, msg: fmt.Sprintf("the scenario has no policy %q", name), hint: "use one of " + strings.Join(known, ", ") + ", or all"}
		default:
			out = append(out, name)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	}), nil
}

// acts checks those that are to be played: each applies its patches on top of the
// file's own, so that two that do would undo each other.
func (c *tabletopRunCmd) acts(s *tabletop.Scenario) error {
	applies := ""
	for _, name := range c.Act {
		i := slices.IndexFunc(s.Acts, func(a tabletop.Act) bool { return a.Name == name })
		if i < 0 {
			return &codedError{code: exitUsage, msg: fmt.Sprintf("the scenario has no act %q", name), hint: "it has " + orNone(actNames(s))}
		}
		if !slices.ContainsFunc(s.Acts[i].Events, func(e tabletop.Event) bool { return len(e.Apply) > 0 }) {
			continue
		}
		if applies != "" {
			return &codedError{code: exitUsage, msg: fmt.Sprintf("the acts %s and %s both change the configuration", applies, name), hint: "write one act that does both"}
		}
		applies = name
	}
	return nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// play runs one policy, with progress.
func (c *tabletopRunCmd) play(ctx context.Context, env *Env, s *tabletop.Scenario, policy string) (*tabletop.Result, error) {
	o := tabletop.Options{Policy: policy, Seed: c.Seed, Acts: c.Act}
	if c.Quiet {
		return s.Run(ctx, o)
	}
	show, done := progress(env, policy)
	o.Progress = show
	defer done()
	return s.Run(ctx, o)
}

// progress shows how far a run is, on standard error.
func progress(env *Env, policy string) (show func(tabletop.Progress), done func()) {
	width, terminal := terminalOf(env.Stderr)
	m := report.NewMeter(env.Stderr, report.ProgressOptions{Policy: policy, Width: width, Redraw: terminal, Unicode: unicodeOf(env)})
	began := time.Now()
	return func(p tabletop.Progress) { m.Show(p, time.Since(began)) }, m.Done
}

// unicodeOf reports whether the locale can show more than ASCII.
func unicodeOf(env *Env) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, ok := env.Getenv(name); ok && v != "" {
			return strings.Contains(strings.ToUpper(v), "UTF")
		}
	}
	return false
}

func tableOptions(env *Env) report.TableOptions {
	width, terminal := terminalOf(env.Stdout)
	_, plainly := env.Getenv("NO_COLOR")
	return report.TableOptions{Width: width, Color: terminal && !plainly, Unicode: unicodeOf(env)}
}

// reportFile is a file to be written when a run is over. It is opened before it,
// so that a run of minutes does not end without a place for its report.
type reportFile struct {
	*os.File
	write func(io.Writer, []*tabletop.Result) error
}

type reports []reportFile

func openReports(html, jsonFile string, o report.HTMLOptions) (reports, error) {
	page := func(w io.Writer, results []*tabletop.Result) error {
		return report.HTML(w, results, o)
	}
	var out reports
	for _, want := range []struct {
		name  string
		write func(io.Writer, []*tabletop.Result) error
	}{{html, page}, {jsonFile, report.JSON}} {
		if want.name == "" {
			continue
		}
		f, err := os.OpenFile(want.name, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, &codedError{code: exitUsage, msg: "cannot write the report: " + err.Error()}
		}
		out = append(out, reportFile{f, want.write})
	}
	return out, nil
}

func (rs reports) write(results []*tabletop.Result, talk io.Writer) error {
	for _, r := range rs {
		var b bytes.Buffer
		if err := r.write(&b, results); err != nil {
			return err
		}
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			if err := r.Truncate(0); err != nil {
				return err
			}
		}
		if _, err := r.Write(b.Bytes()); err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		fmt.Fprintln(talk, "report: "+plain(shown(r.Name())))
	}
	return nil
}

// tabletopView is the report in every form.
func tabletopView(results []*tabletop.Result, o report.TableOptions) (view, error) {
	var text, data bytes.Buffer
	if err := report.Table(&text, results, o); err != nil {
		return view{}, err
	}
	if err := report.JSON(&data, results); err != nil {
		return view{}, err
	}
	v := view{data: json.RawMessage(data.Bytes()), text: text.String(), columns: figureColumns}
	for _, r := range results {
		for i := range r.Phases {
			p := &r.Phases[i]
			add := func(kind, name string, f *tabletop.Figures) {
				v.rows = append(v.rows, append([]string{r.Policy, strconv.FormatUint(r.Seed, 10), p.Name, kind, name}, figureCells(f)...))
			}
			add("all", "", &p.All)
			for _, g := range []struct {
				kind string
				of   []tabletop.Named
			}{{"class", p.Classes}, {"tenant", p.Tenants}, {"source", p.Sources}} {
				for k := range g.of {
					add(g.kind, g.of[k].Name, &g.of[k].Figures)
				}
			}
		}
	}
	return v, nil
}

// figureColumns head the rows of csv.
var figureColumns = []string{
	"policy", "seed", "phase", "kind", "name",
	"requests", "good", "completed", "failed", "cancelled", "rejected", "unfinished", "slo_permille", "goodput_per_second",
	"input_tokens_per_second", "output_tokens_per_second", "served_tokens_per_second",
	"ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "tpot_p99_ms", "e2e_p50_ms", "e2e_p99_ms", "queue_p50_ms", "queue_p99_ms",
	"work", "share_permille", "fair_share_permille", "cost_nano", "cost_per_good_nano",
}

func figureCells(f *tabletop.Figures) []string {
	var out []string
	for _, n := range []int64{f.Requests, f.Good, f.Completed, f.Failed, f.Cancelled, f.Rejected, f.Unfinished, f.SLO} {
		out = append(out, count(n))
	}
	for _, x := range []float64{f.Goodput, f.InputTokens, f.OutputTokens, f.Served} {
		out = append(out, strconv.FormatFloat(x, 'f', 3, 64))
	}
	for _, p := range []tabletop.Percentiles{f.TTFT, f.TPOT, f.E2E, f.Queue} {
		for _, d := range []time.Duration{p.P50, p.P99} {
			cell := ""
			if p.Count > 0 {
				cell = fmt.Sprintf("%.1f", float64(d)/1e6)
			}
			out = append(out, cell)
		}
	}
	for _, n := range []int64{f.Work, f.Share, f.FairShare, int64(f.Cost), int64(f.PerGood)} {
		out = append(out, count(n))
	}
	return out
}

// verdict says whether the first policy met what is expected of it.
func verdict(results []*tabletop.Result, policies []string) error {
	first := results[0]
	if last := results[len(results)-1]; last.Partial {
		msg := fmt.Sprintf("interrupted: the report of policy %s covers %s of %s", last.Policy, last.Ended.Round(time.Millisecond), last.Length)
		if left := policies[len(results):]; len(left) > 0 {
			msg += ", and " + strings.Join(left, ", ") + " was not run"
		}
		return &codedError{code: exitFailed, msg: msg}
	}
	if first.Passed {
		return nil
	}
	failed := 0
	for _, v := range first.Verdicts {
		if !v.Passed {
			failed++
		}
	}
	return &codedError{code: exitFailed, msg: fmt.Sprintf("%s of policy %s not met", plural(failed, "expectation"), first.Policy)}
}
