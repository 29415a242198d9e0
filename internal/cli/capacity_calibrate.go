package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice"
	"sluice/internal/calibrate"
	"sluice/internal/capacity"
	"sluice/internal/egress"
)

type capacityCalibrateCmd struct {
	Target      string        `required:"" help:"Base URL of one replica, OpenAI-compatible." placeholder:"URL"`
	Model       string        `required:"" help:"Model, as the backend calls it." placeholder:"M"`
	Key         string        `env:"SLUICE_KEY" help:"Key to send (${env})." placeholder:"K"`
	Name        string        `help:"Name of the profile (the model's)." placeholder:"NAME"`
	GPUs        int64         `name:"gpus" default:"1" help:"GPUs of the replica (${default})." placeholder:"G"`
	Budget      string        `default:"2M" help:"Most tokens to spend, in and out (${default})." placeholder:"N"`
	MaxContext  string        `default:"8192" help:"Longest context of the model (${default})." placeholder:"N"`
	Concurrency int           `default:"320" help:"Most requests at once (${default}); more than its slots, to find these." placeholder:"N"`
	RequestTime time.Duration `default:"5m" help:"Longest time of one request (${default})." placeholder:"D"`
	Seed        uint64        `help:"Of prompts; one that was used before may find them cached (the clock)."`
	Quiet       bool          `short:"q" help:"No progress."`
	output
}

// calibrated is a profile and how far it can be trusted.
type calibrated struct {
	Name           string  `json:"name"`
	GPUs           int64   `json:"gpus"`
	PrefillRate    int64   `json:"prefill_rate"`
	PrefillPerPair string  `json:"prefill_per_pair,omitempty"`
	StepBase       string  `json:"step_base"`
	StepPerRequest string  `json:"step_per_request,omitempty"`
	StepPerToken   string  `json:"step_per_token,omitempty"`
	KVTokens       int64   `json:"kv_tokens,omitempty"`
	Slots          int     `json:"slots,omitempty"`
	Quality        quality `json:"quality"`
}

// quality is what a fit rests on.
type quality struct {
	Fields     []fitted      `json:"fields"`
	Missing    []string      `json:"missing,omitempty"`
	OverheadMS float64       `json:"overhead_ms"`
	Requests   int           `json:"requests"`
	Refused    int           `json:"refused,omitempty"`
	Tokens     sluice.Tokens `json:"tokens"`
	Readings   bool          `json:"readings"`
	Stopped    string        `json:"stopped,omitempty"`
}

// fitted is one figure of a fit.
type fitted struct {
	Field   string  `json:"field"`
	Error   float64 `json:"standard_error"`
	Samples int     `json:"samples"`
	How     string  `json:"how"`
}

// Run measures. An interrupt ends it with what was learned.
func (c *capacityCalibrateCmd) Run(ctx context.Context, env *Env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := c.options(env)
	if err != nil {
		return err
	}
	got, err := calibrate.Run(ctx, o)
	if err != nil {
		return &codedError{code: exitFailed, msg: err.Error(), hint: "give the address of one replica with --target, its model with --model, and a key with --key if it wants one"}
	}
	result := c.result(&got)
	if err := c.print(env.Stdout, result.view(c.Target, time.Now())); err != nil {
		return err
	}
	if got.Stopped != "" {
		fmt.Fprintln(env.Stderr, plain("stopped early: "+got.Stopped))
	}
	if got.Profile.PrefillRate == 0 || got.Profile.StepBase == 0 {
		return &codedError{code: exitFailed, msg: "too little was measured for a profile", hint: "raise --budget, or let it run to its end"}
	}
	return nil
}

func (c *capacityCalibrateCmd) options(env *Env) (calibrate.Options, error) {
	var budget, longest capacity.Tokens
	if err := readFlags(flagText{"budget", c.Budget, &budget}, flagText{"max-context", c.MaxContext, &longest}); err != nil {
		return calibrate.Options{}, err
	}
	if c.GPUs < 1 || c.GPUs > capacity.MaxAllocated {
		return calibrate.Options{}, &codedError{code: exitUsage, msg: fmt.Sprintf("--gpus is not between 1 and %d", capacity.MaxAllocated)}
	}
	o := calibrate.Options{
		Target: c.Target, Model: c.Model, Key: sluice.NewSecret(c.Key), Timeout: c.RequestTime, Seed: cmp.Or(c.Seed, uint64(time.Now().UnixNano())),
		Transport: egress.New(egress.Options{}).Transport(egress.TransportOptions{AllowPrivate: true}),
	}
	o.Plan.Budget, o.Plan.MaxContext, o.Plan.MaxConcurrency = sluice.Tokens(budget), sluice.Tokens(longest), c.Concurrency
	if !c.Quiet {
		o.Progress = env.Stderr
	}
	return o, nil
}

