package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/config"
	"sluice/internal/egress"
	"sluice/internal/hook"
	"sluice/internal/wire"
)

type hookCmd struct {
	Test hookTestCmd `cmd:"" help:"Try a hook on the body of a request or an answer, from standard input, without a gateway: what is left of it, and what was decided."`
}

type hookTestCmd struct {
	Name      string `arg:"" help:"A hook of the configuration; without one redact is the built-in redaction of all kinds."`
	Config    string `help:"The configuration file." type:"path" placeholder:"FILE"`
	Stage     string `enum:"request,commit" default:"request" help:"What standard input is: the body of a request, or a whole answer (commit)."`
	Operation string `default:"chat" help:"Whose body it is: chat, completions, embeddings, messages and others."`
	Tenant    string `default:"test" help:"What the hook is told of who asks." placeholder:"ID"`
	Model     string `default:"test" help:"What the hook is told of the model." placeholder:"NAME"`
	output
}

// maxTried bounds the body.
const maxTried = 32 << 20

// tried is what came of a try.
type tried struct {
	Body      string          `json:"body"` // what is left of it; empty if it was refused
	Decisions json.RawMessage `json:"decisions"`
}

// Run asks the hook as a gateway with the file would.
func (c *hookTestCmd) Run(ctx context.Context, env *Env) error {
	specs, err := c.specs(env)
	if err != nil {
		return err
	}
	op, err := operationNamed(c.Operation)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(os.Stdin, maxTried))
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	x := hook.New(hook.Options{Dialer: egress.New(egress.Options{})})
	defer x.Close()
	x.Use(specs)
	stage := hook.AtRequest
	if c.Stage == hook.AtCommit.String() {
		stage = hook.AtCommit
	} else if _, err := wire.ScanIn(op, body, wire.InPath{Model: c.Model}); err != nil {
		return err
	}
	run := x.Begin(hook.Subject{ID: "req_test", Tenant: sluice.TenantID(c.Tenant), Project: sluice.DefaultProject, Model: sluice.ModelID(c.Model), Op: op}, []string{c.Name})
	out, failure := run.Try(ctx, stage, body)
	for _, d := range run.Decisions() {
		fmt.Fprintln(env.Stderr, decisionText(&d))
	}
	if e := sluice.AsError(failure); failure != nil && e.Reason == sluice.HookRefused {
		return &codedError{code: exitDenied, msg: e.Msg, hint: e.Hint}
	} else if failure != nil {
		return failure
	}
	return c.print(env.Stdout, view{
		data: tried{string(out), run.AppendJSON(nil)}, columns: []string{"body"}, rows: [][]string{{string(out)}},
		text: plain(string(out)) + "\n",
	})
}

// specs are the hooks of the file, or the built-in redaction.
func (c *hookTestCmd) specs(env *Env) ([]hook.Spec, error) {
	if c.Config == "" {
		if c.Name != "redact" {
			return nil, &codedError{code: exitUsage, msg: fmt.Sprintf("hook %q is known from no file", c.Name), hint: "name the configuration: --config sluice.yaml"}
		}
		return []hook.Spec{{Name: c.Name, Redact: hook.AllKinds, At: 1<<hook.AtRequest | hook.AnswerStages}}, nil
	}
	cfg, err := config.Load(c.Config, env.Getenv)
	if err != nil {
		return nil, err
	}
	specs := cfg.HookSpecs()
	if !slices.ContainsFunc(specs, func(s hook.Spec) bool { return s.Name == c.Name }) {
		return nil, &codedError{code: exitUsage, msg: fmt.Sprintf("%s has no hook %q", shown(c.Config), c.Name), hint: "declare it under hooks"}
	}
	return specs, nil
}

// operationNamed is an operation whose texts hooks can look into.
func operationNamed(name string) (wire.Operation, error) {
	var known []string
	for op := range wire.Operation(wire.NumOperations) {
		if hook.Reads(op) {
			if op.String() == name {
				return op, nil
			}
			known = append(known, op.String())
		}
	}
	return 0, errors.New("operation " + name + " is none that hooks look into: use " + fmt.Sprint(known))
}

// decisionText is one decision in a line.
func decisionText(d *hook.Decision) string {
	var s strings.Builder
	s.WriteString(fmt.Sprintf("%s at %s: %s", d.Hook, d.Stage, d.Verdict))
	if d.Why != "" {
		s.WriteString(" (" + d.Why + ")")
	}
	for k, n := range d.Counts {
		if n > 0 {
			s.WriteString(fmt.Sprintf(", %d %s", n, hook.Kind(k)))
		}
	}
	if d.Took > 0 {
		s.WriteString(", in " + span(d.Took.Seconds()))
	}
	return s.String()
}
