package cli

import (
	"context"
	"time"

	"sluice/internal/app"
	"sluice/internal/catalog"
	"sluice/internal/config"
)

// openGateway builds the gateway of a configuration file, or of none.
func openGateway(ctx context.Context, env *Env, c *serveCmd) (gateway, error) {
	return app.New(ctx, app.Options{
		ConfigPath: c.Config, Getenv: env.Getenv, Stdout: env.Stdout, Stderr: env.Stderr,
		Program: env.Program, Listen: c.Listen, AdminListen: c.AdminListen, Data: c.Data,
	})
}

// priceLookup finds models in the built-in catalogue.
func priceLookup() (func(provider, model string) (config.Known, bool), error) {
	prices, err := catalog.Load()
	if err != nil {
		return nil, err
	}
	return func(provider, model string) (config.Known, bool) {
		e, ok := prices.Lookup(provider, model, time.Now())
		return config.Known{Price: e.Price, Context: e.Context, MaxOutput: e.MaxOutput, Lacks: e.Lacks}, ok
	}, nil
}
