package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"sluice"
	"sluice/internal/admin"
)

type routeShadowCmd struct {
	Model  string `arg:"" optional:"" help:"A public model; all that have shadows if left out."`
	Tenant string `help:"Of one tenant's requests." placeholder:"ID"`
	Since  string `default:"24h" help:"A duration ago, a date, or RFC 3339 (${default})." placeholder:"WHEN"`
	Until  string `help:"Exclusive (default: now)." placeholder:"WHEN"`
	connection
	output
}

// Run compares shadows with the requests that they are copies of.
func (c *routeShadowCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := url.Values{"since": {c.Since}}
	for name, v := range map[string]string{"model": c.Model, "tenant": c.Tenant, "until": c.Until} {
		if v != "" {
			q.Set(name, v)
		}
	}
	var out struct {
		Since   string                   `json:"since,omitempty"`
		Until   string                   `json:"until,omitempty"`
		Shadows []admin.ShadowComparison `json:"shadows"`
	}
	if err := api.get(ctx, "/admin/v1/shadows", q, &out); err != nil {
		return err
	}
	v := view{data: out, columns: []string{
		"model", "pool", "side", "pairs", "completed", "first_p50", "first_p95", "first_p99", "took_p50", "took_p95", "took_p99",
		"output_p50", "output_p95", "output_sum", "cost", "finish_reasons", "outcomes",
	}}
	var text strings.Builder
	for i := range out.Shadows {
		s := &out.Shadows[i]
		for _, side := range [...]struct {
			name string
			of   *admin.ShadowSide
		}{{"request", &s.Request}, {"shadow", &s.Shadow}} {
			v.rows = append(v.rows, shadowRow(s, side.name, side.of))
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		beside(&text, s)
	}
	if len(out.Shadows) == 0 {
		text.WriteString("no copies have ended in that time: models copy requests to what their shadow names\n")
	}
	v.text = plain(text.String())
	return c.print(env.Stdout, v)
}

// shadowRow is one side as csv has it.
func shadowRow(c *admin.ShadowComparison, side string, s *admin.ShadowSide) []string {
	return []string{
		c.Model, c.Pool, side, count(c.Pairs), count(c.Completed),
		span(s.FirstToken.P50), span(s.FirstToken.P95), span(s.FirstToken.P99), span(s.Duration.P50), span(s.Duration.P95), span(s.Duration.P99),
		count(s.Output.P50), count(s.Output.P95), count(s.OutputSum), s.Cost, words(s.Finishes, ", "), words(s.Outcomes, ", "),
	}
}

// beside writes both sides of a comparison next to each other.
func beside(w io.Writer, c *admin.ShadowComparison) {
	fmt.Fprintf(w, "model %s, shadow %s: copies that have ended: %d; both sides completed: %d\n\n", c.Model, c.Pool, c.Pairs, c.Completed)
	line := func(what, request, shadow string) { fmt.Fprintf(w, "%-22s%-26s%s\n", what, request, shadow) }
	r, s := &c.Request, &c.Shadow
	line("", "request", "shadow")
	outcomes := func(what string, a, b map[string]int64) {
		names := map[string]bool{}
		for n := range a {
			names[n] = true
		}
		for n := range b {
			names[n] = true
		}
		for i, n := range sortedKeys(names) {
			head := ""
			if i == 0 {
				head = what
			}
			line(head, count(a[n])+" "+n, count(b[n])+" "+n)
		}
	}
	outcomes("outcome", r.Outcomes, s.Outcomes)
	times := func(what string, a, b admin.Seconds) {
		line(what+" p50", span(a.P50), span(b.P50)+than(a.P50, b.P50))
		line("  p95", span(a.P95), span(b.P95)+than(a.P95, b.P95))
		line("  p99", span(a.P99), span(b.P99)+than(a.P99, b.P99))
	}
	times("first token", r.FirstToken, s.FirstToken)
	times("to the end", r.Duration, s.Duration)
	line("output tokens p50", count(r.Output.P50), count(s.Output.P50)+than(float64(r.Output.P50), float64(s.Output.P50)))
	line("  p95", count(r.Output.P95), count(s.Output.P95)+than(float64(r.Output.P95), float64(s.Output.P95)))
	line("  in all", count(r.OutputSum), count(s.OutputSum)+than(float64(r.OutputSum), float64(s.OutputSum)))
	outcomes("finish reason", r.Finishes, s.Finishes)
	line("cost", r.Cost, s.Cost+than(float64(r.CostNanodollars), float64(s.CostNanodollars)))
	if c.Completed > 0 {
		each := func(n int64) string { return sluice.Nano(n / c.Completed).String() }
		line("  of one", each(r.CostNanodollars), each(s.CostNanodollars))
	}
}

// than tells a figure of a shadow as a multiple of the request's.
func than(request, shadow float64) string {
	if request <= 0 || shadow <= 0 {
		return ""
	}
	return fmt.Sprintf("  × %.2f", shadow/request)
}

// words writes counts by their words.
func words(m map[string]int64, sep string) string {
	var parts []string
	for _, n := range sortedKeys(m) {
		parts = append(parts, fmt.Sprintf("%d %s", m[n], n))
	}
	return strings.Join(parts, sep)
}

// shadows tells what became of a request's copies, or that it is one, and whether it
// counts.
func shadows(w io.Writer, x *admin.Explanation) {
	if x.ShadowOf != "" {
		fmt.Fprintf(w, "%-11sthis is a copy of request %s: nobody saw its answer, and no tenant is charged for it\n", "shadow", x.ShadowOf)
	}
	switch {
	case x.Voided && x.Outcome == sluice.Rejected.String():
		fmt.Fprintf(w, "%-11sits line of a batch waited, and was tried again: this try is in no tenant's usage\n", "voided_dup")
	case x.Voided:
		fmt.Fprintf(w, "%-11sanother attempt ran or runs this line of its batch: no tenant is charged for this one\n", "voided_dup")
	}
	for i := range x.Copies {
		c := &x.Copies[i]
		switch {
		case c.Skipped != "":
			fmt.Fprintf(w, "%-11snot copied to %s: %s\n", "shadow", c.Pool, c.Skipped)
		case c.Attempt == nil:
			fmt.Fprintf(w, "%-11scopied to %s, which has not ended yet\n", "shadow", c.Pool)
		default:
			how := c.Attempt.Outcome
			if c.Attempt.Reason != "" {
				how += ": " + c.Attempt.Reason
			}
			if c.Attempt.Finish != "" {
				how += " (" + c.Attempt.Finish + ")"
			}
			fmt.Fprintf(w, "%-11scopied to %s in pool %s, %s; its id %s\n", "shadow", c.Attempt.Backend, c.Pool, how, c.Request)
			if c.Attempt.FirstSeconds > 0 {
				fmt.Fprintf(w, "%-11sfirst token after %s, the end after %s\n", "", span(c.Attempt.FirstSeconds), span(c.Attempt.Seconds))
			} else {
				fmt.Fprintf(w, "%-11sthe end after %s\n", "", span(c.Attempt.Seconds))
			}
			fmt.Fprintf(w, "%-11stook %s, on the shadow's own account\n", "", charge(&c.Attempt.Charge))
		}
	}
}
