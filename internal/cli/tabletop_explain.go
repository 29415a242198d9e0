package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sluice/internal/tabletop"
)

type tabletopExplainCmd struct {
	scenarioArg
	Request int64    `required:"" help:"Its number, from 1, in order of submission." placeholder:"N"`
	Policy  string   `default:"sluice" help:"Policy of the run (${default})." placeholder:"POLICY"`
	Seed    uint64   `help:"Seed of the run; the file's if left out." placeholder:"N"`
	Act     []string `help:"Acts of the run." placeholder:"NAME"`
	Quiet   bool     `short:"q" help:"No progress."`
	output
}

// explainedStep is one thing that happened to the request.
type explainedStep struct {
	At   time.Duration `json:"at_ns"`
	Text string        `json:"text"`
}

// Run plays the scenario again and tells what happened to one request.
func (c *tabletopExplainCmd) Run(ctx context.Context, env *Env) error {
	s, err := c.read(env)
	if err != nil {
		return err
	}
	run := tabletopRunCmd{Policy: []string{c.Policy}, Act: c.Act}
	policies, err := run.policies(s)
	if err != nil {
		return err
	}
	if err := run.acts(s); err != nil {
		return err
	}
	if c.Request < 1 || len(policies) != 1 {
		return &codedError{code: exitUsage, msg: "give one policy, and the number of a request from 1"}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	v := view{columns: []string{"at", "what"}}
	steps := []explainedStep{}
	o := tabletop.Options{Policy: policies[0], Seed: c.Seed, Acts: c.Act, Watch: c.Request, Tell: func(t tabletop.Step) {
		steps = append(steps, explainedStep{t.At, t.Text})
		v.rows = append(v.rows, []string{t.At.Round(time.Microsecond).String(), t.Text})
	}}
	if !c.Quiet {
		show, done := progress(env, policies[0])
		o.Progress = show
		defer done()
	}
	r, err := s.Run(ctx, o)
	if err != nil {
		return &codedError{code: exitUsage, msg: err.Error()}
	}
	if len(steps) == 0 {
		n := int64(0)
		for i := range r.Phases {
			n += r.Phases[i].All.Requests
		}
		return &codedError{code: exitNotFound, msg: fmt.Sprintf("the run has no request %d", c.Request), hint: fmt.Sprintf("%d were judged, beside those of the warm-up", n)}
	}
	v.data = map[string]any{"scenario": s.Name, "policy": policies[0], "seed": r.Seed, "request": c.Request, "steps": steps}
	return c.print(env.Stdout, v)
}
