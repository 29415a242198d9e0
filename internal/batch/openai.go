package batch

import (
	"crypto/sha256"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

// endpoints are the operations that a batch may be of: those whose body and answer are
// JSON.
var endpoints = []wire.Operation{
	wire.Chat, wire.Completions, wire.Embeddings, wire.Responses, wire.Moderations, wire.ImageGenerations, wire.Rerank,
}

// operation is that of an endpoint such as /v1/chat/completions.
func operation(endpoint string) (wire.Operation, error) {
	var all []string
	for _, op := range endpoints {
		path := "/v1" + op.Path()
		if path == endpoint {
			return op, nil
		}
		all = append(all, path)
	}
	e := sluice.Invalid("endpoint", "is %q, which batches are not of", short(endpoint))
	e.Hint = "use one of " + strings.Join(all, ", ")
	return 0, e
}

// window reads the time that a batch has: 24h, as clients write it, or another one in
// minutes, hours or days.
func window(s string) (time.Duration, error) {
	units := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	if len(s) > 1 && len(s) < 8 {
		n, err := strconv.Atoi(s[:len(s)-1])
		if unit := units[s[len(s)-1:]]; err == nil && n > 0 && unit > 0 {
			return time.Duration(n) * unit, nil
		}
	}
	return 0, sluice.Invalid("completion_window", "is %q: write 24h, or another time such as 90m, 6h or 7d", short(s))
}

// newBatch is what asks for a batch.
type newBatch struct {
	Input         string            `json:"input_file_id"`
	Endpoint      string            `json:"endpoint"`
	Window        string            `json:"completion_window"`
	Metadata      map[string]string `json:"metadata"`
	OutputExpires *expiry           `json:"output_expires_after"`
}

func (f *Face) createBatch(w http.ResponseWriter, r *http.Request, by Caller) error {
	var in newBatch
	digest := sha256.New()
	if err := readJSON(io.TeeReader(r.Body, digest), &in); err != nil {
		return err
	}
	n := jobs.NewJob{Kind: jobs.OpenAIBatch, Caller: by.Principal, Endpoint: in.Endpoint, Metadata: in.Metadata}
	var err error
	if n.Terms, err = terms(r, &by); err != nil {
		return err
	}
	if n.Op, err = operation(in.Endpoint); err != nil {
		return err
	}
	if n.Window, err = window(in.Window); err != nil {
		return err
	}
	if n.Keep, err = in.OutputExpires.keep("output_expires_after"); err != nil {
		return err
	}
	n.Once = f.once(&by, ofBatches, sum(digest))
	j, err := f.submit(r, &by, in.Input, n)
	was, first, err := f.firstJob(r.Context(), &by, n.Once, err)
	if err != nil {
		return err
	}
	if first != nil {
		again(w.Header(), first.Request)
		j = *was
	}
	return f.writeBatch(w, &j)
}

// submit begins a batch of a file.
func (f *Face) submit(r *http.Request, by *Caller, input string, n jobs.NewJob) (jobs.Job, error) {
	v, err := f.findFile(r, by, input, "input_file_id")
	if err != nil {
		return jobs.Job{}, err
	}
	if v.Purpose != jobs.PurposeBatch {
		return jobs.Job{}, sluice.Invalid("input_file_id", "names a file whose purpose is %s, not batch", v.Purpose)
	}
	n.Input = v.ID
	return f.o.Desk.Submit(r.Context(), n)
}

func (f *Face) listBatches(w http.ResponseWriter, r *http.Request, by Caller) error {
	q := queryOf(r, "after", "limit")
	ask := jobs.JobQuery{
		Tenant: by.Principal.Tenant, Project: by.Principal.Project, Kind: jobs.OpenAIBatch, Limit: q.limit(100, 20), After: jobs.JobID(q.id("after")),
	}
	if q.err != nil {
		return q.err
	}
	page, more, err := f.page(r, &by, ask, "after")
	if err != nil {
		return err
	}
	out := list[batch]{Object: "list", Data: make([]batch, 0, len(page)), More: more}
	for i := range page {
		out.Data = append(out.Data, f.batchOf(&page[i]))
	}
	if n := len(page); n > 0 {
		out.First, out.Last = text(page[0].ID), text(page[n-1].ID)
	}
	return write(w, http.StatusOK, out)
}

// page is a page of jobs, whose cursors must be the caller's own.
func (f *Face) page(r *http.Request, by *Caller, q jobs.JobQuery, param string) ([]jobs.Job, bool, error) {
	for _, at := range []jobs.JobID{q.After, q.Before} {
		if at == "" {
			continue
		}
		j, err := f.o.Desk.Job(r.Context(), q.Tenant, at)
		if notFound(err) || err == nil && (j.Caller.Project != by.Principal.Project || j.Kind != q.Kind) {
			return nil, false, gone(param, "batch")
		}
		if err != nil {
			return nil, false, err
		}
	}
	return f.o.Desk.Jobs(r.Context(), q)
}

func (f *Face) showBatch(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.OpenAIBatch, "batch")
	if err != nil {
		return err
	}
	return f.writeBatch(w, &j)
}

func (f *Face) cancelBatch(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.OpenAIBatch, "batch")
	if err != nil {
		return err
	}
	if j, err = f.o.Desk.Cancel(r.Context(), by.Principal.Tenant, j.ID); err != nil {
		if notFound(err) {
			return gone("id", "batch")
		}
		return err
	}
	return f.writeBatch(w, &j)
}

