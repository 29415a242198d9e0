package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sluice/internal/admin"
)

const batchesPath = "/admin/v1/batches"

type batchCmd struct {
	List   batchListCmd   `cmd:"" help:"List batches and requests that are answered later: how far each is, and when it will be done."`
	Show   batchShowCmd   `cmd:"" help:"One batch, and which of its lines went wrong."`
	Cancel batchCancelCmd `cmd:"" help:"Begin no further line of a batch; what runs may finish."`
}

type batchListCmd struct {
	Tenant string `help:"One tenant's." placeholder:"ID"`
	Kind   string `enum:"batch,message_batch,async," default:"" help:"One kind: batch, message_batch or async." placeholder:"KIND"`
	Limit  int    `default:"20" help:"Most of them (${default}), newest first." placeholder:"N"`
	After  string `help:"The last id of the page before." placeholder:"BATCH"`
	connection
	output
}

// Run lists batches.
func (c *batchListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := url.Values{"limit": {count(c.Limit)}}
	for name, v := range map[string]string{"tenant": c.Tenant, "kind": c.Kind, "after": c.After} {
		if v != "" {
			q.Set(name, v)
		}
	}
	var out struct {
		Batches []admin.BatchRow `json:"batches"`
		More    bool             `json:"has_more"`
	}
	if err := api.get(ctx, batchesPath, q, &out); err != nil {
		return err
	}
	v := view{data: out.Batches, columns: []string{"batch", "tenant", "model", "state", "done", "lines", "failed", "expected", "deadline", "cost"}}
	for i := range out.Batches {
		b := &out.Batches[i]
		v.rows = append(v.rows, []string{
			b.ID, b.Tenant, b.Model, b.State, percent(b.Progress) + "%", count(b.Lines.Total), count(b.Lines.Failed + b.Lines.Expired), expectedText(b), stamp(&b.Deadline), b.Cost,
		})
	}
	if err := c.print(env.Stdout, v); err != nil {
		return err
	}
	if n := len(out.Batches); out.More && c.Output == "table" {
		fmt.Fprintf(env.Stderr, "there are more: --after %s\n", plain(out.Batches[n-1].ID))
	}
	return nil
}

// expectedText is when a batch will be done.
func expectedText(b *admin.BatchRow) string {
	switch {
	case b.Ended != nil:
		return ""
	case b.Expected == nil && b.Waits != nil:
		return "after " + stamp(&b.Waits.Resets)
	case b.Expected == nil:
		return "?"
	case b.Late:
		return stamp(b.Expected) + " late"
	}
	return stamp(b.Expected)
}

type batchShowCmd struct {
	Batch  string `arg:"" help:"Its id."`
	Tenant string `help:"Only if it is this tenant's." placeholder:"ID"`
	Lines  int    `default:"20" help:"Most of the lines without an answer that are shown, the first of them (${default}, at most 1000)." placeholder:"N"`
	connection
	output
}

// Run shows one batch.
func (c *batchShowCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.Lines < 1 || c.Lines > mostLines {
		return &codedError{code: exitUsage, msg: fmt.Sprintf("--lines is %d", c.Lines), hint: fmt.Sprintf("write a number from 1 to %d", mostLines)}
	}
	q := url.Values{"lines": {count(c.Lines)}}
	if c.Tenant != "" {
		q.Set("tenant", c.Tenant)
	}
	var b admin.BatchDetail
	if err := api.get(ctx, batchesPath+"/"+seg(c.Batch), q, &b); err != nil {
		return err
	}
	return c.print(env.Stdout, view{data: b, columns: fieldColumns, rows: batchRows(&b)})
}

// mostLines is how many lines of a batch can be shown.
const mostLines = 1000

