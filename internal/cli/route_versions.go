package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"sluice/internal/admin"
)

const versionsPath = "/admin/v1/versions"

type routeVersionsCmd struct {
	Version string `arg:"" optional:"" help:"Its number, at least six digits of its hash, current or previous: shows it with its text."`
	Before  int64  `help:"Only versions with a smaller number." placeholder:"N"`
	Limit   int    `default:"20" help:"Most versions (${default})." placeholder:"N"`
	connection
	output
}

// Run lists versions, or shows one.
func (c *routeVersionsCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.Version != "" {
		return c.one(ctx, api, env)
	}
	q := url.Values{"limit": {count(c.Limit)}}
	if c.Before > 0 {
		q.Set("before", count(c.Before))
	}
	var list admin.VersionList
	if err := api.get(ctx, versionsPath, q, &list); err != nil {
		return err
	}
	for _, w := range []string{list.OffFile, list.Partial} {
		if w != "" {
			warn(env, []string{w})
		}
	}
	v := view{data: list, columns: []string{"version", "hash", "at", "source", "author", "reason"}}
	for i := range list.Versions {
		e := &list.Versions[i]
		number := "?"
		if e.Number > 0 {
			number = count(e.Number)
		}
		v.rows = append(v.rows, []string{number, e.Hash, stamp(e.At), sourceText(e), e.Author, e.Reason})
	}
	return c.print(env.Stdout, v)
}

// sourceText is how a version came to be in force.
func sourceText(v *admin.Version) string {
	if v.Of > 0 {
		return fmt.Sprintf("%s to %d", v.Source, v.Of)
	}
	return v.Source
}

func (c *routeVersionsCmd) one(ctx context.Context, api *client, env *Env) error {
	var v admin.VersionText
	if err := api.get(ctx, versionsPath+"/"+seg(c.Version), nil, &v); err != nil {
		return err
	}
	number := ""
	if v.Number > 0 {
		number = count(v.Number)
	}
	rows := pairs("version", number, "hash", v.Hash, "at", stamp(v.At), "source", sourceText(&v.Version), "author", v.Author, "reason", v.Reason,
		"file", v.File, "file hash", v.FileHash, "changes", string(v.Changes), "text", v.Text)
	return c.print(env.Stdout, view{data: v, columns: fieldColumns, rows: rows, text: versionText(&v)})
}

// versionText is a version for eyes: who and why as comments above its text.
func versionText(v *admin.VersionText) string {
	s := fmt.Sprintf("# %s, %s of %s by %s at %s\n", versionName(&v.Version), sourceText(&v.Version), v.File, v.Author, stamp(v.At))
	if v.Reason != "" {
		s += "# " + v.Reason + "\n"
	}
	if len(v.Changes) > 0 {
		s += "# changed on top of the text: " + string(v.Changes) + "\n"
	}
	if v.Text == "" {
		s += "# its text was not kept, since a secret stands in it in a way that hides where it ends\n"
	}
	return plain(s + v.Text)
}

type routeDiffCmd struct {
	From string `arg:"" optional:"" help:"Number, digits of the hash, current, previous, or file for what the file says now; previous if left out."`
	To   string `arg:"" optional:"" help:"Likewise; current if left out."`
	connection
	output
}

// Run compares two versions.
func (c *routeDiffCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := url.Values{}
	if c.From != "" {
		q.Set("from", c.From)
	}
	if c.To != "" {
		q.Set("to", c.To)
	}
	var d admin.Comparison
	if err := api.get(ctx, versionsPath+"/diff", q, &d); err != nil {
		return err
	}
	text := fmt.Sprintf("from %s to %s\n", d.From, d.To) + differenceText(d.Differences)
	return c.print(env.Stdout, view{data: d, columns: differenceColumns, rows: differenceRows(d.Differences), text: text})
}

type routeRollbackCmd struct {
	Version string `arg:"" optional:"" help:"Number or digits of the hash; the one before the one in force if left out."`
	by
	dryRun
	connection
	output
}

// Run rolls back.
func (c *routeRollbackCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		Version string `json:"version,omitempty"`
		admin.By
	}{c.Version, c.body()}
	r, err := change[admin.Changed](ctx, &c.connection, request{http.MethodPost, versionsPath + "/rollback", c.DryRun, body})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "rolled back: %s is in force", versionName(&r.Version))
	return printChanged(env, c.output, &r)
}
