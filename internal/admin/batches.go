package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/handover"
	"sluice/internal/jobs"
)

// Batches is what an operator sees and does of batches. A zero one leaves them out.
type Batches struct {
	// List is a page of jobs, newest first, and whether there is another
	// (jobs.Desk.Jobs).
	List func(ctx context.Context, q jobs.JobQuery) (page []jobs.Job, more bool, err error)
	// Find is one, whose ever it is.
	Find func(ctx context.Context, id jobs.JobID) (jobs.Job, error)
	// Cancel ends one early (jobs.Desk.Cancel).
	Cancel func(ctx context.Context, t sluice.TenantID, id jobs.JobID) (jobs.Job, error)
	// Progress is how far one is (jobs.Desk.Progress).
	Progress func(j *jobs.Job) jobs.Progress
	// HandedOver is what providers' own batch APIs have of one.
	HandedOver func(ctx context.Context, id jobs.JobID) ([]handover.Share, error)
	// Unanswered are lines that have ended without an answer (jobs.Desk.Unanswered).
	Unanswered func(ctx context.Context, j *jobs.Job, limit int) ([]jobs.Result, error)
}

// BatchRow is one batch, as lists show it.
type BatchRow struct {
	ID       string        `json:"id"`
	Kind     string        `json:"kind" enum:"batch,message_batch,async" doc:"batch: of the OpenAI dialect; message_batch: of the Anthropic dialect; async: one request that is answered later"`
	State    string        `json:"state" enum:"validating,in_progress,finalizing,cancelling,completed,failed,expired,cancelled"`
	Tenant   string        `json:"tenant"`
	Project  string        `json:"project"`
	Key      string        `json:"key"`
	Model    string        `json:"model,omitempty"`
	Endpoint string        `json:"endpoint,omitempty"`
	Lines    BatchCounts   `json:"lines"`
	Progress float64       `json:"progress" doc:"Share of lines that have an end, 0 to 1"`
	Rate     float64       `json:"lines_per_second,omitempty" doc:"That came to an end, over the last minutes"`
	Urgency  string        `json:"urgency,omitempty" enum:"relaxed,pressed,urgent" doc:"How it is paced: up, when it is predicted to miss its deadline"`
	Expected *time.Time    `json:"expected_at,omitempty" doc:"When its last line is predicted to end; absent: nothing can be said yet, or it has ended"`
	Late     bool          `json:"late,omitempty" doc:"That is after the deadline"`
	Waits    *BatchWaits   `json:"waiting_for,omitempty" doc:"The limit of its caller's that is spent, and that lines wait for"`
	Created  time.Time     `json:"created_at"`
	Deadline time.Time     `json:"deadline_at" doc:"What has no answer then expires"`
	Ended    *time.Time    `json:"ended_at,omitempty"`
	Input    sluice.Tokens `json:"input_tokens"`
	Output   sluice.Tokens `json:"output_tokens"`
	Cost     string        `json:"cost" doc:"Of the requests whose results its lines have"`
	Nano     int64         `json:"cost_nanodollars"`
}

// BatchWaits is a limit that is spent.
type BatchWaits struct {
	Reason    string    `json:"reason"`
	Scope     string    `json:"scope"`
	ID        string    `json:"id,omitempty" doc:"Whose limit: the key, project or tenant"`
	Dimension string    `json:"dimension"`
	Window    string    `json:"window"`
	Since     time.Time `json:"since"`
	Resets    time.Time `json:"resets_at" doc:"No line that it refuses runs before, unless it is raised"`
}

