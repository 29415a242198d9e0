package batch

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

// messagesWindow is the time that a message batch has: the dialect knows no other.
const messagesWindow = 24 * time.Hour

// maxRequest bounds one request of a message batch, in bytes; jobs.Bounds.LineBytes may
// be less.
const maxRequest = 64 << 20

// createMessages takes a message batch.
func (f *Face) createMessages(w http.ResponseWriter, r *http.Request, by Caller) error {
	p := by.Principal
	with, err := terms(r, &by)
	if err != nil {
		return err
	}
	lines, err := f.o.Desk.Create(r.Context(), jobs.NewFile{
		Tenant: p.Tenant, Project: p.Project, Name: "requests.jsonl", Purpose: jobs.PurposeBatch, Hidden: true, Max: maxMessages, Keep: inputKept,
	})
	if err != nil {
		return err
	}
	defer lines.Abort(r.Context())
	digest := sha256.New()
	if err := unroll(r, io.TeeReader(r.Body, digest), lines); err != nil {
		return err
	}
	v, err := lines.Commit(r.Context())
	if err != nil {
		return err
	}
	once := f.once(&by, ofMessages, sum(digest))
	j, err := f.o.Desk.Submit(r.Context(), jobs.NewJob{
		Kind: jobs.MessageBatch, Caller: p, Terms: with, Endpoint: "/v1" + wire.Messages.Path(), Op: wire.Messages, Input: v.ID, Window: messagesWindow, Once: once,
	})
	if err != nil {
		_ = f.o.Desk.DeleteFile(r.Context(), p.Tenant, v.ID) // else its time comes
	}
	was, first, err := f.firstJob(r.Context(), &by, once, err)
	if err != nil {
		return err
	}
	if first != nil {
		again(w.Header(), first.Request)
		j = *was
	}
	return f.writeMessages(w, &j)
}

// inputKept is how long the input of a job that never came to be lies around.
const inputKept = 3 * 24 * time.Hour

// unroll writes each member of the body's list of requests as a line.
func unroll(r *http.Request, body io.Reader, lines *jobs.Writer) error {
	in := &measured{from: body}
	d := jsontext.NewDecoder(in)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return badBody(err, in, "")
	}
	there := false
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return badBody(err, in, "")
		}
		if name.String() != "requests" {
			e := sluice.Invalid(short(name.String()), "is no field of a message batch")
			e.Hint = "send requests alone"
			return e
		}
		there = true
		if d.PeekKind() != '[' {
			return sluice.Invalid("requests", "is no list: write one of objects with custom_id and params")
		}
		if err := unrollList(r, d, in, lines); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return badBody(err, in, "")
	}
	if !there || lines.Bytes() == 0 {
		return sluice.Invalid("requests", "is empty: write at least one")
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return badBody(err, in, "")
	}
	return nil
}

// unrollList writes the members of a list.
func unrollList(r *http.Request, d *jsontext.Decoder, in *measured, lines *jobs.Writer) error {
	if _, err := d.ReadToken(); err != nil {
		return badBody(err, in, "")
	}
	for n := 0; d.PeekKind() != ']'; n++ {
		in.left = maxRequest
		v, err := d.ReadValue()
		in.left = 0
		if err == nil {
			err = v.Compact() // a line of its own
		}
		if err != nil {
			return badBody(err, in, "requests."+strconv.Itoa(n))
		}
		if err := lines.Write(r.Context(), append(v, '\n')); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	if err != nil {
		return badBody(err, in, "")
	}
	return nil
}

// errRequest is that one request is larger than any may be.
var errRequest = errors.New("a request is too large")

// measured bounds what is read for one request.
type measured struct {
	from io.Reader
	left int64 // 0 is no bound
	err  error // of the connection
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if err != nil && err != io.EOF {
		m.err = err
	}
	if m.left > 0 {
		if m.left -= int64(n); m.left <= 0 {
			return n, errRequest
		}
	}
	return n, err
}

// badBody is why a message batch could not be read: the connection's error, or where its
// JSON is wrong.
func badBody(err error, in *measured, at string) error {
	switch {
	case in.err != nil:
		return in.err
	case errors.Is(err, errRequest):
		return &sluice.Error{Kind: sluice.KindTooLarge, Reason: sluice.BodyTooLarge, Param: at, Msg: "is larger than one request may be", Hint: "send at most 64 MiB"}
	case err == nil:
		return sluice.Invalid("", "the body is no JSON object with requests, and nothing else")
	}
	if at == "" {
		at = "body"
	}
	e := sluice.Invalid(at, "is no JSON")
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e = sluice.Invalid(at, "is no JSON: %v at byte %d", s.Err, s.ByteOffset)
	}
	e.Err = err
	return e
}

// dotted writes a pointer as errors do.
func dotted(p jsontext.Pointer) string {
	out := ""
	for name := range p.Tokens() {
		if out != "" {
			out += "."
		}
		out += short(name)
	}
	return out
}

