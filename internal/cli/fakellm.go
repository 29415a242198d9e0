package cli

import (
	"context"
	"fmt"

	"sluice/internal/fakellm"
)

type fakellmCmd struct {
	Listen  string `default:"${fakelisten}" help:"Address (${default})." placeholder:"ADDR"`
	Script  string `help:"YAML file of faults by model; see docs/fakellm.md." placeholder:"FILE" type:"existingfile"`
	Seed    uint64 `default:"1" help:"Of texts, lengths and probabilities (${default})."`
	Instant bool   `help:"Answer as fast as it can write." xor:"pace"`
	Speed   int64  `help:"Make the simulated engines N times as fast, for traces that are replayed at a raised speed." placeholder:"N" xor:"pace"`
	Book    int    `help:"Requests that the book keeps one by one (16384)." placeholder:"N"`
	Strict  bool   `help:"Refuse unknown models instead of serving them as the first."`
}

// Run serves until the context ends.
func (c *fakellmCmd) Run(ctx context.Context, env *Env) error {
	if c.Speed < 0 || c.Book < 0 {
		return &codedError{code: exitUsage, msg: "--speed and --book are not negative"}
	}
	if c.Script != "" {
		if _, err := fakellm.LoadScript(c.Script); err != nil {
			return &codedError{code: exitUsage, msg: err.Error(), hint: "docs/fakellm.md has the fields and faults of a script"}
		}
	}
	s, err := fakellm.Listen(fakellm.Config{
		Listen: c.Listen, Script: c.Script, Seed: c.Seed, Instant: c.Instant, Speed: c.Speed, Strict: c.Strict, Book: c.Book,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "fakellm listens on http://%s/v1 (OpenAI, vLLM) and http://%s/v1/messages (Anthropic)\n", s.Addr(), s.Addr())
	return s.Run(ctx)
}
