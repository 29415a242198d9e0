package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/ledger"
)

// ShadowComparison is one pool's copies of one model's requests beside them.
type ShadowComparison struct {
	Model     string     `json:"model"`
	Pool      string     `json:"pool" doc:"The shadow's"`
	Pairs     int64      `json:"pairs" doc:"Copies that have ended, and their requests too"`
	Completed int64      `json:"completed" doc:"Pairs of which both sides completed: what follows but outcomes is over them alone"`
	Request   ShadowSide `json:"request" doc:"What clients got"`
	Shadow    ShadowSide `json:"shadow" doc:"What the copies came to"`
}

// ShadowSide is one side of a comparison.
type ShadowSide struct {
	Outcomes        map[string]int64 `json:"outcomes" doc:"Over all pairs: how they ended, with the reason after a colon where there is one"`
	Finishes        map[string]int64 `json:"finish_reasons" doc:"The providers' words for why answers ended; none where one said nothing"`
	FirstToken      Seconds          `json:"first_token_seconds" doc:"Time to the first content, without the time in queues, of pairs that both streamed"`
	Duration        Seconds          `json:"duration_seconds" doc:"Time to the end, without the time in queues"`
	Output          TokenRanks       `json:"output_tokens" doc:"Of one answer, reasoning included"`
	OutputSum       sluice.Tokens    `json:"output_tokens_sum"`
	Cost            string           `json:"cost" doc:"Of all completed pairs; of requests over all their attempts"`
	CostNanodollars int64            `json:"cost_nanodollars"`
}

// Seconds are percentiles of a time, each of them one that occurred.
type Seconds struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// TokenRanks are percentiles of a number of tokens, each of them one that occurred.
type TokenRanks struct {
	P50 sluice.Tokens `json:"p50"`
	P95 sluice.Tokens `json:"p95"`
	P99 sluice.Tokens `json:"p99"`
}

// ShadowCopy is a shadow whose turn a request was.
type ShadowCopy struct {
	Pool    string   `json:"pool"`
	Skipped string   `json:"skipped,omitempty" doc:"Why no copy was sent there: a word of docs/routing.md"`
	Request string   `json:"request,omitempty" doc:"The copy's id, once it has ended: explain it for more"`
	Attempt *Attempt `json:"attempt,omitempty" doc:"What became of it, once it has ended"`
}

func sideOf(p *ledger.Part) ShadowSide {
	seconds := func(p ledger.Percentiles[time.Duration]) Seconds {
		return Seconds{p.P50.Seconds(), p.P95.Seconds(), p.P99.Seconds()}
	}
	return ShadowSide{
		Outcomes: p.Outcomes, Finishes: p.Finishes, FirstToken: seconds(p.FirstToken), Duration: seconds(p.Took),
		Output: TokenRanks(p.Output), OutputSum: p.OutputSum, Cost: p.Cost.String(), CostNanodollars: int64(p.Cost),
	}
}

// The inputs and outputs of the comparison.
type (
	shadowsIn struct {
		Model  string `query:"model" maxLength:"256" doc:"Of one public model"`
		Tenant string `query:"tenant" maxLength:"64" doc:"Of one tenant's requests"`
		Since  string `query:"since" maxLength:"40" doc:"A duration ago, a date or RFC 3339; empty: 24h"`
		Until  string `query:"until" maxLength:"40" doc:"Exclusive; empty: now"`
	}
	shadowsOut struct {
		Body struct {
			Since   *time.Time         `json:"since,omitempty"`
			Until   *time.Time         `json:"until,omitempty"`
			Shadows []ShadowComparison `json:"shadows" doc:"By model and pool"`
		}
	}
)

func (a *API) registerShadows(api huma.API) {
	register(a, api, huma.Operation{
		OperationID: "compare-shadows", Method: http.MethodGet, Path: "/admin/v1/shadows", Tags: []string{"ledger"},
		Summary: "What shadows came to, beside the requests that they are copies of",
	}, a.shadows)
}

func (a *API) shadows(ctx context.Context, in *shadowsIn) (*shadowsOut, error) {
	u := usageIn{Filters: Filters{Tenant: in.Tenant}, Since: in.Since, Until: in.Until}
	span, err := u.query(a.o.Now())
	if err != nil {
		return nil, err
	}
	a.flush(ctx)
	pairs, err := a.o.Ledger.Pairs(ctx, ledger.PairQuery{Owner: span.Owner, Model: sluice.ModelID(in.Model), Since: span.Since, Until: span.Until})
	if err != nil {
		return nil, err
	}
	out := &shadowsOut{}
	out.Body.Since, out.Body.Until = moment(span.Since), moment(span.Until)
	out.Body.Shadows = []ShadowComparison{}
	for _, c := range ledger.Compare(pairs) {
		out.Body.Shadows = append(out.Body.Shadows, ShadowComparison{
			Model: string(c.Model), Pool: string(c.Pool), Pairs: c.Pairs, Completed: c.Completed, Request: sideOf(&c.Request), Shadow: sideOf(&c.Shadow),
		})
	}
	return out, nil
}

// copiesOf tells of the shadows whose turn a request was: by what the request has
// recorded, and by the entries of its copies, which may have none yet.
func copiesOf(e *ledger.Entry, copies []ledger.Entry) (out []ShadowCopy) {
	var detail struct {
		Shadows []ShadowCopy `json:"shadows"`
	}
	_ = json.Unmarshal(e.Detail, &detail) // decisions tells what cannot be read
	out = detail.Shadows
	for i := range copies {
		c := &copies[i]
		if !c.Final {
			continue
		}
		at := slices.IndexFunc(out, func(s ShadowCopy) bool { return s.Pool == string(c.Pool) })
		if at < 0 { // the request died with its process
			at = len(out)
			out = append(out, ShadowCopy{Pool: string(c.Pool)})
		}
		a := attemptOf(c)
		out[at].Request, out[at].Attempt = string(c.Request), &a
	}
	slices.SortFunc(out, func(a, b ShadowCopy) int { return strings.Compare(a.Pool, b.Pool) })
	return out
}