func (f *Face) listMessages(w http.ResponseWriter, r *http.Request, by Caller) error {
	q := queryOf(r, "after_id", "before_id", "limit")
	ask := jobs.JobQuery{
		Tenant: by.Principal.Tenant, Project: by.Principal.Project, Kind: jobs.MessageBatch,
		Limit: q.limit(1000, 20), After: jobs.JobID(q.id("after_id")), Before: jobs.JobID(q.id("before_id")),
	}
	param := "after_id"
	if ask.Before != "" {
		if param = "before_id"; ask.After != "" {
			q.fail(sluice.Invalid("after_id", "and before_id are both given: give one of them"))
		}
	}
	if q.err != nil {
		return q.err
	}
	page, more, err := f.page(r, &by, ask, param)
	if err != nil {
		return err
	}
	out := struct {
		Data  []messageBatch `json:"data"`
		More  bool           `json:"has_more"`
		First *string        `json:"first_id"`
		Last  *string        `json:"last_id"`
	}{Data: make([]messageBatch, 0, len(page)), More: more}
	for i := range page {
		out.Data = append(out.Data, f.messagesOf(&page[i]))
	}
	if n := len(page); n > 0 {
		out.First, out.Last = text(page[0].ID), text(page[n-1].ID)
	}
	return write(w, http.StatusOK, out)
}

func (f *Face) showMessages(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.MessageBatch, "message batch")
	if err != nil {
		return err
	}
	return f.writeMessages(w, &j)
}

func (f *Face) cancelMessages(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.MessageBatch, "message batch")
	if err != nil {
		return err
	}
	if j, err = f.o.Desk.Cancel(r.Context(), by.Principal.Tenant, j.ID); err != nil {
		return tooLate(err)
	}
	return f.writeMessages(w, &j)
}

func (f *Face) deleteMessages(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.MessageBatch, "message batch")
	if err != nil {
		return err
	}
	if err := f.o.Desk.DeleteJob(r.Context(), by.Principal.Tenant, j.ID); err != nil {
		return tooLate(err)
	}
	return write(w, http.StatusOK, struct {
		ID   jobs.JobID `json:"id"`
		Type string     `json:"type"`
	}{j.ID, "message_batch_deleted"})
}

// tooLate is what a job's state does not allow as this dialect has it: client libraries
// try a conflict again.
func tooLate(err error) error {
	e := sluice.AsError(err)
	switch e.Kind {
	case sluice.KindNotFound:
		return gone("id", "message batch")
	case sluice.KindConflict:
		wrong := *e
		wrong.Kind = sluice.KindInvalid
		return &wrong
	}
	return err
}

// results sends what came of a message batch, a line for each request.
func (f *Face) results(w http.ResponseWriter, r *http.Request, by Caller) error {
	j, err := f.find(r, &by, jobs.MessageBatch, "message batch")
	if err != nil {
		return err
	}
	if !j.State.Ended() {
		e := sluice.Invalid("id", "names a message batch that is in progress: it has no results yet")
		e.Hint = "ask for the batch until its processing_status is ended"
		return e
	}
	missing := &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Param: "id", Msg: "names a message batch whose results are gone"}
	if j.Output == "" {
		return missing
	}
	return f.send(w, r, blob{by.Principal.Tenant, j.Output, "application/x-jsonl", missing})
}

// messageBatch is a job as the Anthropic dialect has it.
type messageBatch struct {
	ID        jobs.JobID    `json:"id"`
	Type      string        `json:"type"` // message_batch
	Status    string        `json:"processing_status"`
	Counts    messageCounts `json:"request_counts"`
	Ended     *string       `json:"ended_at"`
	Created   *string       `json:"created_at"`
	Expires   *string       `json:"expires_at"`
	Archived  *string       `json:"archived_at"`
	Cancelled *string       `json:"cancel_initiated_at"`
	Results   *string       `json:"results_url"`
	Sluice    forecast      `json:"sluice"`
}

type messageCounts struct {
	Processing int `json:"processing"`
	Succeeded  int `json:"succeeded"`
	Errored    int `json:"errored"`
	Canceled   int `json:"canceled"`
	Expired    int `json:"expired"`
}

func (f *Face) writeMessages(w http.ResponseWriter, j *jobs.Job) error {
	return write(w, http.StatusOK, f.messagesOf(j))
}

// messagesOf writes a job. Its requests all count as processing until it has ended.
func (f *Face) messagesOf(j *jobs.Job) messageBatch {
	b := messageBatch{
		ID: j.ID, Type: "message_batch", Status: "in_progress", Counts: messageCounts{Processing: j.Counts.Total},
		Ended: moment(j.Ended), Created: moment(j.Created), Expires: moment(j.Deadline), Cancelled: moment(j.Cancelling),
		Sluice: f.forecast(j),
	}
	switch {
	case j.State.Ended():
		b.Status = "ended"
		b.Counts = messageCounts{Succeeded: j.Counts.Succeeded, Errored: j.Counts.Failed, Canceled: j.Counts.Cancelled, Expired: j.Counts.Expired}
		if now := time.Now(); !j.ResultsExpire.IsZero() && !now.Before(j.ResultsExpire) {
			b.Archived = moment(j.ResultsExpire)
		} else if j.Output != "" {
			url := f.o.PublicURL + "/v1/messages/batches/" + string(j.ID) + "/results"
			b.Results = &url
		}
	case !j.Cancelling.IsZero():
		b.Status = "canceling"
	}
	return b
}

// moment is a time as the Anthropic dialect has it, null for none.
func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(time.RFC3339Nano)
	return &s
}
