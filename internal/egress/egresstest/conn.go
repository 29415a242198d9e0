package egresstest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is one end of a connection.
type Conn struct {
	in, out       *pipe
	local, remote address
}

var _ net.Conn = (*Conn)(nil)

// Read reads what the peer wrote, io.EOF after its close.
func (c *Conn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write waits while the pipe is full.
func (c *Conn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close ends both directions: the peer reads what is left, then io.EOF, and its
// writes fail.
func (c *Conn) Close() error {
	c.in.closeRead() // first: what the peer says when it sees the end is not read any more
	c.out.closeWrite(io.EOF)
	return nil
}

// CloseWrite ends one direction: the peer reads io.EOF and may still write.
func (c *Conn) CloseWrite() error {
	c.out.closeWrite(io.EOF)
	return nil
}

// Reset ends both directions at once: what is under way is lost and the peer
// gets ECONNRESET.
func (c *Conn) Reset() {
	c.out.reset()
	c.in.reset()
}

// Quiet reports whether a read would wait: nothing has come, and the peer is there.
func (c *Conn) Quiet() bool { return c.in.quiet() }

func (c *Conn) LocalAddr() net.Addr  { return c.local }
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

func (c *Conn) SetDeadline(t time.Time) error {
	c.in.readDeadline(t)
	c.out.writeDeadline(t)
	return nil
}

func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.readDeadline(t)
	return nil
}

func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.writeDeadline(t)
	return nil
}

// pipe is one direction.
type pipe struct {
	size int

	mu       sync.Mutex
	cond     *sync.Cond // on mu: anything below changed
	buf      []byte
	end      error // what a reader gets once buf is empty
	readGone bool  // the reader has closed
	broken   bool
	r, w     deadline
}

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newPipe(size int) *pipe {
	p := &pipe{size: size}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readGone:
			return 0, net.ErrClosed
		case p.broken:
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		case p.r.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p.buf) > 0:
			n := copy(b, p.buf)
			p.buf = p.buf[:copy(p.buf, p.buf[n:])]
			p.cond.Broadcast()
			return n, nil
		case p.end != nil:
			return 0, p.end
		case len(b) == 0:
			return 0, nil
		}
		p.cond.Wait()
	}
}

func (p *pipe) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.readGone && !p.broken && len(p.buf) == 0 && p.end == nil
}

func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.broken, p.readGone:
			return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
		case p.end != nil:
			return n, net.ErrClosed
		case p.w.passed():
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		}
		if room := p.size - len(p.buf); room > 0 {
			k := min(room, len(b))
			p.buf = append(p.buf, b[:k]...)
			n, b = n+k, b[k:]
			p.cond.Broadcast()
			continue
		}
		p.cond.Wait()
	}
}

func (p *pipe) closeWrite(end error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		p.end = end
	}
	p.w.stop()
	p.cond.Broadcast()
}

func (p *pipe) closeRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readGone = true
	p.r.stop()
	p.cond.Broadcast()
}

func (p *pipe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken, p.buf = true, nil
	p.r.stop()
	p.w.stop()
	p.cond.Broadcast()
}

func (p *pipe) readDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r.set(t, p)
}

func (p *pipe) writeDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.set(t, p)
}

// set arms d; p.mu is held.
func (d *deadline) set(t time.Time, p *pipe) {
	d.stop()
	d.at = t
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.cond.Broadcast()
		})
	}
	p.cond.Broadcast()
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
