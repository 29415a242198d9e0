package app

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/config"
	"sluice/internal/versions"
)

// startWith is the configuration that a process starts with: what the file says, or the
// version that is held against the file as it is. ended is a hold that the file, which
// has changed since, has ended.
func (a *App) startWith() (m *made, held, ended *versions.Held, err error) {
	f, err := a.readFile()
	if err != nil {
		return nil, nil, nil, err
	}
	if m, err = a.fromFile(f); err != nil {
		return nil, nil, nil, err
	}
	a.markKey = m.snapshot.Settings.Pepper
	if m, err = a.fromFile(f); err != nil { // with the key of its marks
		return nil, nil, nil, err
	}
	a.followed = f.hash
	held, err = versions.ReadHeld(m.snapshot.Settings.Data)
	switch {
	case err != nil:
		return nil, nil, nil, fmt.Errorf("%w\n    fix: remove it to start with what the file says", err)
	case held == nil:
		return m, nil, nil, nil
	case held.FileHash != f.hash:
		return m, nil, held, nil
	}
	out, err := a.fromContent(held.Version.Content, f)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("start with %s, which is held against %s: %w\n    fix: change the file, which ends the hold, or remove %s to start with what the file says",
			described(&held.Version), f.name, err, versions.HeldPath(m.snapshot.Settings.Data))
	}
	return out, held, nil, nil
}

// begin records what the process has started with. ended is a hold that the file has
// ended, nil if there is none.
func (a *App) begin(ctx context.Context, ended *versions.Held) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if ended != nil {
		a.log.Warn("the file has changed: it is followed again, in place of " + described(&ended.Version))
		if err := a.release(); err != nil {
			a.log.Error(err.Error())
		}
	}
	if held := a.held.Load(); held != nil {
		a.history.Add(ctx, held.Version)
	} else {
		a.record(ctx, versions.Version{Hash: a.applied.snapshot.Version, Source: versions.File, Content: a.applied.content})
	}
	a.tellInForce(false)
}

// hold keeps a version in force against the file as it was read last: one that has been
// changed since is followed by the next reload. On an error it does so until the process
// ends. REQUIRES: reloading is held.
func (a *App) hold(v versions.Version) error {
	h := &versions.Held{FileHash: a.followed, Version: v}
	a.held.Store(h)
	if err := h.Keep(a.settings.Data); err != nil {
		return fmt.Errorf("a restart will forget that the file is not in force: %w", err)
	}
	return nil
}

// release has the file followed again. REQUIRES: reloading is held.
func (a *App) release() error {
	a.held.Store(nil)
	if err := versions.Forget(a.settings.Data); err != nil {
		return fmt.Errorf("a restart would hold the earlier version again: %w", err)
	}
	return nil
}

// offFile says that the file is not in force; empty where it is.
func (a *App) offFile() string {
	h := a.held.Load()
	if h == nil {
		return ""
	}
	v := h.Version
	if now, ok := a.history.Current(); ok && now.ID == v.ID {
		v = now // with its number
	}
	return fmt.Sprintf("the file on disk is not in force, but %s; a change of the file ends that, and so does sluice reload --follow", described(&v))
}

// described names a version in a sentence.
func described(v *versions.Version) string {
	name := "version " + v.Hash
	if v.Number > 0 {
		name = fmt.Sprintf("version %d (%s)", v.Number, v.Hash)
	}
	what := "read"
	switch {
	case v.Source == versions.Rollback && v.Of > 0:
		what = fmt.Sprintf("a rollback to version %d", v.Of)
	case v.Source == versions.Rollback:
		what = "a rollback"
	case v.Source == versions.API:
		what = "a change of routes"
	}
	s := fmt.Sprintf("%s, %s by %s at %s", name, what, v.Author, v.At.Format(time.RFC3339))
	if v.Reason != "" {
		s += fmt.Sprintf(" (%s)", v.Reason)
	}
	return s
}

// differing counts in what two configurations differ, for a warning.
func differing(was, now *config.Config) string {
	found, err := config.Diff(was, now)
	switch {
	case err != nil || len(found) == 0:
		return "; it means the same"
	case len(found) == 1:
		return fmt.Sprintf("; %s has changed", found[0].Path)
	}
	return fmt.Sprintf("; %d values have changed, such as %s: see sluice route diff previous", len(found), found[0].Path)
}
