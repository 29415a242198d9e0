package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/admin"
)

func sayMore(env *Env, cursor string) {
	fmt.Fprintln(env.Stderr, "there is more: --after "+cursor)
}

type explainCmd struct {
	Request string `arg:"" help:"Its id, from the header sluice-request-id."`
	Tenant  string `help:"Only if it is this tenant's." placeholder:"ID"`
	connection
	output
}

// Run tells why a request went as it did.
func (c *explainCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	q := url.Values{}
	if c.Tenant != "" {
		q.Set("tenant", c.Tenant)
	}
	var x admin.Explanation
	if err := api.get(ctx, "/admin/v1/requests/"+seg(c.Request), q, &x); err != nil {
		return err
	}
	v := view{data: x, columns: []string{"attempt", "pool", "backend", "outcome", "reason", "queued", "first", "took", "usage_source", "cost"}}
	for i := range x.Steps {
		s := &x.Steps[i]
		v.rows = append(v.rows, []string{count(s.Attempt), s.Pool, s.Backend, s.Outcome, s.Reason, span(s.QueuedSeconds), span(s.FirstSeconds), span(s.Seconds), s.Charge.Source, s.Charge.Cost})
	}
	var b strings.Builder
	story(&b, &x)
	v.text = plain(b.String())
	return c.print(env.Stdout, v)
}

// story tells a request in the order of its life.
func story(w io.Writer, x *admin.Explanation) {
	how := x.Outcome
	if x.Reason != "" {
		how += ": " + x.Reason
	}
	fmt.Fprintf(w, "request %s  %s  (status %d)\n\n", x.ID, how, x.Status)
	say := func(head, format string, args ...any) {
		fmt.Fprintf(w, "%-11s"+format+"\n", append([]any{head}, args...)...)
	}
	say("who", "tenant %s, project %s, key %s%s", x.Tenant, x.Project, x.Key, labelled(x))
	asked := fmt.Sprintf("%s of model %s in the %s dialect", x.Operation, x.Model, x.Dialect)
	if x.Stream {
		asked += ", streamed"
	}
	if len(x.Steps) > 0 && x.Steps[0].Needs != "" {
		asked += ", needing " + x.Steps[0].Needs
	}
	if len(x.Steps) > 0 && x.Steps[0].Risk != "" {
		asked += ", risk " + x.Steps[0].Risk
	}
	say("asked", "%s, class %s", asked, x.Class)
	tier(w, x)
	say("when", "%s, ended after %s", stamp(&x.At), span(x.Seconds))
	estimate(w, x)
	refusal(w, x)
	limits(w, x)
	inspections(w, x)
	say("wait", "%s in the queue", span(x.QueuedSeconds))
	for i := range x.Steps {
		step(w, &x.Steps[i])
	}
	settlement(w, x)
	cached(w, x)
	shadows(w, x)
}

// keptAt tells where what a request refers to is.
func keptAt(place string) string {
	if place == "" {
		return "of which nothing is known here"
	}
	return "at " + place
}

func labelled(x *admin.Explanation) string {
	var s strings.Builder
	if x.User != "" {
		s.WriteString(", user " + x.User)
	}
	if x.Run != "" {
		s.WriteString(", run " + x.Run)
	}
	if len(x.Steps) > 0 && x.Steps[0].Session != "" {
		s.WriteString(", session " + x.Steps[0].Session)
	}
	if x.Task != "" {
		s.WriteString(", task " + x.Task)
	}
	for _, k := range sortedKeys(x.Labels) {
		s.WriteString(", " + k + "=" + x.Labels[k])
	}
	return s.String()
}

// facts are what exchange records of a decision beside the entry's columns.
type facts struct {
	Estimate struct {
		RawInput    sluice.Tokens `json:"raw_input"`
		InputBound  sluice.Tokens `json:"input_bound"`
		Output      sluice.Tokens `json:"output"`
		OutputHold  sluice.Tokens `json:"output_hold"`
		OutputBound sluice.Tokens `json:"output_bound"`
	} `json:"estimate"`
	ClampedTo sluice.Tokens `json:"clamped_to"`
}

// factsOf reads them from an answer that has been through JSON once already.
func factsOf(s *admin.Attempt) (f facts) {
	if raw, err := json.Marshal(s.Facts); err == nil {
		_ = json.Unmarshal(raw, &f) // facts of another version: what is known is shown
	}
	return f
}

func estimate(w io.Writer, x *admin.Explanation) {
	var f facts
	if len(x.Steps) > 0 {
		f = factsOf(&x.Steps[0])
	}
	fmt.Fprintf(w, "%-11s%d input tokens", "estimate", x.Estimate.Input)
	if f.Estimate.RawInput > 0 && f.Estimate.RawInput != x.Estimate.Input {
		fmt.Fprintf(w, " (%d by character class, × the learned ratio)", f.Estimate.RawInput)
	}
	fmt.Fprintf(w, ", output at most %d", x.Estimate.OutputBound)
	if f.Estimate.OutputHold > 0 {
		fmt.Fprintf(w, ", %d expected, %d held", f.Estimate.Output, f.Estimate.OutputHold)
	}
	fmt.Fprintf(w, "; %s of budget held\n", x.Estimate.Held)
	if f.ClampedTo > 0 {
		why := "more did not fit the budget, or the run"
		if x.Steps[0].Degraded != "" {
			why = "its pool was short of capacity"
		}
		fmt.Fprintf(w, "%-11soutput bound lowered to %d: %s\n", "", f.ClampedTo, why)
	}
}