// BatchCounts are lines by state.
type BatchCounts struct {
	Total     int `json:"total"`
	Waiting   int `json:"waiting"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Expired   int `json:"expired"`
}

// BatchProblem is one mistake of a batch's input.
type BatchProblem struct {
	Line    int    `json:"line,omitempty" doc:"From 1; absent: the input as a whole"`
	Code    string `json:"code"`
	Param   string `json:"param,omitempty"`
	Message string `json:"message"`
}

// BatchLine is one line that has ended without an answer.
type BatchLine struct {
	Line     int    `json:"line"`
	CustomID string `json:"custom_id"`
	State    string `json:"state" enum:"failed,cancelled,expired"`
	Status   int    `json:"status,omitempty"`
	Request  string `json:"request,omitempty" doc:"That it ran as: sluice explain tells of it; absent: it never ran"`
	Reason   string `json:"reason,omitempty" doc:"Why it was refused, in one word"`
}

// BatchShare is what a provider's own batch API was given of a batch.
type BatchShare struct {
	Provider string    `json:"provider"`
	Batch    string    `json:"batch,omitempty" doc:"As the provider calls it; absent: it has told no name"`
	Created  time.Time `json:"created_at"`
	Lines    int       `json:"lines" doc:"That it was given"`
	Back     int       `json:"taken_back" doc:"Of those, which it has not run: they run by themselves"`
}

// BatchDetail is one batch with what went wrong in it.
type BatchDetail struct {
	BatchRow
	Task       string            `json:"task,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Started    *time.Time        `json:"started_at,omitempty"`
	Cancelling *time.Time        `json:"cancelling_at,omitempty"`
	Expires    *time.Time        `json:"results_expire_at,omitempty"`
	InputFile  string            `json:"input_file"`
	OutputFile string            `json:"output_file,omitempty"`
	ErrorFile  string            `json:"error_file,omitempty"`
	Problems   []BatchProblem    `json:"problems,omitempty" doc:"Of its input, for which it failed; at most 100"`
	Unsaid     int               `json:"further_problems,omitempty"`
	HandedOver []BatchShare      `json:"handed_over,omitempty" doc:"What providers' own batch APIs have of it"`
	Unanswered []BatchLine       `json:"unanswered,omitempty" doc:"The first lines that ended without an answer, as many as were asked for and a bounded search finds"`
	Untold     int               `json:"further_unanswered,omitempty" doc:"Lines that ended without an answer, beyond these"`
}

