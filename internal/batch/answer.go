package batch

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

// answerPath is where answers are that come later.
const answerPath = "/v1/sluice/answers/"

// pollAfter is what clients are asked to wait between two looks at an answer that is not
// there, in seconds.
const pollAfter = 2

// pending is a request that has not been answered.
type pending struct {
	ID       jobs.JobID `json:"id"`
	Object   string     `json:"object"` // sluice.answer
	Status   string     `json:"status"` // queued, in_progress, cancelling or, told again, ended
	Model    string     `json:"model"`
	Created  int64      `json:"created_at"`
	Expires  *int64     `json:"expires_at"` // it is answered before, or not at all
	Finish   *int64     `json:"expected_at,omitempty"`
	Waits    *waits     `json:"waiting_for,omitempty"`
	Location string     `json:"url"`
}

// Deferred is where the answer to a request will be.
type Deferred struct {
	Location   string
	RetryAfter int    // seconds
	Body       []byte // that says so
	// Replayed is the request that was made to be answered later under the same key; empty
	// if this one has been.
	Replayed sluice.RequestID
}

// Defer takes a request that is to be answered later: what it may not say of itself is the
// caller's to check before.
func (f *Face) Defer(ctx context.Context, r *exchange.Request) (Deferred, error) {
	p := r.Principal
	file, err := f.o.Desk.Create(ctx, jobs.NewFile{Tenant: p.Tenant, Project: p.Project, Name: "request.json", Purpose: jobs.PurposeBatch, Hidden: true, Keep: inputKept})
	if err != nil {
		return Deferred{}, err
	}
	defer file.Abort(ctx)
	if err := file.Write(ctx, r.Body); err != nil {
		return Deferred{}, err
	}
	v, err := file.Commit(ctx)
	if err != nil {
		return Deferred{}, err
	}
	op, header := r.Head.Op, r.Header.Clone()
	header.Del("Prefer")
	by := Caller{ID: r.ID, Principal: p, Key: header.Get(idempotency.Header)}
	header.Del(idempotency.Header) // it is this request's, not that of what runs
	once := f.once(&by, op.String(), "later", r.Head.Model, string(r.Body))
	j, err := f.o.Desk.Submit(ctx, jobs.NewJob{
		Kind: jobs.Async, Caller: p, Terms: jobs.Terms{Task: r.Task, Labels: r.Labels, Risk: r.Risk, Header: header, Run: p.Run, Cache: r.Cache},
		Endpoint: "/v1" + op.Path(), Op: op, Input: v.ID, Keep: answersKept, Once: once,
	})
	if err != nil {
		_ = f.o.Desk.DeleteFile(ctx, p.Tenant, v.ID) // else its time comes
	}
	was, first, err := f.firstJob(ctx, &by, once, err)
	if err != nil {
		return Deferred{}, err
	}
	out := Deferred{RetryAfter: pollAfter}
	if first != nil {
		j, out.Replayed = *was, first.Request
	}
	at := f.pendingOf(&j)
	var b body
	if err := write(&b, http.StatusAccepted, at); err != nil {
		return Deferred{}, err
	}
	out.Location, out.Body = at.Location, b.Bytes()
	return out, nil
}

// answersKept is how long an answer that came later is kept.
const answersKept = 24 * time.Hour

// body is an answer that stays here.
type body struct{ bytes.Buffer }

func (*body) Header() http.Header { return http.Header{} }
func (*body) WriteHeader(int)     {}

func (f *Face) pendingOf(j *jobs.Job) pending {
	is := f.o.Desk.Progress(j)
	p := pending{
		ID: j.ID, Object: "sluice.answer", Status: "in_progress", Model: j.Model, Created: j.Created.Unix(), Expires: unix(j.Deadline),
		Location: f.o.PublicURL + answerPath + string(j.ID), Finish: unix(is.Finish), Waits: waitsOf(is.Held),
	}
	switch {
	case j.State.Ended():
		p.Status, p.Finish = "ended", nil
	case j.State == jobs.Cancelling:
		p.Status = "cancelling"
	case j.State == jobs.Validating || j.Counts.Waiting > 0:
		p.Status = "queued"
	}
	return p
}

// showAnswer gives the answer as the request would have had it, or says that there is none
// yet.
func (f *Face) showAnswer(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.Async, "request that is answered later")
	if err != nil {
		return err
	}
	if !j.State.Ended() {
		w.Header().Set("Retry-After", strconv.Itoa(pollAfter))
		return write(w, http.StatusAccepted, f.pendingOf(&j))
	}
	a, err := f.o.Desk.Answer(r.Context(), by.Principal.Tenant, j.ID)
	switch {
	case notFound(err):
		return gone("id", "request that is answered later")
	case err != nil:
		return err
	case a.State == jobs.LineExpired:
		return &sluice.Error{Kind: sluice.KindTimeout, Reason: sluice.QueueTimeout, Msg: "the request was not answered by its deadline", Hint: "send it again"}
	case a.State == jobs.LineCancelled:
		return &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Param: "id", Msg: "names a request that was cancelled before it was answered"}
	}
	answerHeader(w.Header(), &j, &a)
	w.WriteHeader(a.Status)
	_, err = w.Write(a.Body)
	return err
}

// answerHeader sets the headers that the request would have had with its answer. Its id is
// in one of its own, since each request has one: that of who asks is another.
func answerHeader(h http.Header, j *jobs.Job, a *jobs.Result) {
	t := &a.Told
	maps.Copy(h, t.Header)
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	if j.Op.Dialect() == wire.Anthropic && a.State == jobs.LineFailed && h["Request-Id"] == nil { // as its errors have it
		h.Set("Request-Id", string(a.Request))
	}
	if t.Policy != "" {
		h.Set(wire.HeaderQueue, strconv.FormatInt(t.Queued, 10))
	}
	if t.Tier > 0 {
		h.Set(wire.HeaderTier, strconv.Itoa(t.Tier))
	}
	set(wire.HeaderBackend, string(t.Backend))
	set(wire.HeaderPolicy, t.Policy)
	set(wire.HeaderDropped, t.Dropped)
	set(wire.HeaderCache, t.Cache)
	set(wire.HeaderReason, t.Reason)
	set("Content-Type", a.Type)
	set("Sluice-Answers", string(a.Request))
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
}

// dropAnswer cancels a request that has not been answered, and deletes an answer.
func (f *Face) dropAnswer(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.Async, "request that is answered later")
	if err != nil {
		return err
	}
	deleted := j.State.Ended()
	if deleted {
		err = f.o.Desk.DeleteJob(r.Context(), by.Principal.Tenant, j.ID)
	} else if _, err = f.o.Desk.Cancel(r.Context(), by.Principal.Tenant, j.ID); err != nil && sluice.AsError(err).Kind == sluice.KindConflict {
		err = f.o.Desk.DeleteJob(r.Context(), by.Principal.Tenant, j.ID) // it was answered meanwhile
		deleted = true
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, struct {
		ID      jobs.JobID `json:"id"`
		Object  string     `json:"object"`
		Deleted bool       `json:"deleted"` // else it is being cancelled
	}{j.ID, "sluice.answer", deleted})
}