// inspections tells what hooks decided, as the last attempt knows of it.
func inspections(w io.Writer, x *admin.Explanation) {
	if len(x.Steps) == 0 {
		return
	}
	head := "hooks"
	for _, d := range x.Steps[len(x.Steps)-1].Hooks {
		fmt.Fprintf(w, "%-11s%s at %s: %s", head, d.Hook, d.Stage, d.Verdict)
		if d.Why != "" {
			fmt.Fprintf(w, " (%s)", d.Why)
		}
		if len(d.Found) > 0 {
			fmt.Fprintf(w, ", %s", strings.Join(byClass(d.Found, "%d %s"), ", "))
		}
		if d.Calls > 1 {
			fmt.Fprintf(w, ", %d times", d.Calls)
		}
		if d.TookUS > 0 {
			fmt.Fprintf(w, ", in %s", span(float64(d.TookUS)/1e6))
		}
		fmt.Fprintln(w)
		head = ""
	}
}

func refusal(w io.Writer, x *admin.Explanation) {
	if x.Refusal != nil {
		figures(w, "refused", "did not fit", x.Refusal)
	}
	if x.Shadow != nil {
		figures(w, "shadow", "would have refused it ("+x.Shadow.Reason+"), were it enforced", x.Shadow)
	}
}

func figures(w io.Writer, head, what string, r *admin.RefusalFigure) {
	fmt.Fprintf(w, "%-11s%s of %s %s "+what+": it needs %s, of %s there are %s used and %s held by requests in flight",
		head, r.Limit, r.Scope, r.ID, r.Requested, r.Amount, r.Used, r.Held)
	if r.Reset != nil {
		fmt.Fprintf(w, "; full again at %s", stamp(r.Reset))
	}
	fmt.Fprintln(w)
}

func limits(w io.Writer, x *admin.Explanation) {
	for i, l := range x.Limits {
		head := ""
		if i == 0 {
			head = "limits"
		}
		fmt.Fprintf(w, "%-11s%s %s: %s of %s left\n", head, l.Scope, l.Limit, l.Remaining, l.Amount)
	}
}

func step(w io.Writer, s *admin.Attempt) {
	if s.Replayed != "" {
		fmt.Fprintf(w, "%-11snone: it was given the answer of %s again, by its Idempotency-Key\n", "attempts", s.Replayed)
		return
	}
	if s.Attempt == 0 {
		fmt.Fprintf(w, "%-11sno backend was reached\n", "attempts")
		if s.Message != "" {
			fmt.Fprintf(w, "%-11s%s\n", "because", s.Message)
		}
		remedy(w, s)
		candidates(w, s)
		return
	}
	how := s.Outcome
	if s.Reason != "" {
		how += ": " + s.Reason
	}
	via := ""
	if s.Canary {
		via = " (canary)"
	}
	if s.Fallback {
		via = " (fallback)"
		if v := s.Evaluated; v != nil {
			via = fmt.Sprintf(" (fallback, %s scored %v on %s)", v.Suite, v.Score, v.Date)
		}
	}
	if s.Hedge {
		via += " (hedge)"
	}
	if s.Away {
		via += " (away from home)"
	}
	fmt.Fprintf(w, "%-11s%s in pool %s%s, %s\n", fmt.Sprintf("attempt %d", s.Attempt), s.Backend, s.Pool, via, how)
	model := s.UpstreamModel
	if s.ServedModel != "" && s.ServedModel != s.UpstreamModel {
		model += ", served " + s.ServedModel
	}
	if s.UpstreamRequestID != "" {
		model += ", their id " + s.UpstreamRequestID
	}
	fmt.Fprintf(w, "%-11smodel %s at %s\n", "", model, s.Provider)
	if s.Message != "" {
		fmt.Fprintf(w, "%-11s%s\n", "because", s.Message)
	}
	if s.Finish != "" {
		fmt.Fprintf(w, "%-11sits answer ended with %s\n", "", s.Finish)
	}
	if s.FirstSeconds > 0 {
		fmt.Fprintf(w, "%-11sfirst token %s after arrival\n", "", span(s.FirstSeconds))
	}
	if len(s.RefersTo) > 0 {
		fmt.Fprintf(w, "%-11srefers to kept %s, %s\n", "", strings.Join(s.RefersTo, ", "), keptAt(s.KeptAt))
	}
	if s.Translated != "" {
		lost := "nothing left out"
		if s.Dropped != "" {
			lost = "without " + s.Dropped
		}
		fmt.Fprintf(w, "%-11stranslated into the %s dialect, %s\n", "", s.Translated, lost)
	}
	if s.Untranslated != "" {
		fmt.Fprintf(w, "%-11snot put into another dialect, for a field: %s\n", "", s.Untranslated)
	}
	switch late := span(float64(s.HedgedAfterMS) / 1000); {
	case s.HedgeDenied != "":
		fmt.Fprintf(w, "%-11sno content after %s, no hedge: %s\n", "", late, s.HedgeDenied)
	case s.HedgedAfterMS > 0:
		fmt.Fprintf(w, "%-11sno content after %s: hedged\n", "", late)
	}
	if d := s.Drained; d != nil {
		fmt.Fprintf(w, "%-11sits client had left: read on for %s, %s\n", "", span(float64(d.MS)/1000), d.Result)
	}
	if s.RetryDenied != "" {
		fmt.Fprintf(w, "%-11sno further attempt: %s\n", "", s.RetryDenied)
	}
	switch s.Stay {
	case "kept":
		fmt.Fprintf(w, "%-11sits session stayed with its backend\n", "")
	case "left":
		fmt.Fprintf(w, "%-11sits session left its backend, which had no room for it or too much to do\n", "")
	}
	if s.Prefer != "" {
		fmt.Fprintf(w, "%-11spreferred by %s: %s\n", "", s.Prefer, preferred(s.Preferred))
	}
	candidates(w, s)
	fmt.Fprintf(w, "%-11stook %s\n", "", charge(&s.Charge))
	if len(s.Charge.Rates) > 0 {
		fmt.Fprintf(w, "%-11sat %s per million\n", "", strings.Join(byClass(s.Charge.Rates, "%s %s"), ", "))
	}
}

