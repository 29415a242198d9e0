package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/auth"
	"sluice/internal/config"
	"sluice/internal/dryrun"
	"sluice/internal/ledger"
	"sluice/internal/versions"
)

// Defaults of a dry run.
const (
	dryRunSince = time.Hour
	dryRunLimit = 1000
)

// dryRun tells what would have become of recent requests under another version.
func (a *App) dryRun(ctx context.Context, q admin.DryRunQuery) (admin.DryRun, error) {
	since := dryRunSince
	if q.Since != "" {
		d, err := time.ParseDuration(q.Since)
		if err != nil || d <= 0 {
			return admin.DryRun{}, sluice.Invalid("since", "is not a duration such as 1h")
		}
		since = d
	}
	if (q.Version == "") == (q.Text == "") {
		return admin.DryRun{}, sluice.Invalid("version", "and text: one of them is needed, and not both")
	}
	out := admin.DryRun{Since: time.Now().Add(-since).UTC()}
	now, then, err := a.both(ctx, q)
	if err != nil {
		return admin.DryRun{}, problems(err)
	}
	out.From, out.To = now.Version, then.snapshot.Version
	if err := a.journal.Flush(ctx); err != nil { // what has just ended counts too
		return admin.DryRun{}, err
	}
	asked, more, err := a.recent(ctx, out.Since, cmp.Or(q.Limit, dryRunLimit))
	if err != nil {
		return admin.DryRun{}, err
	}
	stored, err := a.store.Load(ctx)
	if err != nil {
		return admin.DryRun{}, err
	}
	out.More = more
	report := dryrun.Run(a.side(now, stored), a.side(then.snapshot, stored), asked)
	// A text that is only tried must not tell what the process's variables hold.
	text, err := json.Marshal(report)
	if err != nil {
		return admin.DryRun{}, err
	}
	return out, json.Unmarshal([]byte(then.cfg.Conceal(string(text))), &out.Report)
}

// both are the snapshot in force and the one that is asked for.
func (a *App) both(ctx context.Context, q admin.DryRunQuery) (now *config.Snapshot, then *made, err error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	f, err := a.readFile()
	switch {
	case q.Text != "":
		then, err = a.fromFile(file{"the text", []byte(q.Text), versions.HashOf([]byte(q.Text))})
	case q.Version == onDisk && err == nil:
		then, err = a.fromFile(f)
	case q.Version != onDisk:
		var v versions.Version
		if v, err = a.find(ctx, q.Version, ""); err == nil {
			then, err = a.fromContent(v.Content, f)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return a.applied.snapshot, then, nil
}

// side is a snapshot with the callers that it and the store know.
func (a *App) side(s *config.Snapshot, stored auth.Records) dryrun.Side {
	keys := auth.Compile(auth.CompileOptions{Hasher: *a.hasher}, s.Records, stored)
	return dryrun.Side{Table: s.Table, Principal: keys.Principal}
}

// recent are the newest requests since a moment, oldest first.
func (a *App) recent(ctx context.Context, since time.Time, limit int) (asked []dryrun.Asked, more bool, err error) {
	db, err := a.store.get()
	if err != nil {
		return nil, false, err
	}
	q := ledger.RecentQuery{Owner: ledger.Everyone(), Since: since, Detail: true}
	for {
		q.Limit = min(limit-len(asked), ledger.MaxRecent)
		page, err := db.Recent(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Entries {
			asked = append(asked, dryrun.Asked{Entry: page.Entries[i], Took: page.Whole[i].Usage})
		}
		if q.Before = page.Next; q.Before.IsZero() || len(asked) == limit {
			slices.Reverse(asked)
			return asked, !q.Before.IsZero(), nil
		}
	}
}
