package app

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"time"

	"sluice/internal/admin"
	"sluice/internal/catalog"
	"sluice/internal/config"
	"sluice/internal/versions"
)

// reloadState is what the status tells of the last reload.
type reloadState struct {
	at  time.Time
	err error // nil if it succeeded
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
	_, err := a.reload(ctx, admin.Reload{})
	return err
}

func (a *App) reload(ctx context.Context, by admin.Reload) (admin.Reloaded, error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	out, err := a.follow(ctx, by)
	a.reloads.Store(&reloadState{at: time.Now(), err: err})
	a.metrics.Reloaded(err == nil)
	if err != nil {
		a.log.Error("configuration reload failed: nothing has changed", slog.Any("error", err))
		return out, problems(err)
	}
	a.tellInForce(out.Changed)
	return out, nil
}

// follow puts in force what the file says, or, as long as another version is held
// against the file as it is, that one. REQUIRES: reloading is held.
func (a *App) follow(ctx context.Context, by admin.Reload) (admin.Reloaded, error) {
	f, err := a.readFile()
	if err != nil {
		return admin.Reloaded{}, err
	}
	held := a.held.Load()
	holds := held != nil && held.FileHash == f.hash && !by.Follow
	var next *made
	if holds {
		next, err = a.fromContent(held.Version.Content, f)
	} else {
		next, err = a.fromFile(f)
	}
	if err != nil {
		return admin.Reloaded{}, err
	}
	before := a.applied
	if err := a.putInForce(next); err != nil {
		return admin.Reloaded{}, err
	}
	a.followed = f.hash
	out := admin.Reloaded{Version: next.snapshot.Version, Changed: next.snapshot.Version != before.snapshot.Version, Warnings: a.warnings(next)}
	switch {
	case holds:
		out.OffFile = true
		out.Warnings = append(out.Warnings, a.offFile())
	case held != nil:
		out.Warnings = append(out.Warnings, "the file is followed again, in place of "+described(&held.Version)+differing(before.cfg, next.cfg))
		if err := a.release(); err != nil {
			out.Warnings = append(out.Warnings, err.Error())
		}
	}
	if out.Changed || held != nil && !holds {
		a.record(ctx, versions.Version{Hash: next.snapshot.Version, Source: versions.File, Author: by.Author, Reason: by.Reason, Content: next.content})
	}
	if v, ok := a.history.Current(); ok {
		out.Number = v.Number
	}
	return out, nil
}

// putInForce puts a configuration in force, or changes nothing and says why.
// REQUIRES: reloading is held.
func (a *App) putInForce(m *made) error {
	before, next := a.snapshot.Load(), m.snapshot
	a.introduce(limitsOf(before.Table, next.Table)) // those of the records the keeper introduces, before they are in force
	a.keepTargets(before, next)
	// The targets of new backends must be known before the engine grants one, and hooks
	// before a model or a policy names them.
	a.inspector.Use(next.Hooks)
	a.snapshot.Store(next)
	if err := a.gate.Swap(next.Table); err != nil {
		a.snapshot.Store(before)
		a.inspector.Use(before.Hooks)
		return err
	}
	a.pins.Again()
	a.tellFleet()
	a.keeper.Declare(next.Records)
	a.tokens.Use(next.Issuers)
	a.state.Configure(next.State.PerTenant, next.State.Total, next.State.Keep)
	a.desk.Configure(next.Batch)
	a.keys.Configure(next.Keys)
	a.metrics.Declare(next.Table)
	a.metrics.DeclareHooks(next.Hooks)
	a.metrics.DeclareIssuers(next.Issuers)
	a.applied = m
	return nil
}

// warnings is what looks wrong in a configuration, and what of it takes a restart.
func (a *App) warnings(m *made) (out []string) {
	for _, w := range m.snapshot.Warnings {
		out = append(out, w.Error())
	}
	if fixed := m.snapshot.Settings.Fixed(a.settings); len(fixed) > 0 {
		out = append(out, "restart to put in force: "+strings.Join(fixed, ", "))
	}
	return out
}

// record notes a version that has been put in force.
func (a *App) record(ctx context.Context, v versions.Version) versions.Version {
	v.ID, v.At = rand.Text(), time.Now().UTC().Truncate(time.Microsecond)
	if v.Author == "" {
		v.Author = "file:" + v.FileHash
	}
	return a.history.Add(ctx, v)
}

// tellInForce logs what is in force.
func (a *App) tellInForce(changed bool) {
	v, _ := a.history.Current()
	a.log.Info("configuration in force", slog.String("version", a.snapshot.Load().Version), slog.Int64("number", v.Number),
		slog.String("source", string(v.Source)), slog.String("author", v.Author), slog.String("reason", v.Reason), slog.Bool("changed", changed))
	if a.held.Load() != nil {
		a.log.Warn(a.offFile())
	}
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
