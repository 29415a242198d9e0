package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"sluice"
	"sluice/internal/admin"
)

type routeDryRunCmd struct {
	What  string        `arg:"" help:"A configuration file, or a version: number, digits of the hash, previous, or file for what the gateway's file says now."`
	Since time.Duration `default:"1h" help:"How far back to look for requests (${default})." placeholder:"D"`
	Limit int           `default:"1000" help:"Most requests, the newest (${default})." placeholder:"N"`
	connection
	output
}

// Run asks what would have become of recent requests. What is the name of a file where
// there is one of that name.
func (c *routeDryRunCmd) Run(ctx context.Context, env *Env) error {
	q := admin.DryRunQuery{Version: c.What, Since: c.Since.String(), Limit: c.Limit}
	if text, err := os.ReadFile(c.What); err == nil {
		q.Version, q.Text = "", string(text)
	} else if strings.ContainsAny(c.What, "./") {
		return &codedError{code: exitUsage, msg: err.Error(), hint: "name a file, or a version: sluice route versions lists them"}
	}
	r, err := change[admin.DryRun](ctx, &c.connection, request{http.MethodPost, versionsPath + "/dry-run", false, q})
	if err != nil {
		return err
	}
	v := view{data: r, columns: []string{"tenant", "model", "requests", "moved", "refused", "admitted", "cost now", "cost then", "example"}}
	for _, g := range r.Groups {
		example := ""
		if len(g.Examples) > 0 {
			example = g.Examples[0]
		}
		v.rows = append(v.rows, []string{g.Tenant, g.Model, count(g.Requests), count(g.Moved), count(g.Refused), count(g.Admitted), g.CostNow.String(), g.CostThen.String(), example})
	}
	if c.Output == "table" {
		if v.text, err = dryRunText(&r, v); err != nil {
			return err
		}
	}
	return c.print(env.Stdout, v)
}

// dryRunText is the figures, the table, and from where to where.
func dryRunText(r *admin.DryRun, v view) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s since %s, %s → %s: %d the same, %d elsewhere, %d refused, %d admitted\n",
		plural(r.Requests, "request"), r.Since.Format(time.RFC3339), r.From, r.To, r.Same, r.Moved, r.Refused, r.Admitted)
	fmt.Fprintf(&b, "cost of what both serve: %s → %s\n", r.CostNow, sluice.Nano(r.CostThen))
	if r.Unknown > 0 {
		fmt.Fprintf(&b, "%s left out: the ledger lacks what their routing depended on\n", plural(r.Unknown, "request"))
	}
	if r.More {
		b.WriteString("there are older ones: --limit N\n")
	}
	for _, m := range r.Moves {
		fmt.Fprintf(&b, "  %s: %s → %s, %s, such as %s\n", m.Model, m.From, m.To, plural(m.Requests, "request"), m.Examples[0])
	}
	for _, x := range r.Refusals {
		fmt.Fprintf(&b, "  %s: refused %s, %s, such as %s: %s\n", x.Model, x.Reason, plural(x.Requests, "request"), x.Examples[0], x.Message)
	}
	if len(v.rows) == 0 {
		return plain(b.String()), nil
	}
	b.WriteString("\n")
	err := table(&b, v)
	return plain(b.String()), err
}
