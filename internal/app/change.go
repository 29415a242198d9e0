package app

import (
	"context"
	"fmt"
	"log/slog"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/config"
	"sluice/internal/versions"
)

// conflict is an error of an operator's change, with its fix.
func conflict(msg, hint string) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Msg: msg, Hint: hint}
}

// rollback puts an earlier version in force again; the one before if ref is empty.
func (a *App) rollback(ctx context.Context, ref string, by admin.Change) (admin.Changed, error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	target, err := a.find(ctx, ref, previous)
	if err != nil {
		return admin.Changed{}, err
	}
	now, _ := a.readFile() // what cannot be read is no file that is gone back to
	next, err := a.fromContent(target.Content, now)
	if err != nil {
		return admin.Changed{}, problems(err)
	}
	if next.snapshot.Version == a.applied.snapshot.Version {
		return admin.Changed{}, conflict(fmt.Sprintf("%s means what is in force", described(&target)), "name another: sluice route versions lists them")
	}
	v := versions.Version{Hash: next.snapshot.Version, Source: versions.Rollback, Of: target.Number, Author: by.Author, Reason: by.Reason, Content: next.content}
	out, err := a.change(ctx, next, v, by.Dry)
	if err == nil && next.snapshot.Version != target.Hash {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the text of version %s means something else than it did then, since a variable or this binary is another: it is %s now", target.Hash, next.snapshot.Version))
	}
	return out, err
}

