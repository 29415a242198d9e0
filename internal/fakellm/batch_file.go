package fakellm

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// maxKept bounds the files and the batches that a provider keeps; the oldest go first.
const maxKept = 1000

// kept is a file.
type kept struct {
	id, owner, name, purpose string
	data                     []byte
	at                       time.Time
}

// file finds a file of the caller's, nil if it has been refused.
func (c *batchCall) file(id string) *kept {
	b := &c.s.batches
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		if f.id == id && f.owner == credentialOf(c.r.Header) {
			return f
		}
	}
	return nil
}

func (c *batchCall) keep(name, purpose string, data []byte) *kept {
	f := &kept{id: "file-" + c.s.mint(), owner: credentialOf(c.r.Header), name: name, purpose: purpose, data: data, at: time.Now()}
	b := &c.s.batches
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files = append(b.files, f); len(b.files) > maxKept {
		b.files = slices.Delete(b.files, 0, 1)
	}
	return f
}

func (f *kept) view() obj {
	return obj{"id": f.id, "object": "file", "bytes": len(f.data), "created_at": f.at.Unix(), "filename": f.name, "purpose": f.purpose, "status": "processed"}
}

// maxUpload bounds a file.
const maxUpload = 256 << 20

func (c *batchCall) upload() {
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxUpload)
	if err := c.r.ParseMultipartForm(maxBody); err != nil {
		c.refuse(http.StatusBadRequest, "invalid_form", "the form could not be read")
		return
	}
	defer c.r.MultipartForm.RemoveAll()
	in, head, err := c.r.FormFile("file")
	if err != nil || c.r.FormValue("purpose") == "" {
		c.refuse(http.StatusBadRequest, "missing_field", "file and purpose are required")
		return
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		c.refuse(http.StatusBadRequest, "invalid_form", "the file could not be read")
		return
	}
	c.s.remember(c.r, data)
	writeJSON(c.w, http.StatusOK, c.keep(head.Filename, c.r.FormValue("purpose"), data).view())
}

// listFiles lists the caller's files, newest first.
func (c *batchCall) listFiles() {
	b, q := &c.s.batches, c.r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 {
		limit = maxKept
	}
	page, more, begun := []obj{}, false, q.Get("after") == ""
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range slices.Backward(b.files) {
		switch {
		case f.owner != credentialOf(c.r.Header) || q.Get("purpose") != "" && q.Get("purpose") != f.purpose:
		case !begun:
			begun = f.id == q.Get("after")
		case len(page) == limit:
			more = true
		default:
			page = append(page, f.view())
		}
	}
	writeJSON(c.w, http.StatusOK, obj{"object": "list", "data": page, "has_more": more})
}

func (c *batchCall) showFile() {
	if f := c.file(c.r.PathValue("id")); f != nil {
		writeJSON(c.w, http.StatusOK, f.view())
		return
	}
	c.gone()
}

func (c *batchCall) content() {
	f := c.file(c.r.PathValue("id"))
	if f == nil {
		c.gone()
		return
	}
	c.w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = c.w.Write(f.data)
}

func (c *batchCall) deleteFile() {
	f := c.file(c.r.PathValue("id"))
	if f == nil {
		c.gone()
		return
	}
	b := &c.s.batches
	b.mu.Lock()
	b.files = slices.DeleteFunc(b.files, func(o *kept) bool { return o == f })
	b.mu.Unlock()
	writeJSON(c.w, http.StatusOK, obj{"id": f.id, "object": "file", "deleted": true})
}
