package jobs

import (
	"context"
	"fmt"
	"io"

	"sluice"
)

// Reader reads one file, a chunk at a time. It belongs to one goroutine.
type Reader struct {
	File File

	d     *Desk
	next  int // chunk
	held  int // which chunk chunk is; -1 if none
	chunk []byte
}

// Open begins to read a file.
func (d *Desk) Open(ctx context.Context, t sluice.TenantID, id FileID) (*Reader, error) {
	f, err := d.File(ctx, t, id)
	if err != nil {
		return nil, err
	}
	return &Reader{File: f, d: d, held: -1}, nil
}

// Next is the next part of the file, io.EOF behind its end. It is valid until the
// following call.
func (r *Reader) Next(ctx context.Context) ([]byte, error) {
	if int64(r.next)*ChunkBytes >= r.File.Bytes {
		return nil, io.EOF
	}
	p, err := r.load(ctx, r.next)
	if err == nil {
		r.next++
	}
	return p, err
}

// Copy writes what is left of the file to w.
func (r *Reader) Copy(ctx context.Context, w io.Writer) error {
	for {
		p, err := r.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
}

// load reads chunk n, unless it is held.
func (r *Reader) load(ctx context.Context, n int) ([]byte, error) {
	if r.held == n {
		return r.chunk, nil
	}
	p, err := r.d.o.Store.Chunk(ctx, r.File.Tenant, r.File.ID, n)
	if err != nil {
		return nil, err
	}
	if want := min(r.File.Bytes-int64(n)*ChunkBytes, ChunkBytes); int64(len(p)) != want {
		return nil, fmt.Errorf("chunk %d of file %s has %d bytes, not %d", n, r.File.ID, len(p), want)
	}
	r.chunk, r.held = p, n
	return p, nil
}

// from is what the chunk that an offset is in has from there on, io.EOF behind the end. It
// is valid until the following call.
func (r *Reader) from(ctx context.Context, off int64) ([]byte, error) {
	if off >= r.File.Bytes {
		return nil, io.EOF
	}
	p, err := r.load(ctx, int(off/ChunkBytes))
	if err != nil {
		return nil, err
	}
	return p[off%ChunkBytes:], nil
}

// at reads size bytes from an offset, in memory of their own.
func (r *Reader) at(ctx context.Context, off int64, size int) ([]byte, error) {
	out := make([]byte, 0, size)
	for len(out) < size {
		p, err := r.load(ctx, int(off/ChunkBytes))
		if err != nil {
			return nil, err
		}
		begin := int(off % ChunkBytes)
		if begin >= len(p) {
			return nil, fmt.Errorf("file %s ends before %d", r.File.ID, off)
		}
		k := min(len(p)-begin, size-len(out))
		out = append(out, p[begin:begin+k]...)
		off += int64(k)
	}
	return out, nil
}
