package cli

import (
	"context"
	"net/url"
	"strings"

	"sluice/internal/admin"
)

// filters are the flags that restrict usage and request lists.
type filters struct {
	Tenant   string `help:"Of one tenant." placeholder:"ID"`
	Project  string `help:"Of one project." placeholder:"ID"`
	Key      string `help:"Of one key, by its public id." placeholder:"ID"`
	User     string `help:"Of one end user." placeholder:"LABEL"`
	Task     string `help:"Of one task." placeholder:"LABEL"`
	Model    string `help:"Of one public model." placeholder:"MODEL"`
	Backend  string `help:"Of one backend." placeholder:"ID"`
	Provider string `help:"Of one provider." placeholder:"ID"`
	Class    string `help:"Of one class: interactive, standard or batch." placeholder:"CLASS"`
	Outcome  string `help:"Of one outcome: completed, failed, cancelled, rejected or expired." placeholder:"OUTCOME"`
	Reason   string `help:"Of one reason, such as rate_limited." placeholder:"REASON"`
}

func (f *filters) query() url.Values {
	q := url.Values{}
	for _, p := range [...][2]string{
		{"tenant", f.Tenant},
		{"project", f.Project},
		{"key", f.Key},
		{"user", f.User},
		{"task", f.Task},
		{"model", f.Model},
		{"backend", f.Backend},
		{"provider", f.Provider},
		{"class", f.Class},
		{"outcome", f.Outcome},
		{"reason", f.Reason},
	} {
		if p[1] != "" {
			q.Set(p[0], p[1])
		}
	}
	return q
}

type usageCmd struct {
	By    []string `default:"tenant" help:"Dimensions to group by, comma-separated: tenant, project, key, user, task, model, backend, provider, class, outcome, reason, hour, day, label:NAME (${default})." placeholder:"DIM"`
	Since string   `default:"24h" help:"A duration ago, a date, or RFC 3339 (${default}); answered in full hours." placeholder:"WHEN"`
	Until string   `help:"Exclusive (default: now)." placeholder:"WHEN"`
	Limit int      `help:"Most rows."`

	Shadow bool `help:"What shadows used: copies of requests, which are in no other usage."`
	filters
	connection
	output
}

// Run prints usage.
func (c *usageCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := c.query()
	q.Set("by", strings.Join(c.By, ","))
	q.Set("since", c.Since)
	if c.Until != "" {
		q.Set("until", c.Until)
	}
	if c.Limit > 0 {
		q.Set("limit", count(c.Limit))
	}
	if c.Shadow {
		q.Set("shadow", "true")
	}
	var u admin.Usage
	if err := api.get(ctx, "/admin/v1/usage", q, &u); err != nil {
		return err
	}
	return c.print(env.Stdout, c.view(&u))
}

// view makes rows of all figures for csv, and of those that matter to a reader
// for a table.
func (c *usageCmd) view(u *admin.Usage) view {
	v := view{data: u, columns: append([]string{}, u.By...)}
	cells := usageCells
	if c.Output == "csv" {
		cells = append(cells[:len(cells):len(cells)], usageMore...)
	}
	for _, cell := range cells {
		v.columns = append(v.columns, cell.name)
	}
	row := func(group []string, f *admin.Figures) []string {
		for _, cell := range cells {
			group = append(group, cell.of(f))
		}
		return group
	}
	for i := range u.Rows {
		group := make([]string, 0, len(v.columns))
		for _, d := range u.By {
			group = append(group, u.Rows[i].Group[d])
		}
		v.rows = append(v.rows, row(group, &u.Rows[i].Figures))
	}
	if len(u.Rows) > 1 {
		group := make([]string, len(u.By), len(v.columns))
		if len(group) > 0 {
			group[0] = "total"
		}
		v.foot = row(group, &u.Total)
	}
	return v
}

// usageCell is one column of usage.
type usageCell struct {
	name string
	of   func(*admin.Figures) string
}

var usageCells = []usageCell{
	{"requests", func(f *admin.Figures) string { return count(f.Requests) }},
	{"attempts", func(f *admin.Figures) string { return count(f.Attempts) }},
	{"input", func(f *admin.Figures) string { return count(f.Input) }},
	{"cache_read", func(f *admin.Figures) string { return count(f.CacheRead) }},
	{"cache_write", func(f *admin.Figures) string { return count(f.CacheWrite) }},
	{"output", func(f *admin.Figures) string { return count(f.Output) }},
	{"reasoning", func(f *admin.Figures) string { return count(f.Reasoning) }},
	{"estimated", func(f *admin.Figures) string { return count(f.Estimated) }},
	{"cost", func(f *admin.Figures) string { return f.Cost }},
}

var usageMore = []usageCell{
	{"cost_nanodollars", func(f *admin.Figures) string { return count(f.CostNanodollars) }},
	{"audio_input", func(f *admin.Figures) string { return count(f.AudioInput) }},
	{"audio_output", func(f *admin.Figures) string { return count(f.AudioOutput) }},
	{"tool_calls", func(f *admin.Figures) string { return count(f.ToolCalls) }},
	{"web_searches", func(f *admin.Figures) string { return count(f.WebSearches) }},
	{"units", func(f *admin.Figures) string { return count(f.Units) }},
	{"anomalous", func(f *admin.Figures) string { return count(f.Anomalous) }},
	{"late", func(f *admin.Figures) string { return count(f.Late) }},
}

type requestCmd struct {
	List requestListCmd `cmd:"" help:"List requests that have ended, newest first."`
}

type requestListCmd struct {
	Limit int    `default:"50" help:"Most requests, at most 500 (${default})."`
	After string `help:"Go on where a page ended: what it said in next." placeholder:"CURSOR"`
	filters
	connection
	output
}

// Run lists requests.
func (c *requestListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := c.query()
	q.Set("limit", count(c.Limit))
	if c.After != "" {
		q.Set("after", c.After)
	}
	var page struct {
		Requests []admin.Request `json:"requests"`
		Next     string          `json:"next,omitempty"`
	}
	if err := api.get(ctx, "/admin/v1/requests", q, &page); err != nil {
		return err
	}
	v := view{data: page, columns: []string{"request", "at", "tenant", "key", "model", "backend", "outcome", "reason", "status", "input", "output", "cost", "queued", "first", "took"}}
	for i := range page.Requests {
		r := &page.Requests[i]
		v.rows = append(v.rows, []string{
			r.ID, stamp(&r.At), r.Tenant, r.Key, r.Model, r.Backend, r.Outcome, r.Reason, count(r.Status),
			count(r.Input), count(r.Output), r.Cost, span(r.QueuedSeconds), span(r.FirstSeconds), span(r.Seconds),
		})
	}
	if err := c.print(env.Stdout, v); err != nil {
		return err
	}
	if page.Next != "" {
		sayMore(env, page.Next)
	}
	return nil
}
