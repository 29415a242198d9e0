package front

import (
	"io"
	"time"
)

// body is that of the request that is served. It belongs to the handler until that
// returns.
type body struct {
	c    *conn
	left int64 // bytes to come
	err  error
}

func (b *body) start(length int64) {
	b.left, b.err = length, nil
	if length == 0 {
		b.c.listen()
	}
}

// Read reads the body: what was read with the head first.
func (b *body) Read(p []byte) (n int, err error) {
	switch {
	case b.left == 0:
		return 0, io.EOF
	case b.err != nil || len(p) == 0:
		return 0, b.err
	}
	p = p[:min(int64(len(p)), b.left)]
	if c := b.c; c.w > c.r {
		n = copy(p, c.buf[c.r:c.w])
		c.r += n
	} else if n, err = c.Read(p); err != nil && n == 0 {
		if b.err = err; err == io.EOF {
			b.err = io.ErrUnexpectedEOF
		}
		return 0, b.err
	}
	if b.left -= int64(n); b.left == 0 {
		b.c.listen()
	}
	return n, nil
}

// Close does nothing: what is left is read when the handler has returned.
func (b *body) Close() error { return nil }

// ahead reports whether all of it has come.
func (b *body) ahead() bool { return b.left <= int64(b.c.w-b.c.r) }

// skip reads what the handler has left. It reports whether it could.
func (b *body) skip() bool {
	if b.left == 0 {
		return true
	}
	if b.err != nil || b.left > restRead {
		return false
	}
	if !b.ahead() {
		_ = b.c.SetReadDeadline(time.Now().Add(restWait))
	}
	_, err := io.Copy(io.Discard, b)
	return err == nil
}
