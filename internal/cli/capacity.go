package cli

import (
	"encoding"
	"errors"
	"fmt"
	"strings"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/capacity"
	"sluice/internal/config"
)

// capacityCmd plans; without a verb it answers one question.
type capacityCmd struct {
	Plan     capacityPlanCmd     `cmd:"" default:"withargs" help:"Whether a fleet holds a demand: --rps R --input N --output M, or --mix FILE. The word plan may be left out."`
	Forecast capacityForecastCmd `cmd:"" help:"What the ledger's history leads to, and when the fleet runs out."`
	Allocate capacityAllocateCmd `cmd:"" help:"How the GPUs of a fleet are best shared between models."`
	Regions  capacityRegionsCmd  `cmd:"" help:"What each region of a configuration has to spare, and who bears the loss of one."`
	Profiles capacityProfilesCmd `cmd:"" help:"What replicas can do: illustrative figures to start from."`

	Calibrate capacityCalibrateCmd `cmd:"" help:"Measure a live replica and fit a profile to it. It costs tokens; nobody else should use it meanwhile."`
}

// Help is what stands under the line of usage.
func (capacityCmd) Help() string {
	return "sluice capacity --rps 120 --input 800 --output 300 --gpus 8 --lose 25%\n\nsluice capacity --mix FILE\n\n" +
		"The flags of these are those of sluice capacity plan --help; docs/capacity.md explains the answer."
}

// machines are the flags of a fleet.
type machines struct {
	GPUs    int64  `name:"gpus" help:"GPUs of the fleet; left out: as many as are needed." placeholder:"G"`
	Profile string `help:"What one replica is: a name of sluice capacity profiles, or a YAML file of sluice capacity calibrate (${profile})." placeholder:"P"`
	Lose    string `help:"Part of the GPUs that may fail together, such as 25%%." placeholder:"SHARE"`
	Target  string `help:"Part of the engines' time that may be planned for, such as 80%% (all of it)." placeholder:"SHARE"`
}

// question is the fleet that the flags say; measured where a file says what its
// replicas can do.
func (m *machines) question() (q capacity.Question, measured bool, err error) {
	q.GPUs = m.GPUs
	if err := readFlags(flagText{"lose", m.Lose, &q.Lose}, flagText{"target", m.Target, &q.Target}); err != nil {
		return q, false, err
	}
	if q.Replica, measured, err = findReplica(m.Profile); err != nil {
		err = planned("", err)
	}
	return q, measured, err
}

// findReplica is a profile by its name or its file.
func findReplica(profile string) (capacity.Replica, bool, error) {
	if strings.HasSuffix(profile, ".yaml") || strings.HasSuffix(profile, ".yml") {
		r, err := config.LoadReplica(profile)
		return r, true, err
	}
	r, err := capacity.ReplicaNamed(profile)
	return r, false, err
}

// flagText is the text of a flag and where it is read to.
type flagText struct {
	name, text string
	to         encoding.TextUnmarshaler
}

// readFlags reads those that were given.
func readFlags(flags ...flagText) error {
	for _, f := range flags {
		if f.text == "" {
			continue
		}
		if err := f.to.UnmarshalText([]byte(f.text)); err != nil {
			e := sluice.AsError(err)
			return &codedError{code: exitUsage, msg: "--" + f.name + ": " + e.Msg, hint: e.Hint}
		}
	}
	return nil
}

// planned tells an error of the planner by the flag or the file's field.
func planned(file string, err error) error {
	if _, ok := errors.AsType[config.Problems](err); ok {
		return err
	}
	e := sluice.AsError(err)
	if e.Kind != sluice.KindInvalid {
		return err
	}
	at := "--" + strings.TrimPrefix(e.Param, "[0].")
	if file != "" {
		at = shown(file) + ": " + e.Param
	}
	return &codedError{code: exitUsage, msg: at + " " + e.Msg, hint: e.Hint}
}

