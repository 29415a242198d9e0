package front

import (
	"net"
	"sync"
)

// handed is the listener by which net/http gets connections.
type handed struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHanded() *handed {
	return &handed{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for a connection.
func (l *handed) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends it. Connections that come later are closed.
func (l *handed) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is the address of none in particular.
func (l *handed) Addr() net.Addr { return &net.TCPAddr{} }

// give hands a connection over, of which ahead has been read.
func (l *handed) give(c net.Conn, ahead []byte) {
	select {
	case l.conns <- &replayed{c, ahead}:
	case <-l.closed:
		_ = c.Close()
	}
}

// replayed is a connection of which some has been read already.
type replayed struct {
	net.Conn
	ahead []byte
}

// Read reads that first.
func (c *replayed) Read(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil
	}
	return n, nil
}

// CloseWrite closes the writing side, where there is one.
func (c *replayed) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