type (
	batchesIn struct {
		Tenant string `query:"tenant" maxLength:"64" doc:"One tenant's"`
		Kind   string `query:"kind" enum:"batch,message_batch,async" doc:"One kind"`
		After  string `query:"after" maxLength:"80" doc:"The last id of the page before"`
		Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"0: 20"`
	}
	batchesOut struct {
		Body struct {
			Batches []BatchRow `json:"batches" doc:"Newest first"`
			More    bool       `json:"has_more"`
		}
	}
	batchIn struct {
		ID     string `path:"batch" maxLength:"80"`
		Tenant string `query:"tenant" maxLength:"64" doc:"Restrict to one tenant: another's id is a 404"`
		Lines  int    `query:"lines" minimum:"0" maximum:"1000" doc:"Most lines that are told one by one; 0: 20"`
	}
	batchOut      struct{ Body BatchDetail }
	cancelBatchIn struct {
		Mutation
		ID     string `path:"batch" maxLength:"80"`
		Tenant string `query:"tenant" maxLength:"64" doc:"Restrict to one tenant: another's id is a 404"`
	}
)

// linesTold is how many of a batch's lines are told one by one where nobody says.
const linesTold = 20

func (a *API) registerBatches(api huma.API) {
	if a.o.Batches.Find == nil {
		return
	}
	tags := []string{"operate"}
	register(a, api, huma.Operation{OperationID: "list-batches", Method: http.MethodGet, Path: "/admin/v1/batches", Summary: "Batches and requests that are answered later: how far each is, and when it will be done", Tags: tags, Errors: []int{404}}, a.batches)
	register(a, api, huma.Operation{OperationID: "show-batch", Method: http.MethodGet, Path: "/admin/v1/batches/{batch}", Summary: "One batch, and which of its lines went wrong", Tags: tags, Errors: []int{404}}, a.batch)
	register(a, api, huma.Operation{OperationID: "cancel-batch", Method: http.MethodPost, Path: "/admin/v1/batches/{batch}/cancel", Summary: "Begin no further line of a batch; what runs may finish", Tags: tags, Errors: []int{404, 409}}, a.cancelBatch)
}

func (a *API) batches(ctx context.Context, in *batchesIn) (*batchesOut, error) {
	q := jobs.JobQuery{Tenant: sluice.TenantID(in.Tenant), Any: in.Kind == "", After: jobs.JobID(in.After), Limit: cmp.Or(in.Limit, defaultRows)}
	if in.Kind != "" {
		if err := q.Kind.UnmarshalText([]byte(in.Kind)); err != nil {
			return nil, err
		}
	}
	page, more, err := a.o.Batches.List(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &batchesOut{}
	out.Body.Batches, out.Body.More = make([]BatchRow, 0, len(page)), more
	for i := range page {
		out.Body.Batches = append(out.Body.Batches, a.batchRow(&page[i]))
	}
	return out, nil
}

// findBatch is one batch, of the tenant if one is named.
func (a *API) findBatch(ctx context.Context, id, tenant string) (jobs.Job, error) {
	j, err := a.o.Batches.Find(ctx, jobs.JobID(id))
	if err != nil && sluice.AsError(err).Kind == sluice.KindNotFound || err == nil && tenant != "" && j.Caller.Tenant != sluice.TenantID(tenant) {
		return j, &sluice.Error{
			Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no batch %q", id), Hint: "GET /admin/v1/batches lists them",
		}
	}
	return j, err
}

func (a *API) batch(ctx context.Context, in *batchIn) (*batchOut, error) {
	j, err := a.findBatch(ctx, in.ID, in.Tenant)
	if err != nil {
		return nil, err
	}
	out := &batchOut{Body: a.batchDetail(&j)}
	if a.o.Batches.HandedOver != nil {
		shares, err := a.o.Batches.HandedOver(ctx, j.ID)
		if err != nil {
			return nil, err
		}
		for _, s := range shares {
			out.Body.HandedOver = append(out.Body.HandedOver, BatchShare{string(s.Provider), s.Ref, s.Created.UTC(), s.Lines, s.Back})
		}
	}
	wrong := j.Counts.Failed + j.Counts.Expired
	if j.Kind != jobs.OpenAIBatch || j.State != jobs.Cancelled { // else most of those have no result
		wrong += j.Counts.Cancelled
	}
	if wrong+j.Counts.Cancelled == 0 || a.o.Batches.Unanswered == nil {
		return out, nil
	}
	lines, err := a.o.Batches.Unanswered(ctx, &j, cmp.Or(in.Lines, linesTold))
	if err != nil {
		return nil, err
	}
	out.Body.Untold = max(wrong-len(lines), 0)
	for i := range lines {
		r := &lines[i]
		out.Body.Unanswered = append(out.Body.Unanswered, BatchLine{Line: r.Line, CustomID: r.CustomID, State: r.State.String(), Status: r.Status, Request: string(r.Request), Reason: r.Told.Reason})
	}
	return out, nil
}

func (a *API) cancelBatch(ctx context.Context, in *cancelBatchIn) (*batchOut, error) {
	j, err := a.findBatch(ctx, in.ID, in.Tenant)
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return &batchOut{Body: a.batchDetail(&j)}, nil
	}
	if j, err = a.o.Batches.Cancel(ctx, j.Caller.Tenant, j.ID); err != nil {
		return nil, err
	}
	a.o.Log.LogAttrs(ctx, slog.LevelInfo, "batch cancelled", slog.String("id", string(j.ID)), slog.String("tenant", string(j.Caller.Tenant)), slog.String("by", operatorOf(ctx).ID))
	return &batchOut{Body: a.batchDetail(&j)}, nil
}

func (a *API) batchRow(j *jobs.Job) BatchRow {
	c := j.Counts
	r := BatchRow{
		ID: string(j.ID), Kind: j.Kind.String(), State: j.State.String(), Tenant: string(j.Caller.Tenant), Project: string(j.Caller.Project), Key: string(j.Caller.Key),
		Model: j.Model, Endpoint: j.Endpoint, Progress: 1, Created: j.Created.UTC(), Deadline: j.Deadline.UTC(), Ended: moment(j.Ended),
		Lines: BatchCounts{c.Total, c.Waiting, c.Running, c.Succeeded, c.Failed, c.Cancelled, c.Expired},
		Input: j.Usage.InputTotal(), Output: j.Usage.OutputTotal(), Cost: j.Cost.String(), Nano: int64(j.Cost),
	}
	if !j.State.Ended() && a.o.Batches.Progress != nil {
		p := a.o.Batches.Progress(j)
		r.Progress, r.Rate, r.Urgency, r.Expected, r.Late = p.Done, p.Rate, p.Urgency.String(), moment(p.Finish), p.Late
		if h := p.Held; h != nil {
			r.Waits = &BatchWaits{h.Reason.String(), h.Scope.String(), h.ID, h.Dimension.String(), h.Window.String(), h.Since.UTC(), h.Until.UTC()}
		}
	}
	return r
}

func (a *API) batchDetail(j *jobs.Job) BatchDetail {
	d := BatchDetail{
		BatchRow: a.batchRow(j), Task: j.Terms.Task, Metadata: j.Metadata, Started: moment(j.Started), Cancelling: moment(j.Cancelling), Expires: moment(j.ResultsExpire),
		InputFile: string(j.Input), OutputFile: string(j.Output), ErrorFile: string(j.Errors), Unsaid: j.Dropped,
	}
	for _, p := range j.Problems {
		d.Problems = append(d.Problems, BatchProblem(p))
	}
	return d
}
