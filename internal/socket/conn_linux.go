package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// Conn is a TCP connection.
type Conn struct {
	net.Conn
	raw     syscall.RawConn
	in, out transfer
}

// transfer is one direction. Its mutex is held by who transfers.
type transfer struct {
	sync.Mutex
	step func(fd uintptr) (done bool) // made once
	p    []byte                       // still to be transferred
	n    int                          // bytes transferred
	err  error
}

// Wrap makes a Conn of a TCP connection and returns any other as it is.
func Wrap(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	w := &Conn{Conn: c, raw: raw}
	w.in.step, w.out.step = w.in.read, w.out.write
	return w
}

// SyscallConn is the connection's descriptor.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

// CloseWrite shuts down the writing side.
func (c *Conn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// Read reads what has come, and waits while nothing has.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return c.Conn.Read(p)
	}
	t := &c.in
	t.Lock()
	defer t.Unlock()
	t.p, t.n, t.err = p, 0, nil
	err := c.raw.Read(t.step)
	t.p = nil
	switch {
	case err != nil:
		return 0, named("read", err)
	case t.err != nil:
		return 0, c.failed("read", t.err)
	case t.n == 0:
		return 0, io.EOF
	}
	return t.n, nil
}

// Write writes all of p.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return c.Conn.Write(p)
	}
	t := &c.out
	t.Lock()
	defer t.Unlock()
	t.p, t.n, t.err = p, 0, nil
	err := c.raw.Write(t.step)
	t.p = nil
	switch {
	case err != nil:
		return t.n, named("write", err)
	case t.err != nil:
		return t.n, c.failed("write", t.err)
	}
	return t.n, nil
}

// read is a step of Read. It is false to wait.
func (t *transfer) read(fd uintptr) bool {
	n, err := Read(fd, t.p)
	if err == syscall.EAGAIN {
		return false
	}
	t.n, t.err = n, err
	return true
}

// write is a step of Write. It is false to wait.
func (t *transfer) write(fd uintptr) bool {
	for len(t.p) > 0 {
		n, err := Write(fd, t.p)
		t.n += n
		t.p = t.p[n:]
		if err == syscall.EAGAIN {
			return false
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			t.err = err
			return true
		}
	}
	return true
}

// named is a waiting's error with the name that the net package has for it.
func named(op string, err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		e.Op = op
	}
	return err
}

// failed is the error of a call.
func (c *Conn) failed(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
