package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/idempotency"
)

// Writer writes one file, a chunk at a time. It belongs to one goroutine. What is not
// committed is aborted.
type Writer struct {
	// What of the file may be said until Commit: a form may have it behind the content.
	Name    string
	Purpose string
	Keep    time.Duration     // 0 is Bounds.KeepFiles; negative is for ever
	Once    *idempotency.Once // its key, whose Made is the file's to say; nil has none

	d     *Desk
	f     File
	max   int64
	bound int64 // of all of the tenant's files
	buf   []byte
	n     int // chunks written
	ended bool
	err   error // of a write: nothing more is taken
}

// Create begins a file. Nobody sees it until its Commit.
func (d *Desk) Create(ctx context.Context, n NewFile) (*Writer, error) {
	b := d.bounds()
	if n.Max <= 0 {
		n.Max = b.FileBytes
	}
	w := &Writer{
		Name: n.Name, Purpose: n.Purpose, Keep: n.Keep, d: d, max: n.Max, bound: b.TenantBytes,
		f: File{ID: FileID(d.newID(filePrefix)), Tenant: n.Tenant, Project: n.Project, Name: n.Name, Purpose: n.Purpose, Hidden: n.Hidden, Created: d.now()},
	}
	if err := d.o.Store.PutFile(ctx, w.f); err != nil {
		return nil, err
	}
	return w, nil
}

// ID is the file's.
func (w *Writer) ID() FileID { return w.f.ID }

// Bytes is how much has been written.
func (w *Writer) Bytes() int64 { return w.f.Bytes }

// Write adds to the file. An error is the last word on it.
func (w *Writer) Write(ctx context.Context, p []byte) error {
	if w.err != nil || w.ended {
		return errors.Join(w.err, errEnded(w.ended))
	}
	if w.f.Bytes+int64(len(p)) > w.max {
		w.err = &sluice.Error{
			Kind: sluice.KindTooLarge, Reason: sluice.BodyTooLarge, Param: "file",
			Msg: fmt.Sprintf("is larger than %d bytes, which is the bound of one file", w.max), Hint: "send it as several",
		}
		return w.err
	}
	w.f.Bytes += int64(len(p))
	for len(p) > 0 {
		if w.buf == nil {
			w.buf = make([]byte, 0, ChunkBytes)
		}
		k := min(len(p), ChunkBytes-len(w.buf))
		w.buf, p = append(w.buf, p[:k]...), p[k:]
		if len(w.buf) == ChunkBytes {
			if w.err = w.flush(ctx); w.err != nil {
				return w.err
			}
		}
	}
	return nil
}

func errEnded(ended bool) error {
	if ended {
		return errors.New("write to a file that has been committed or aborted")
	}
	return nil
}

// flush writes the chunk that has been gathered.
func (w *Writer) flush(ctx context.Context) error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.d.o.Store.PutChunk(ctx, w.f.Tenant, w.f.ID, w.n, w.buf, w.bound)
	w.n++
	w.buf = w.buf[:0]
	return err
}

// Commit makes the file one that everybody of its tenant sees.
func (w *Writer) Commit(ctx context.Context) (File, error) {
	if w.err != nil || w.ended {
		return File{}, errors.Join(w.err, errEnded(w.ended))
	}
	if w.err = w.flush(ctx); w.err != nil {
		return File{}, w.err
	}
	w.f.Name, w.f.Purpose, w.f.Ready = w.Name, w.Purpose, true
	switch {
	case w.Keep > 0:
		w.f.Expires = w.f.Created.Add(w.Keep)
	case w.Keep == 0:
		w.f.Expires = w.f.Created.Add(w.d.bounds().KeepFiles)
	}
	if w.err = w.d.o.Store.SealFile(ctx, w.f, made(w.Once, string(w.f.ID))); w.err != nil {
		return File{}, w.err
	}
	w.ended, w.buf = true, nil
	return w.f, nil
}

// made is a key with what was made under it.
func made(o *idempotency.Once, id string) *idempotency.Once {
	if o == nil {
		return nil
	}
	with := *o
	with.Made = id
	return &with
}

// Abort drops what has been written, if it has not been committed. What of it cannot be
// dropped now is swept away later.
func (w *Writer) Abort(ctx context.Context) {
	if w.ended {
		return
	}
	w.ended, w.buf = true, nil
	defer w.d.tidy()
	_ = w.d.o.Store.DropFile(context.WithoutCancel(ctx), w.f.Tenant, w.f.ID)
}