// batch is a batch as the OpenAI dialect has it.
type batch struct {
	ID         jobs.JobID        `json:"id"`
	Object     string            `json:"object"` // batch
	Endpoint   string            `json:"endpoint"`
	Model      *string           `json:"model"`
	Errors     *problems         `json:"errors"`
	Input      jobs.FileID       `json:"input_file_id"`
	Window     string            `json:"completion_window"`
	Status     jobs.State        `json:"status"`
	Output     *string           `json:"output_file_id"`
	ErrorFile  *string           `json:"error_file_id"`
	Created    int64             `json:"created_at"`
	InProgress *int64            `json:"in_progress_at"`
	Expires    *int64            `json:"expires_at"`
	Finalizing *int64            `json:"finalizing_at"`
	Completed  *int64            `json:"completed_at"`
	Failed     *int64            `json:"failed_at"`
	Expired    *int64            `json:"expired_at"`
	Cancelling *int64            `json:"cancelling_at"`
	Cancelled  *int64            `json:"cancelled_at"`
	Counts     counts            `json:"request_counts"`
	Usage      *usage            `json:"usage,omitempty"`
	Metadata   map[string]string `json:"metadata"`
	Sluice     forecast          `json:"sluice"`
}

// problems are what is wrong with a batch's input.
type problems struct {
	Object string    `json:"object"` // list
	Data   []problem `json:"data"`
	More   int       `json:"sluice_more,omitempty"` // mistakes beyond these
}

type problem struct {
	Code    string  `json:"code"`
	Line    *int    `json:"line"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

type counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

type usage struct {
	Input        sluice.Tokens `json:"input_tokens"`
	InputDetails struct {
		Cached sluice.Tokens `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        sluice.Tokens `json:"output_tokens"`
	OutputDetails struct {
		Reasoning sluice.Tokens `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total sluice.Tokens `json:"total_tokens"`
}

// forecast is what the gateway says of a job beside the dialect's own fields.
type forecast struct {
	Progress float64 `json:"progress"` // share of lines that have an end, 0 to 1
	Finish   *int64  `json:"expected_at,omitempty"`
	Late     bool    `json:"late,omitempty"` // that is after the deadline
	Waits    *waits  `json:"waiting_for,omitempty"`
	Urgency  string  `json:"urgency,omitempty"`
	Cost     string  `json:"cost"`
}

// waits is the limit that is spent, and that lines of a job wait for.
type waits struct {
	Reason    sluice.Reason    `json:"reason"`
	Scope     sluice.Scope     `json:"scope"`
	ID        string           `json:"id,omitempty"` // whose limit
	Dimension sluice.Dimension `json:"dimension"`
	Window    sluice.Window    `json:"window"`
	Resets    int64            `json:"resets_at"`
}

func waitsOf(h *jobs.Hold) *waits {
	if h == nil {
		return nil
	}
	return &waits{h.Reason, h.Scope, h.ID, h.Dimension, h.Window, h.Until.Unix()}
}

func (f *Face) writeBatch(w http.ResponseWriter, j *jobs.Job) error {
	return write(w, http.StatusOK, f.batchOf(j))
}

func (f *Face) batchOf(j *jobs.Job) batch {
	ended := func(as jobs.State) *int64 {
		if j.State != as {
			return nil
		}
		return unix(j.Ended)
	}
	b := batch{
		ID: j.ID, Object: "batch", Endpoint: j.Endpoint, Model: text(j.Model), Errors: problemsOf(j), Input: j.Input, Window: windowText(j.Window), Status: j.State,
		Output: text(j.Output), ErrorFile: text(j.Errors), Created: j.Created.Unix(), InProgress: unix(j.Started), Expires: unix(j.Deadline), Finalizing: unix(j.Finalizing),
		Completed: ended(jobs.Completed), Failed: ended(jobs.Failed), Expired: ended(jobs.Expired), Cancelled: ended(jobs.Cancelled), Cancelling: unix(j.Cancelling),
		Counts:   counts{j.Counts.Total, j.Counts.Succeeded, j.Counts.Failed + j.Counts.Expired + j.Counts.Cancelled},
		Metadata: j.Metadata, Sluice: f.forecast(j),
	}
	if u := &j.Usage; u.Total() > 0 {
		b.Usage = &usage{Input: u.InputTotal(), Output: u.OutputTotal(), Total: u.Total()}
		b.Usage.InputDetails.Cached, b.Usage.OutputDetails.Reasoning = u.CacheRead, u.Reasoning
	}
	return b
}

func problemsOf(j *jobs.Job) *problems {
	if len(j.Problems) == 0 {
		return nil
	}
	out := &problems{Object: "list"}
	for _, p := range j.Problems {
		v := problem{Code: p.Code, Message: p.Message, Param: text(p.Param)}
		if p.Line > 0 {
			v.Line = &p.Line
		}
		out.Data = append(out.Data, v)
	}
	out.More = j.Dropped
	return out
}

// windowText is a window as it was asked for.
func windowText(d time.Duration) string {
	if d%time.Hour == 0 {
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	}
	return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
}

func (f *Face) forecast(j *jobs.Job) forecast {
	out := forecast{Progress: 1, Cost: j.Cost.String()}
	if j.State.Ended() {
		return out
	}
	p := f.o.Desk.Progress(j)
	out.Progress, out.Finish, out.Late, out.Urgency = p.Done, unix(p.Finish), p.Late, p.Urgency.String()
	out.Waits = waitsOf(p.Held)
	return out
}
