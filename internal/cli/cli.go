package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"sluice/internal/capacity"
	"sluice/internal/fakellm"
)

// Env is the world of one run.
type Env struct {
	Program string   // how it was called, for what is printed to be pasted; empty is sluice
	Args    []string // without the program's name
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) (string, bool)
}

// root is the tree of commands.
type root struct {
	Serve   serveCmd   `cmd:"" help:"Run the gateway. Without a configuration: a simulated fleet and a development key."`
	Check   checkCmd   `cmd:"" help:"Check a configuration file: what is wrong, where, and how to mend it."`
	Fakellm fakellmCmd `cmd:"" help:"Run the scripted provider alone: OpenAI, Anthropic, Bedrock and vLLM surfaces."`

	Tenant  tenantCmd  `cmd:"" help:"Tenants: who holds projects and has a plan."`
	Project projectCmd `cmd:"" help:"Projects of a tenant, which hold keys."`
	Key     keyCmd     `cmd:"" help:"Keys of a tenant: create, rotate, revoke."`
	Plan    planCmd    `cmd:"" help:"Plans: class, weight and limits that tenants have."`

	Route   routeCmd   `cmd:"" help:"Where requests go: show and change it, compare its versions, roll back, look at shadows."`
	Usage   usageCmd   `cmd:"" help:"What was used and what it cost."`
	Request requestCmd `cmd:"" help:"Requests that have ended."`
	Explain explainCmd `cmd:"" help:"Why a request went as it did."`
	Status  statusCmd  `cmd:"" help:"What waits, what runs, what is broken. Exits 6 when its store or journal is degraded, 7 when it starts or drains; not for backends."`
	Ledger  ledgerCmd  `cmd:"" help:"The ledger."`
	Batch   batchCmd   `cmd:"" help:"Batches and requests that are answered later: how far they are, cancel."`
	Backend backendCmd `cmd:"" help:"Backends and their credentials: what is out, drain and undrain, enable."`
	Cache   cacheCmd   `cmd:"" help:"Kept answers: what there is, and purging it."`
	Ladder  ladderCmd  `cmd:"" help:"What is given up while a pool is short of capacity: status, pin and unpin a tier, preview one."`
	Hook    hookCmd    `cmd:"" help:"Hooks, which look into requests and answers."`
	Auth    authCmd    `cmd:"" help:"Signed tokens that are taken in the place of keys."`
	Config  configCmd  `cmd:"" help:"The configuration."`

	Reload configReloadCmd `cmd:"" help:"Have the gateway read its configuration again, as config reload does."`

	Tabletop tabletopCmd `cmd:"" help:"Rehearse an overload: play a scenario on the code that serves production, under virtual time."`
	Capacity capacityCmd `cmd:"" help:"Over or under water? What a workload demands, what a fleet supplies, and what binds."`

	Replay  replayCmd  `cmd:"" help:"Drive a gateway from a trace, open loop, and compare what was served with the ledger. Exits 1 when they differ."`
	Version versionCmd `cmd:"" help:"What this binary is."`
}

// exitPanic unwinds the parser when it wants to exit, after --help.
type exitPanic int

// Run parses and executes one command line and returns its exit code.
func Run(ctx context.Context, env Env) (code int) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case exitPanic:
			code = int(v)
		default:
			panic(v)
		}
	}()
	var r root
	parser, err := kong.New(&r,
		kong.Name("sluice"),
		kong.Description("A token-aware LLM gateway: it turns tenant policy and workload shape into an admitted, routed, observable request.\n\n"+
			"Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found, 4 denied, 5 conflict, 6 degraded, 7 unavailable."),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(code int) { panic(exitPanic(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.Vars{"admin": DefaultAdmin, "profile": capacity.DefaultProfile, "fakelisten": fakellm.DefaultListen, "tokenfile": filepath.Join("sluice-data", TokenFile)},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&env),
	)
	if err != nil {
		panic("cli: " + err.Error()) // the command tree itself is wrong
	}
	command, err := parser.Parse(env.Args)
	if err != nil {
		return wrongUsage(env, err)
	}
	if err := command.Run(ctx, &env); err != nil {
		printError(env.Stderr, err)
		return exitCode(err)
	}
	return exitOK
}

// wrongUsage tells a mistake of the command line and where its help is.
func wrongUsage(env Env, err error) int {
	hint := "see sluice --help"
	if p, ok := errors.AsType[*kong.ParseError](err); ok && p.Context != nil {
		if path := p.Context.Command(); path != "" {
			hint = fmt.Sprintf("see sluice %s --help", commandWords(p.Context))
		}
	}
	sayError(env.Stderr, err.Error(), hint)
	return exitUsage
}

// commandWords is the command without its arguments.
func commandWords(c *kong.Context) string {
	var words []string
	for _, p := range c.Path {
		if p.Command != nil {
			words = append(words, p.Command.Name)
		}
	}
	return strings.Join(words, " ")
}