// candidates tells of the backends that were considered.
func candidates(w io.Writer, s *admin.Attempt) {
	for _, c := range s.Candidates {
		switch {
		case c.Left != "":
			why := c.Left
			if c.Lacks != "" {
				why += ", it lacks " + c.Lacks
			}
			if c.Field != "" {
				why += " of " + c.Field
			}
			fmt.Fprintf(w, "%-11snot %s: %s%s\n", "", c.Backend, why, weighed(&c))
		case weighed(&c) != "":
			fmt.Fprintf(w, "%-11schose %s%s\n", "", c.Backend, weighed(&c))
		}
	}
}

// weighed is what a candidate was compared by, where it was.
func weighed(c *admin.Candidate) (s string) {
	if c.Cached > 0 {
		s = fmt.Sprintf(", %d input tokens believed cached", c.Cached)
	}
	if c.Cost != nil {
		s += ", cost " + span(float64(*c.Cost)/1e6)
	}
	if c.Expected != nil && c.Price != nil {
		s += fmt.Sprintf(", whole in %s, %v expected", span(float64(*c.Expected)/1e6), sluice.Nano(*c.Price))
	}
	return s
}

// preferred writes the pools that a preference put into order.
func preferred(pools []admin.Preferred) string {
	parts := make([]string, 0, len(pools))
	for _, p := range pools {
		when := "nothing known"
		if p.Expected != nil {
			when = "whole in " + span(float64(*p.Expected)/1e6)
		}
		parts = append(parts, fmt.Sprintf("%s (%s, %v)", p.Pool, when, sluice.Nano(p.Price)))
	}
	return strings.Join(parts, ", ")
}

// tokenClasses are the classes in the order in which they are told.
var tokenClasses = []string{"input", "cache_read", "cache_write", "cache_write_1h", "audio_input", "output", "reasoning", "audio_output"}

// byClass writes a figure of each class, those that this version does not know
// last.
func byClass[T any](m map[string]T, format string) []string {
	names := slices.DeleteFunc(sortedKeys(m), func(name string) bool { return slices.Contains(tokenClasses, name) })
	var parts []string
	for _, name := range slices.Concat(tokenClasses, names) {
		if v, ok := m[name]; ok {
			parts = append(parts, fmt.Sprintf(format, v, strings.ReplaceAll(name, "_", " ")))
		}
	}
	return parts
}

// charge writes usage and cost on one line.
func charge(c *admin.Charge) string {
	parts := byClass(c.Tokens, "%d %s")
	if len(parts) == 0 {
		return "nothing, " + c.Cost
	}
	s := strings.Join(parts, " + ") + " tokens (" + c.Source + ")"
	if c.Anomalous {
		s += ", impossible figures clamped"
	}
	s += ", " + c.Cost
	if c.PriceVersion != "" {
		s += " by price " + c.PriceVersion
	}
	return s
}

func settlement(w io.Writer, x *admin.Explanation) {
	fmt.Fprintf(w, "%-11s%s\n", "settled", charge(&x.Total))
	if x.Total.BudgetCost != "" {
		fmt.Fprintf(w, "%-11shard budgets were charged %s, what it can have cost at most\n", "", x.Total.BudgetCost)
	}
	if x.Late {
		fmt.Fprintf(w, "%-11slate: its hold had expired\n", "")
	}
	if x.Policy != "" {
		fmt.Fprintf(w, "%-11srouting table %s\n", "policy", x.Policy)
	}
}
