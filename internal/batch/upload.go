package batch

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
)

// The bounds of a form.
const (
	maxParts = 16
	maxValue = 4 << 10 // bytes of a part that is no file
	maxName  = 255     // bytes of a file's name
	copyPart = 64 << 10
)

// upload takes a file. Its parts come in any order: the purpose may be told behind the
// content.
func (f *Face) upload(w http.ResponseWriter, r *http.Request, by Caller) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if b := params["boundary"]; err != nil || kind != "multipart/form-data" || b == "" || len(b) > 70 {
		e := sluice.Invalid("content-type", "must be multipart/form-data with a boundary here")
		e.Hint = "let your client library write the form"
		return e
	}
	u := &upload{f: f, r: r, by: &by}
	defer u.abort()
	if err := u.read(multipart.NewReader(r.Body, params["boundary"])); err != nil {
		return err
	}
	v, err := u.commit()
	first, err := f.o.Keys.First(u.once, err)
	if first != nil {
		v, err = f.o.Desk.File(r.Context(), by.Principal.Tenant, jobs.FileID(first.Made))
		if notFound(err) {
			return first.Gone()
		}
		again(w.Header(), first.Request)
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, fileOf(&v))
}

// upload is one form on its way into the store.
type upload struct {
	f    *Face
	r    *http.Request
	by   *Caller
	file *jobs.Writer
	sum  hash.Hash         // of its content, where there is a key; else nil
	once *idempotency.Once // its key; nil without one

	purpose string
	expires *expiry
	seen    map[string]bool
}

// abort drops a file that has not been committed.
func (u *upload) abort() {
	if u.file != nil {
		u.file.Abort(u.r.Context())
	}
}

// read takes all parts.
func (u *upload) read(form *multipart.Reader) error {
	u.seen = map[string]bool{}
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return badForm(err)
		}
		name := part.FormName()
		switch {
		case n == maxParts:
			return sluice.Invalid("", "the form has more than %d parts", maxParts)
		case u.seen[name]:
			return sluice.Invalid(short(name), "is given twice: give it once")
		case name == "file":
			err = u.content(part)
		default:
			err = u.field(name, part)
		}
		if err != nil {
			return err
		}
		u.seen[name] = true
	}
}

// content writes the file.
func (u *upload) content(part *multipart.Part) error {
	name := part.FileName()
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, control) {
		return sluice.Invalid("file", "has no usable name: give it a filename of 1 to %d bytes", maxName)
	}
	p := u.by.Principal
	var err error
	u.file, err = u.f.o.Desk.Create(u.r.Context(), jobs.NewFile{Tenant: p.Tenant, Project: p.Project, Name: name, Purpose: jobs.PurposeBatch})
	if err != nil {
		return err
	}
	if u.by.Key == "" {
		return copyTo(u.r, u.file, part)
	}
	u.sum = sha256.New()
	return copyTo(u.r, u.file, io.TeeReader(part, u.sum))
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// copyTo writes all that in has to a file.
func copyTo(r *http.Request, to *jobs.Writer, in io.Reader) error {
	buf := make([]byte, copyPart)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if err := to.Write(r.Context(), buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return badForm(err)
		}
	}
}

// field reads what is told of the file.
func (u *upload) field(name string, part io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(part, maxValue+1))
	if err != nil {
		return badForm(err)
	}
	if len(raw) > maxValue {
		return sluice.Invalid(short(name), "has more than %d bytes", maxValue)
	}
	value := string(raw)
	switch name {
	case "purpose":
		u.purpose = value
		return purpose(value)
	case "expires_after": // as one JSON object
		u.expiry()
		if json.Unmarshal(raw, u.expires) != nil {
			return sluice.Invalid(name, "is no JSON object with anchor and seconds")
		}
	case "expires_after[anchor]":
		u.expiry().Anchor = value
	case "expires_after[seconds]":
		if u.expiry().Seconds, err = strconv.ParseInt(value, 10, 64); err != nil {
			return sluice.Invalid("expires_after.seconds", "is %q: write a number", short(value))
		}
	default:
		e := sluice.Invalid(short(name), "is no field of a file")
		e.Hint = "send file, purpose and expires_after"
		return e
	}
	return nil
}

func (u *upload) expiry() *expiry {
	if u.expires == nil {
		u.expires = &expiry{}
	}
	return u.expires
}

// purpose refuses those of which nothing here makes use.
func purpose(p string) error {
	if p == jobs.PurposeBatch {
		return nil
	}
	e := sluice.Invalid("purpose", "is %q: files are kept here for batches alone", short(p))
	e.Hint = "write batch; what a model is to read goes into the request itself"
	return e
}

// commit makes the file one of the project's.
func (u *upload) commit() (jobs.File, error) {
	switch {
	case u.file == nil:
		return jobs.File{}, sluice.Invalid("file", "is missing from the form")
	case u.purpose == "":
		return jobs.File{}, sluice.Invalid("purpose", "is missing from the form: write batch")
	case u.file.Bytes() == 0:
		return jobs.File{}, sluice.Invalid("file", "is empty")
	}
	keep, err := u.expires.keep("expires_after")
	if err != nil {
		return jobs.File{}, err
	}
	u.file.Keep = keep
	if u.sum != nil {
		u.once = u.f.once(u.by, ofFiles, u.file.Name, u.purpose, keep.String(), sum(u.sum))
		u.file.Once = u.once
	}
	return u.file.Commit(u.r.Context())
}

// badForm is an error in reading a form: the connection's, or the form's own.
func badForm(err error) error {
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		return e
	}
	e := sluice.Invalid("", "the form cannot be read to its end: it is cut short, or its parts are not parted by its boundary")
	e.Err = err
	return e
}