// fields are the words of a replica's file for the figures that are fitted.
var fields = map[string]string{
	"PrefillRate": "prefill_rate", "PrefillPerPair": "prefill_per_pair", "StepBase": "step_base", "StepPerJob": "step_per_request",
	"StepPerToken": "step_per_token", "KVCapacity": "kv_tokens", "Slots": "slots",
}

func (c *capacityCalibrateCmd) result(got *calibrate.Result) *calibrated {
	p := got.Profile
	out := &calibrated{
		Name: profileName(cmp.Or(c.Name, c.Model)), GPUs: c.GPUs, PrefillRate: p.PrefillRate, PrefillPerPair: fine(p.PrefillPerPair), StepBase: fine(int64(p.StepBase) * 1000),
		StepPerRequest: fine(int64(p.StepPerJob) * 1000), StepPerToken: fine(p.StepPerToken), KVTokens: int64(p.KVCapacity), Slots: p.Slots,
		Quality: quality{
			Fields: []fitted{}, OverheadMS: float64(got.Quality.Overhead.Microseconds()) / 1000,
			Requests: got.Requests, Refused: got.Refused, Tokens: got.Tokens, Readings: got.Readings, Stopped: got.Stopped,
		},
	}
	for _, f := range got.Quality.Fields {
		if f.Name == "KVCapacity" && got.Told {
			continue
		}
		out.Quality.Fields = append(out.Quality.Fields, fitted{fields[f.Name], float64(f.Permille) / 1000, f.Samples, f.How})
	}
	if got.Told {
		out.Quality.Fields = append(out.Quality.Fields, fitted{Field: fields["KVCapacity"], How: "the engine's own figure"})
	}
	for _, m := range got.Quality.Missing {
		if name, rest, _ := strings.Cut(m, ":"); name != "KVCapacity" || !got.Told {
			for from, to := range fields {
				name = regexp.MustCompile(`\b`+from+`\b`).ReplaceAllString(name, to)
			}
			out.Quality.Missing = append(out.Quality.Missing, name+":"+rest)
		}
	}
	return out
}

// profileName is a model's name as a profile may be called.
func profileName(model string) string {
	return strings.ToLower(strings.Trim(regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(model, "-"), "-"))
}

// fine writes picoseconds as a replica's file has them; empty for 0.
func fine(ps int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e9, "ms"}, {1e6, "us"}, {1, "ps"}} {
		if ps >= u.size {
			digits := 4
			if u.size == 1 {
				return strconv.FormatFloat(float64(ps)/1000, 'g', 6, 64) + "ns"
			}
			return strconv.FormatFloat(float64(ps)/float64(u.size), 'g', digits, 64) + u.name
		}
	}
	return ""
}

// view is the file to paste for readers, and a row per figure for csv.
func (c *calibrated) view(target string, now time.Time) view {
	v := view{data: c, columns: []string{"field", "value", "standard_error", "samples", "how"}}
	var text strings.Builder
	fmt.Fprintf(&text, "# Measured at %s on %s: %s, %d tokens, %s ms of overhead a request.\n",
		target, now.UTC().Format(time.DateOnly), plural(c.Quality.Requests, "request"), c.Quality.Tokens, fixed(c.Quality.OverheadMS, 1))
	fmt.Fprintf(&text, "name: %s\ngpus: %d\n", c.Name, c.GPUs)
	for _, f := range []struct{ field, value string }{
		{"prefill_rate", strconv.FormatInt(c.PrefillRate, 10)},
		{"prefill_per_pair", c.PrefillPerPair},
		{"step_base", c.StepBase},
		{"step_per_request", c.StepPerRequest},
		{"step_per_token", c.StepPerToken},
		{"kv_tokens", strconv.FormatInt(c.KVTokens, 10)},
		{"slots", strconv.Itoa(c.Slots)},
	} {
		if f.value == "" || f.value == "0" {
			continue
		}
		row := []string{f.field, f.value, "", "", ""}
		comment := ""
		for _, q := range c.Quality.Fields {
			if q.Field == f.field {
				row[2], row[3], row[4] = number(q.Error), strconv.Itoa(q.Samples), q.How
				comment = "# " + q.How
				if q.Samples > 0 {
					comment = fmt.Sprintf("# ± %s %%, %s: %s", fixed(q.Error*100, 1), plural(q.Samples, "sample"), q.How)
				}
			}
		}
		v.rows = append(v.rows, row)
		text.WriteString(strings.TrimRight(fmt.Sprintf("%-26s %s", f.field+": "+f.value, comment), " ") + "\n")
	}
	for _, m := range c.Quality.Missing {
		text.WriteString("# not known: " + m + "\n")
	}
	if c.Quality.Stopped != "" {
		text.WriteString("# stopped early: " + strings.ReplaceAll(c.Quality.Stopped, "\n", " ") + "\n")
	}
	v.text = plain(text.String())
	return v
}

// print writes yaml as the file to paste, comments and all.
func (c *capacityCalibrateCmd) print(w io.Writer, v view) error {
	if c.Output == "yaml" {
		return output{"table"}.print(w, v)
	}
	return c.output.print(w, v)
}