type capacityPlanCmd struct {
	RPS      string `name:"rps" help:"Requests per second, or per another time: 30, 0.5, 20/min." placeholder:"R"`
	Input    string `help:"Tokens of a prompt: 2000; with quantiles, p50=800,p90=3k,p99=12k; with very long ones, 1500,2%%:100k." placeholder:"N"`
	Out      string `name:"output" help:"Tokens of an answer, in the same form." placeholder:"M"`
	CacheHit string `help:"Part of the input that the prefix cache has, such as 60%%." placeholder:"SHARE"`
	Retries  string `help:"Attempts beyond the first, per request, such as 10%%." placeholder:"SHARE"`
	Mix      string `help:"YAML file of several workloads, before and after a change; see docs/capacity.md. Flags of the fleet go before its own." placeholder:"FILE" type:"path"`
	Check    bool   `help:"Exit 1 when it is over capacity, with the loss of --lose if given."`
	machines
	Form string `short:"o" name:"form" enum:"table,json,csv,yaml" default:"table" help:"Form of the data: ${enum}." placeholder:"FORM"`
}

// Run plans.
func (c *capacityPlanCmd) Run(env *Env) error {
	if c.Mix != "" {
		return c.mix(env)
	}
	q, measured, err := c.question()
	if err != nil {
		return err
	}
	if c.RPS == "" {
		return &codedError{code: exitUsage, msg: "what is asked for is missing", hint: "write sluice capacity --rps 30 --input 2000 --output 300, or --mix FILE"}
	}
	w := capacity.Workload{}
	if err := readFlags(
		flagText{"rps", c.RPS, &w.Rate}, flagText{"input", c.Input, &w.Input}, flagText{"output", c.Out, &w.Output},
		flagText{"cache-hit", c.CacheHit, &w.Hit}, flagText{"retries", c.Retries, &w.Retries},
	); err != nil {
		return err
	}
	q.Workloads = []capacity.Workload{w}
	p, err := capacity.Solve(q)
	if err != nil {
		return planned("", err)
	}
	answer := admin.PlanOf(p, measured)
	what := fmt.Sprintf("%s requests/s of %s in and %s out", figureOf(answer.Requests), w.Input, w.Output)
	if err := (output{c.Form}).print(env.Stdout, capacityView(&answer, what)); err != nil {
		return err
	}
	return c.verdict(&answer)
}

// mix compares the sides of a file.
func (c *capacityPlanCmd) mix(env *Env) error {
	if c.RPS != "" || c.Input != "" || c.Out != "" || c.CacheHit != "" || c.Retries != "" {
		return &codedError{code: exitUsage, msg: "--mix has the workloads in its file", hint: "leave --rps, --input, --output, --cache-hit and --retries out"}
	}
	var m capacity.MixFile
	if err := config.LoadSheet(c.Mix, &m, env.Getenv); err != nil {
		return err
	}
	if c.Profile == "" {
		c.Profile = m.Profile
	}
	q, measured, err := c.question()
	if err != nil {
		return err
	}
	if q.GPUs == 0 {
		q.GPUs = m.GPUs
	}
	if c.Lose == "" {
		q.Lose = m.Lose
	}
	if c.Target == "" {
		q.Target = m.Target
	}
	before, after, err := m.Workloads()
	if err != nil {
		return planned(c.Mix, err)
	}
	got, err := capacity.Compare(q, before, after)
	if err != nil {
		return planned(c.Mix, err)
	}
	answer := admin.MixOf(got, measured)
	if err := (output{c.Form}).print(env.Stdout, mixView(&answer)); err != nil {
		return err
	}
	last := &answer.Before
	if answer.After != nil {
		last = answer.After
	}
	return c.verdict(last)
}

// verdict fails an answer that is over capacity, if that was asked.
func (c *capacityPlanCmd) verdict(p *admin.CapacityPlan) error {
	if c.Check && (p.Over || p.Lost != nil && p.Lost.Over) {
		return &codedError{code: exitFailed}
	}
	return nil
}
