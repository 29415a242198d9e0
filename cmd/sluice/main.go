// Command sluice is a token-aware LLM gateway. See package cli.
package main

import (
	"context"
	"os"

	"sluice/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), cli.Env{
		Program: os.Args[0], Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.LookupEnv,
	}))
}
