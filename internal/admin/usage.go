package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/ledger"
)

// Usage answers what was used.
type Usage struct {
	Since *time.Time `json:"since,omitempty" doc:"Start of what was summed: roll-ups answer in full hours"`
	Until *time.Time `json:"until,omitempty" doc:"End of it, exclusive"`
	By    []string   `json:"by" doc:"What the rows are grouped by"`
	Rows  []UsageRow `json:"rows" doc:"The highest cost first, unless grouped by time"`
	Total Figures    `json:"total" doc:"Sum of the rows"`
}

// UsageRow is one group.
type UsageRow struct {
	Group map[string]string `json:"group" doc:"The value of each dimension of by"`
	Figures
}

// Figures are sums over ledger entries. Token classes are disjoint.
type Figures struct {
	Requests        int64         `json:"requests" doc:"Requests that ended"`
	Attempts        int64         `json:"attempts" doc:"Calls to a backend"`
	Input           sluice.Tokens `json:"input_tokens" doc:"Uncached text input"`
	CacheRead       sluice.Tokens `json:"cache_read_tokens"`
	CacheWrite      sluice.Tokens `json:"cache_write_tokens" doc:"Both times to live"`
	AudioInput      sluice.Tokens `json:"audio_input_tokens"`
	Output          sluice.Tokens `json:"output_tokens"`
	Reasoning       sluice.Tokens `json:"reasoning_tokens"`
	AudioOutput     sluice.Tokens `json:"audio_output_tokens"`
	ToolCalls       int64         `json:"tool_calls"`
	WebSearches     int64         `json:"web_searches"`
	Units           int64         `json:"units" doc:"What was billed by another unit than tokens: images, seconds of audio, characters, searches of a reranker"`
	Estimated       int64         `json:"estimated" doc:"Attempts whose usage the provider did not fully report"`
	Anomalous       int64         `json:"anomalous" doc:"Attempts whose reported usage was impossible and clamped"`
	Late            int64         `json:"late" doc:"Attempts settled after their hold had expired"`
	CostNanodollars int64         `json:"cost_nanodollars" doc:"1e-9 USD"`
	Cost            string        `json:"cost" doc:"The same in dollars, exactly"`
}

func figuresOf(t *ledger.Totals) Figures {
	return Figures{
		Requests: t.Requests, Attempts: t.Attempts,
		Input: t.Input, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite + t.CacheWrite1h, AudioInput: t.AudioInput,
		Output: t.Output, Reasoning: t.Reasoning, AudioOutput: t.AudioOutput,
		ToolCalls: t.ToolCalls, WebSearches: t.WebSearches, Units: t.Units, Estimated: t.Estimated, Anomalous: t.Anomalous, Late: t.Late,
		CostNanodollars: int64(t.Cost), Cost: t.Cost.String(),
	}
}

func (f *Figures) add(o *Figures) {
	f.Requests += o.Requests
	f.Attempts += o.Attempts
	f.Input += o.Input
	f.CacheRead += o.CacheRead
	f.CacheWrite += o.CacheWrite
	f.AudioInput += o.AudioInput
	f.Output += o.Output
	f.Reasoning += o.Reasoning
	f.AudioOutput += o.AudioOutput
	f.ToolCalls += o.ToolCalls
	f.WebSearches += o.WebSearches
	f.Units += o.Units
	f.Estimated += o.Estimated
	f.Anomalous += o.Anomalous
	f.Late += o.Late
	f.CostNanodollars += o.CostNanodollars
	f.Cost = sluice.Nano(f.CostNanodollars).String()
}

// Filters are the query parameters that restrict both usage and request lists.
type Filters struct {
	Tenant   string `query:"tenant" maxLength:"64"`
	Project  string `query:"project" maxLength:"64"`
	Key      string `query:"key" maxLength:"64"`
	User     string `query:"user" maxLength:"128"`
	Task     string `query:"task" maxLength:"64"`
	Model    string `query:"model" maxLength:"256"`
	Backend  string `query:"backend" maxLength:"64"`
	Provider string `query:"provider" maxLength:"64"`
	Class    string `query:"class" enum:"interactive,standard,batch"`
	Outcome  string `query:"outcome" enum:"completed,failed,cancelled,rejected,expired"`
	Reason   string `query:"reason" maxLength:"32"`
}