func batchRows(b *admin.BatchDetail) [][]string {
	n := &b.Lines
	rows := pairs(
		"batch", b.ID, "kind", b.Kind, "tenant", b.Tenant, "project", b.Project, "key", b.Key, "model", b.Model, "endpoint", b.Endpoint, "task", b.Task, "state", b.State,
		"lines", fmt.Sprintf("%d: %d waiting, %d running, %d succeeded, %d failed, %d cancelled, %d expired", n.Total, n.Waiting, n.Running, n.Succeeded, n.Failed, n.Cancelled, n.Expired),
		"done", percent(b.Progress)+"%", "created", stamp(&b.Created), "deadline", stamp(&b.Deadline), "ended", stamp(b.Ended), "results until", stamp(b.Expires),
	)
	if b.Ended == nil {
		rows = append(rows, pairs("expected", expectedText(&b.BatchRow), "pace", cmp.Or(b.Urgency, "relaxed")+paceText(b.Rate))...)
		if w := b.Waits; w != nil {
			rows = append(rows, pairs("waits for", fmt.Sprintf("%s per %s of %s %s, which is spent until %s (%s)", w.Dimension, w.Window, w.Scope, w.ID, stamp(&w.Resets), w.Reason))...)
		}
	}
	rows = append(rows, pairs("tokens", fmt.Sprintf("%d in, %d out", b.Input, b.Output), "cost", b.Cost, "input", b.InputFile, "output", b.OutputFile, "errors", b.ErrorFile)...)
	for _, k := range slices.Sorted(maps.Keys(b.Metadata)) {
		rows = append(rows, []string{"metadata " + k, b.Metadata[k]})
	}
	for _, p := range b.Problems {
		where := "input"
		if p.Line > 0 {
			where = "line " + count(p.Line)
		}
		rows = append(rows, []string{where, p.Code + ": " + p.Message})
	}
	if b.Unsaid > 0 {
		rows = append(rows, []string{"input", count(b.Unsaid) + " further mistakes"})
	}
	for _, h := range b.HandedOver {
		rows = append(rows, []string{"handed over", fmt.Sprintf("%d lines to %s as %s, %d taken back", h.Lines, h.Provider, cmp.Or(h.Batch, "?"), h.Back)})
	}
	for _, l := range b.Unanswered {
		rows = append(rows, []string{"line " + count(l.Line), strings.TrimSpace(fmt.Sprintf("%s %s %s", l.CustomID, lineEnd(&l), l.Request))})
	}
	if b.Untold > 0 {
		where := fmt.Sprintf("--lines %d", min(len(b.Unanswered)+b.Untold, mostLines))
		if file := cmp.Or(b.ErrorFile, b.OutputFile); file != "" && len(b.Unanswered) >= mostLines {
			where = "all are in " + file
		}
		rows = append(rows, []string{"…", fmt.Sprintf("and %d more without an answer (%s)", b.Untold, where)})
	}
	return rows
}

// paceText is how many lines come to an end.
func paceText(perSecond float64) string {
	if perSecond <= 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f lines/s", perSecond)
}

func lineEnd(l *admin.BatchLine) string {
	out := l.State
	if l.Status != 0 {
		out += fmt.Sprintf(" with %d", l.Status)
	}
	if l.Reason != "" {
		out += " (" + l.Reason + ")"
	}
	return out
}

type batchCancelCmd struct {
	Batch  string `arg:"" help:"Its id."`
	Tenant string `help:"Only if it is this tenant's." placeholder:"ID"`
	dryRun
	connection
}

// Run cancels a batch.
func (c *batchCancelCmd) Run(ctx context.Context, env *Env) error {
	path := batchesPath + "/" + seg(c.Batch) + "/cancel"
	api, err := c.client()
	if err != nil {
		return err
	}
	q := url.Values{}
	if c.DryRun {
		q.Set("dry_run", "true")
	}
	if c.Tenant != "" {
		q.Set("tenant", c.Tenant)
	}
	var b admin.BatchDetail
	if err := api.call(ctx, http.MethodPost, path, q, nil, &b); err != nil {
		return err
	}
	c.said(env.Stderr, "batch %s is %s: %d of %d lines have an end", b.ID, b.State, b.Lines.Total-b.Lines.Waiting-b.Lines.Running, b.Lines.Total)
	return nil
}
