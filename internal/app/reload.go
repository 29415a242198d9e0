package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"sluice/internal/admin"
	"sluice/internal/catalog"
	"sluice/internal/config"
)

// reloadState is what the status tells of the last reload.
type reloadState struct {
	at  time.Time
	err error // nil if it succeeded
}

// read reads and compiles the configuration. It touches nothing but the fleet
// that is simulated in this process, which the first configuration that asks for
// it starts.
func (a *App) read() (*config.Snapshot, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, err
	}
	if a.o.Listen != "" {
		cfg.Listen = config.Address(a.o.Listen)
	}
	if a.o.AdminListen != "" {
		cfg.Admin.Listen = config.Address(a.o.AdminListen)
	}
	if a.o.Data != "" {
		cfg.Data = a.o.Data
	}
	if a.prices == nil { // it is that of the binary: it does not change
		if a.prices, err = catalog.Load(); err != nil {
			return nil, err
		}
	}
	o := config.CompileOptions{Lookup: known(a.prices), Hasher: a.hasher}
	if simulates(cfg) {
		if o.SimulatedURL, err = a.simulate(); err != nil {
			return nil, err
		}
	}
	return config.Compile(cfg, o)
}

func (a *App) load() (*config.Config, error) {
	if a.o.ConfigPath != "" {
		return config.Load(a.o.ConfigPath, a.o.Getenv)
	}
	key, err := a.developmentKey()
	if err != nil {
		return nil, err
	}
	return config.Demo(config.DemoOptions{Key: key, Data: a.o.Data, Env: a.o.Getenv})
}

// known looks models up in the catalogue for the configuration.
func known(c *catalog.Catalog) func(provider, model string) (config.Known, bool) {
	return func(provider, model string) (config.Known, bool) {
		e, ok := c.Lookup(provider, model, time.Now())
		return config.Known{Price: e.Price, Context: e.Context, MaxOutput: e.MaxOutput, Lacks: e.Lacks}, ok
	}
}

// Reload reads the configuration again. On an error, which for a bad file is
// config.Problems, nothing has changed.
func (a *App) Reload(ctx context.Context) error {
	_, err := a.reload(ctx)
	return err
}

func (a *App) reload(context.Context) (admin.Reloaded, error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	out, err := a.swap()
	a.reloads.Store(&reloadState{at: time.Now(), err: err})
	a.metrics.Reloaded(err == nil)
	if err != nil {
		a.log.Error("configuration reload failed: nothing has changed", slog.Any("error", err))
		return out, problems(err)
	}
	a.log.Info("configuration in force", slog.String("version", out.Version), slog.Bool("changed", out.Changed))
	return out, nil
}

// swap does what can fail first, and then puts the snapshot in force.
func (a *App) swap() (admin.Reloaded, error) {
	next, err := a.read()
	if err != nil {
		return admin.Reloaded{}, err
	}
	before := a.snapshot.Load()
	a.keepTargets(before, next)
	// The targets of new backends must be known before the engine grants one.
	a.snapshot.Store(next)
	if err := a.gate.Swap(next.Table); err != nil {
		a.snapshot.Store(before)
		return admin.Reloaded{}, err
	}
	a.tellFleet()
	a.keeper.Declare(next.Records)
	a.metrics.Declare(next.Table)

	out := admin.Reloaded{Version: next.Version, Changed: next.Version != before.Version}
	for _, w := range next.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	if fixed := next.Settings.Fixed(a.settings); len(fixed) > 0 {
		out.Warnings = append(out.Warnings, "restart to put in force: "+strings.Join(fixed, ", "))
	}
	return out, nil
}

// keepTarget is how long a target outlives its backend. It is needed between the
// grant of a place and the look-up, for requests that are granted one just before
// a reload takes the backend away.
const keepTarget = time.Minute

// keepTargets takes the targets of backends that are gone over into a snapshot
// that is not in force yet.
func (a *App) keepTargets(before, next *config.Snapshot) {
	now := time.Now()
	for id := range next.Targets {
		delete(a.retired, id)
	}
	for id, t := range before.Targets {
		if _, stays := next.Targets[id]; stays {
			continue
		}
		since, known := a.retired[id]
		if !known {
			since = now
			a.retired[id] = now
		}
		if now.Sub(since) < keepTarget {
			next.Targets[id] = t
		} else {
			delete(a.retired, id)
		}
	}
}

// problemList carries a configuration's problems to the admin API.
type problemList struct{ config.Problems }

// Details implements admin.Problems.
func (p problemList) Details() []admin.ProblemDetail {
	out := make([]admin.ProblemDetail, len(p.Problems))
	for i, q := range p.Problems {
		message := q.Cause
		if q.Fix != "" {
			message += ": " + q.Fix
		}
		out[i] = admin.ProblemDetail{Message: message, Location: q.Where()}
	}
	return out
}

func problems(err error) error {
	if ps, ok := errors.AsType[config.Problems](err); ok {
		return problemList{ps}
	}
	return err
}