// setRoutes changes routing of what is in force, in one step.
func (a *App) setRoutes(ctx context.Context, c admin.RouteChange, by admin.Change) (admin.Changed, error) {
	over, err := changesOf(&c)
	if err != nil {
		return admin.Changed{}, err
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	content := a.applied.content
	have, err := config.ParseChanges(content.Changes)
	if err != nil {
		return admin.Changed{}, err
	}
	if content.Changes, err = have.With(over).JSON(); err != nil {
		return admin.Changed{}, err
	}
	now, _ := a.readFile()
	next, err := a.fromContent(content, now)
	if err != nil {
		return admin.Changed{}, problems(err)
	}
	if next.snapshot.Version == a.applied.snapshot.Version {
		return admin.Changed{}, conflict("that is in force already", "see what is with sluice route list")
	}
	v := versions.Version{Hash: next.snapshot.Version, Source: versions.API, Author: by.Author, Reason: by.Reason, Content: content}
	return a.change(ctx, next, v, by.Dry)
}

// change puts what an operator asked for in force, remembers it over a restart, and
// tells what is different. The file is followed again where it says just that.
// REQUIRES: reloading is held.
func (a *App) change(ctx context.Context, next *made, v versions.Version, dry bool) (admin.Changed, error) {
	found, err := config.Diff(a.applied.cfg, next.cfg)
	if err != nil {
		return admin.Changed{}, err
	}
	out := admin.Changed{Before: a.applied.snapshot.Version, Differences: differences(found), Warnings: a.warnings(next), DryRun: dry}
	if dry {
		v.Author = orFile(v.Author, v.FileHash)
		out.Version = versionView(&v)
		return out, nil
	}
	if err := a.putInForce(next); err != nil {
		return admin.Changed{}, err
	}
	v = a.record(ctx, v)
	out.Version = versionView(&v)
	if v.Number == 0 {
		out.Warnings = append(out.Warnings, "the store does not answer: the version is in force, and is recorded once it does")
	}
	if v.Changes == "" && v.FileHash == a.followed {
		err = a.release()
	} else {
		err = a.hold(v)
		out.OffFile = a.offFile()
	}
	if err != nil {
		out.Warnings = append(out.Warnings, err.Error())
		a.log.Error(err.Error())
	}
	a.tellInForce(true)
	return out, nil
}

func orFile(author, hash string) string {
	if author == "" {
		return "file:" + hash
	}
	return author
}

// changesOf is a change of the API in the words of the configuration.
func changesOf(c *admin.RouteChange) (*config.Changes, error) {
	out := &config.Changes{Models: make(map[string]*config.ModelChange), Backends: make(map[string]*config.BackendChange)}
	for name, m := range c.Models {
		change := &config.ModelChange{Pools: make(map[string]*config.PoolChange)}
		for pool, p := range m.Pools {
			to := &config.PoolChange{}
			if p.Weight != nil {
				w := config.Count(*p.Weight)
				to.Weight = &w
			}
			if p.Canary != nil {
				to.Canary = new(config.Percent)
				if err := to.Canary.UnmarshalText([]byte(*p.Canary)); err != nil {
					return nil, sluice.Invalid("models."+name+".pools."+pool+".canary", "is not a share: write a whole number from 0%% to 100%%")
				}
			}
			change.Pools[pool] = to
		}
		if m.Sticky != nil {
			s := config.Sticky(*m.Sticky)
			change.Sticky = &s
		}
		if m.MaxSpend != nil {
			change.MaxSpend = new(config.Money)
			if err := change.MaxSpend.UnmarshalText([]byte(*m.MaxSpend)); err != nil {
				return nil, sluice.Invalid("models."+name+".max_spend", "is not an amount: write dollars such as $0.05, or $0 for no bound")
			}
		}
		fallback, err := fallbackOf(name, m.Fallback)
		if err != nil {
			return nil, err
		}
		change.Fallback = fallback
		out.Models[name] = change
	}
	for name, b := range c.Backends {
		if b.Weight != nil && b.Reset {
			return nil, sluice.Invalid("backends."+name, "has both a weight and reset: use one of them")
		}
		out.Backends[name] = &config.BackendChange{Weight: b.Weight, Reset: b.Reset}
	}
	return out, nil
}

// fallbackOf is a model's fallbacks in the words of the configuration; nil leaves them.
func fallbackOf(model string, list *[]admin.RouteFallback) (*[]config.Fallback, error) {
	if list == nil {
		return nil, nil
	}
	out := make([]config.Fallback, 0, len(*list))
	for i, f := range *list {
		to := config.Fallback{Pool: f.Pool, AllowUnevaluated: f.AllowUnevaluated}
		if e := f.Evaluated; e != nil {
			to.Evaluated = &config.Evaluated{Suite: e.Suite, Score: e.Score}
			if err := to.Evaluated.Date.UnmarshalText([]byte(e.Date)); err != nil {
				return nil, sluice.Invalid(fmt.Sprintf("models.%s.fallback[%d].evaluated.date", model, i), "is not a day: write one such as 2026-11-01")
			}
		}
		out = append(out, to)
	}
	return &out, nil
}

// Words that name a version beside its number and its hash.
const (
	current  = "current"  // the one in force
	previous = "previous" // the one that was before it
	onDisk   = "file"     // what the file says now, in force or not
)

// find is a version by name, fallback if the name is empty. What the file says is no
// version: see configOf.
func (a *App) find(ctx context.Context, name, fallback string) (versions.Version, error) {
	if name == "" {
		name = fallback
	}
	switch name {
	case current:
		if v, ok := a.history.Current(); ok {
			return v, nil
		}
		return versions.Version{}, versions.Missing(versions.Ref{Hash: current})
	case previous:
		return a.history.Previous(ctx)
	}
	ref, err := versions.ParseRef(name)
	if err != nil {
		return versions.Version{}, err
	}
	return a.history.Find(ctx, ref)
}

// compare tells in what two versions differ.
func (a *App) compare(ctx context.Context, from, to string) (admin.Comparison, error) {
	was, a1, err := a.configOf(ctx, from, previous)
	if err != nil {
		return admin.Comparison{}, problems(err)
	}
	is, b1, err := a.configOf(ctx, to, current)
	if err != nil {
		return admin.Comparison{}, problems(err)
	}
	found, err := config.Diff(was, is)
	if err != nil {
		return admin.Comparison{}, err
	}
	return admin.Comparison{From: a1, To: b1, Differences: differences(found)}, nil
}

// configOf is the configuration of a version, to be compared: a secret that is gone
// stands for itself.
func (a *App) configOf(ctx context.Context, name, fallback string) (*config.Config, string, error) {
	if name == "" {
		name = fallback
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	now, err := a.readFile()
	switch {
	case name == current:
		return a.applied.cfg, a.applied.snapshot.Version, nil
	case name == onDisk && err != nil:
		return nil, "", err
	case name == onDisk:
		m, err := a.fromFile(now)
		if err != nil {
			return nil, "", err
		}
		return m.cfg, m.snapshot.Version, nil
	}
	v, err := a.find(ctx, name, "")
	if err != nil {
		return nil, "", err
	}
	text, err := textOf(v.Content, now)
	if err != nil {
		return nil, "", err
	}
	changes, err := config.ParseChanges(v.Changes)
	if err != nil {
		return nil, "", err
	}
	env, err := a.variables()
	if err != nil {
		return nil, "", err
	}
	cfg, err := config.ParseWith(nameOf(v.Content, now), text, config.ParseOptions{Env: env, Changes: changes, Unmarked: true})
	if err != nil {
		return nil, "", err
	}
	a.override(cfg)
	return cfg, v.Hash, nil
}

func differences(found []config.Difference) []admin.Difference {
	out := make([]admin.Difference, len(found))
	for i, d := range found {
		out[i] = admin.Difference{Area: d.Area, Path: d.Path, Was: d.Was, Now: d.Now}
	}
	return out
}

// listVersions is a page of what has been in force.
func (a *App) listVersions(ctx context.Context, before int64, limit int) (admin.VersionList, error) {
	page, partial := a.history.List(ctx, before, limit)
	out := admin.VersionList{Versions: make([]admin.Version, len(page)), OffFile: a.offFile()}
	for i := range page {
		out.Versions[i] = versionView(&page[i])
	}
	if partial != nil {
		a.log.Warn("the history of the configuration cannot be read", slog.Any("error", partial))
		out.Partial = "the store does not answer: these are the versions that this process remembers"
	}
	out.Current = a.snapshot.Load().Version
	return out, nil
}

// showVersion is one version, with what it was made of.
func (a *App) showVersion(ctx context.Context, name string) (admin.VersionText, error) {
	v, err := a.find(ctx, name, current)
	if err != nil {
		return admin.VersionText{}, err
	}
	return admin.VersionText{Version: versionView(&v), Text: v.Text, Changes: []byte(v.Changes)}, nil
}

func versionView(v *versions.Version) admin.Version {
	out := admin.Version{Number: v.Number, Hash: v.Hash, Author: v.Author, Reason: v.Reason, Source: string(v.Source), Of: v.Of, File: v.File, FileHash: v.FileHash}
	if !v.At.IsZero() {
		out.At = &v.At
	}
	return out
}