func (f *Filters) where() (owner ledger.Owner, where []ledger.Match) {
	owner = ledger.Everyone()
	if f.Tenant != "" {
		owner = ledger.Of(sluice.TenantID(f.Tenant))
	}
	for _, m := range [...]ledger.Match{
		{By: ledger.ByProject, Value: f.Project},
		{By: ledger.ByKey, Value: f.Key},
		{By: ledger.ByUser, Value: f.User},
		{By: ledger.ByTask, Value: f.Task},
		{By: ledger.ByModel, Value: f.Model},
		{By: ledger.ByBackend, Value: f.Backend},
		{By: ledger.ByProvider, Value: f.Provider},
		{By: ledger.ByClass, Value: f.Class},
		{By: ledger.ByOutcome, Value: f.Outcome},
		{By: ledger.ByReason, Value: f.Reason},
	} {
		if m.Value != "" {
			where = append(where, m)
		}
	}
	return owner, where
}

type usageIn struct {
	Filters
	By    string `query:"by" maxLength:"200" doc:"Comma-separated: tenant, project, key, user, task, model, backend, provider, class, outcome, reason, hour, day, label:NAME"`
	Since string `query:"since" maxLength:"40" doc:"A duration ago, a date or RFC 3339; empty: 24h"`
	Until string `query:"until" maxLength:"40" doc:"Exclusive; empty: now"`
	Limit int    `query:"limit" minimum:"0" maximum:"10000" doc:"Most rows; 0: 10000"`

	Shadow bool `query:"shadow" doc:"What shadows used, of whose traffic they are copies; they are in no other usage"`
}

type usageOut struct{ Body Usage }

func (a *API) registerUsage(api huma.API) {
	register(a, api, huma.Operation{OperationID: "usage", Method: http.MethodGet, Path: "/admin/v1/usage", Summary: "What was used and what it cost", Tags: []string{"ledger"}}, a.usage)
}

func (a *API) usage(ctx context.Context, in *usageIn) (*usageOut, error) {
	q, err := in.query(a.o.Now())
	if err != nil {
		return nil, err
	}
	a.flush(ctx)
	rows, err := a.o.Ledger.Usage(ctx, q)
	if err != nil {
		return nil, err
	}
	since, until := q.Window()
	out := &usageOut{Body: Usage{Since: moment(since), Until: moment(until), By: texts(q.By), Rows: make([]UsageRow, 0, len(rows))}}
	out.Body.Total.Cost = sluice.Nano(0).String()
	for i := range rows {
		row := UsageRow{Group: make(map[string]string, len(q.By)), Figures: figuresOf(&rows[i].Totals)}
		for j, d := range q.By {
			name := d.String()
			if d == ledger.ByLabel {
				name = "label:" + q.Label
				out.Body.By[j] = name
			}
			if j < len(rows[i].Group) {
				row.Group[name] = rows[i].Group[j]
			}
		}
		out.Body.Total.add(&row.Figures)
		out.Body.Rows = append(out.Body.Rows, row)
	}
	return out, nil
}

func (in *usageIn) query(now time.Time) (q ledger.UsageQuery, err error) {
	q.Owner, q.Where = in.where()
	q.Limit, q.Shadow = in.Limit, in.Shadow
	since := in.Since
	if since == "" {
		since = "24h"
	}
	if q.Since, err = parseTime("since", since, now); err != nil {
		return q, err
	}
	if q.Until, err = parseTime("until", in.Until, now); err != nil {
		return q, err
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, sluice.Invalid("until", "is not after since")
	}
	for word := range strings.SplitSeq(in.By, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		if label, ok := strings.CutPrefix(word, "label:"); ok {
			if q.Label != "" {
				return q, sluice.Invalid("by", "names two labels: one at a time")
			}
			q.Label, word = label, "label"
		}
		var d ledger.Dimension
		if err := d.UnmarshalText([]byte(word)); err != nil {
			return q, hinted(sluice.Invalid("by", "names an unknown dimension"), "use tenant, project, key, user, task, model, backend, provider, class, outcome, reason, hour, day or label:NAME")
		}
		if d == ledger.ByLabel && q.Label == "" {
			return q, hinted(sluice.Invalid("by", "names no label"), "write label:NAME")
		}
		q.By = append(q.By, d)
	}
	return q, nil
}

// flush waits, for a moment, until what was settled is in the ledger: who asks
// right after a request expects to find it. A drain that is late or failing only
// makes the answer older, which status tells.
func (a *API) flush(ctx context.Context) {
	if a.o.Flush == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	_ = a.o.Flush(ctx)
}

// flushWait bounds how long a question waits for the drain.
const flushWait = 2 * time.Second
