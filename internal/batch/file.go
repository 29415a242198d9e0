package batch

import (
	"net/http"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/jobs"
)

// file is a file as the OpenAI dialect has it.
type file struct {
	ID      jobs.FileID `json:"id"`
	Object  string      `json:"object"` // file
	Bytes   int64       `json:"bytes"`
	Created int64       `json:"created_at"`
	Expires *int64      `json:"expires_at,omitempty"`
	Name    string      `json:"filename"`
	Purpose string      `json:"purpose"`
	Status  string      `json:"status"` // processed: a file is seen once it is whole
}

func fileOf(f *jobs.File) file {
	return file{
		ID: f.ID, Object: "file", Bytes: f.Bytes, Created: f.Created.Unix(), Expires: unix(f.Expires), Name: f.Name, Purpose: f.Purpose, Status: "processed",
	}
}

// list is a page in the OpenAI dialect.
type list[T any] struct {
	Object string  `json:"object"` // list
	Data   []T     `json:"data"`
	First  *string `json:"first_id"`
	Last   *string `json:"last_id"`
	More   bool    `json:"has_more"`
}

// findFile is a file of the caller's project.
func (f *Face) findFile(r *http.Request, by *Caller, id, param string) (jobs.File, error) {
	if !isID(id) {
		return jobs.File{}, gone(param, "file")
	}
	v, err := f.o.Desk.File(r.Context(), by.Principal.Tenant, jobs.FileID(id))
	if notFound(err) || err == nil && (v.Project != by.Principal.Project || v.Hidden) {
		return jobs.File{}, gone(param, "file")
	}
	return v, err
}

func (f *Face) listFiles(w http.ResponseWriter, r *http.Request, by Caller) error {
	q := queryOf(r, "after", "limit", "order", "purpose")
	ask := jobs.FileQuery{
		Tenant: by.Principal.Tenant, Project: by.Principal.Project, Limit: q.limit(10_000, 100), After: jobs.FileID(q.id("after")),
		Oldest: q.oneOf("order", "asc", "desc") == "asc", Purpose: q.oneOf("purpose", jobs.PurposeBatch, jobs.PurposeOutput),
	}
	if q.err != nil {
		return q.err
	}
	if ask.After != "" {
		if _, err := f.findFile(r, &by, string(ask.After), "after"); err != nil {
			return err
		}
	}
	page, more, err := f.o.Desk.Files(r.Context(), ask)
	if err != nil {
		return err
	}
	out := list[file]{Object: "list", Data: make([]file, 0, len(page)), More: more}
	for i := range page {
		out.Data = append(out.Data, fileOf(&page[i]))
	}
	if n := len(page); n > 0 {
		out.First, out.Last = text(page[0].ID), text(page[n-1].ID)
	}
	return write(w, http.StatusOK, out)
}

func (f *Face) showFile(w http.ResponseWriter, r *http.Request, by Caller) error {
	v, err := f.findFile(r, &by, r.PathValue("id"), "file_id")
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, fileOf(&v))
}

func (f *Face) deleteFile(w http.ResponseWriter, r *http.Request, by Caller) error {
	v, err := f.findFile(r, &by, r.PathValue("id"), "file_id")
	if err != nil {
		return err
	}
	if err := f.o.Desk.DeleteFile(r.Context(), v.Tenant, v.ID); err != nil {
		if notFound(err) {
			return gone("file_id", "file")
		}
		return err
	}
	return write(w, http.StatusOK, struct {
		ID      jobs.FileID `json:"id"`
		Object  string      `json:"object"`
		Deleted bool        `json:"deleted"`
	}{v.ID, "file", true})
}

func (f *Face) content(w http.ResponseWriter, r *http.Request, by Caller) error {
	v, err := f.findFile(r, &by, r.PathValue("id"), "file_id")
	if err != nil {
		return err
	}
	return f.send(w, r, blob{v.Tenant, v.ID, "application/octet-stream", gone("file_id", "file")})
}

// blob is a file that is sent as it is.
type blob struct {
	tenant  sluice.TenantID
	id      jobs.FileID
	kind    string        // its type
	missing *sluice.Error // what is said if it has gone
}

// send answers with a file, a part at a time.
func (f *Face) send(w http.ResponseWriter, r *http.Request, v blob) error {
	in, err := f.o.Desk.Open(r.Context(), v.tenant, v.id)
	if notFound(err) {
		return v.missing
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", v.kind)
	h.Set("Content-Length", strconv.FormatInt(in.File.Bytes, 10))
	w.WriteHeader(http.StatusOK)
	return in.Copy(r.Context(), w)
}

// expiry is how long a client wants something kept.
type expiry struct {
	Anchor  string `json:"anchor"`
	Seconds int64  `json:"seconds"`
}

// The bounds of an expiry.
const (
	minExpiry = 3600
	maxExpiry = 2_592_000
)

// keep checks an expiry; nil is 0.
func (e *expiry) keep(param string) (time.Duration, error) {
	if e == nil {
		return 0, nil
	}
	if e.Anchor != "created_at" {
		return 0, sluice.Invalid(param+".anchor", "is %q: write created_at", short(e.Anchor))
	}
	if e.Seconds < minExpiry || e.Seconds > maxExpiry {
		return 0, sluice.Invalid(param+".seconds", "is %d: write %d (an hour) to %d (30 days)", e.Seconds, minExpiry, maxExpiry)
	}
	return time.Duration(e.Seconds) * time.Second, nil
}
