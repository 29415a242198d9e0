package proxy

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"sluice/internal/socket"
)

// door lets so many connections in at a time that descriptors are left for
// backends, the store and the operator (P13). The others wait in the kernel.
type door struct {
	net.Listener
	places chan struct{} // as many as may be inside; nil for no bound
	closed chan struct{}
	once   sync.Once
}

func newDoor(l net.Listener, most int) *door {
	d := &door{Listener: l, closed: make(chan struct{})}
	if most > 0 {
		d.places = make(chan struct{}, most)
	}
	return d
}

// Accept waits for a place and for a client.
func (d *door) Accept() (net.Conn, error) {
	if d.places != nil {
		select {
		case d.places <- struct{}{}:
		case <-d.closed:
			return nil, net.ErrClosed
		}
	}
	c, err := d.Listener.Accept()
	if err != nil {
		d.leave()
		return nil, err
	}
	watchPeer(c)
	return &guest{Conn: socket.Wrap(c), leave: sync.OnceFunc(d.leave)}, nil
}

func (d *door) leave() {
	if d.places != nil {
		<-d.places
	}
}

// Close closes the listener.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Listener.Close()
}

// guest is a connection that has been let in.
type guest struct {
	net.Conn
	leave func() // gives its place at the door back, once
}

// Close closes the connection and gives its place back.
func (g *guest) Close() error {
	g.leave()
	return g.Conn.Close()
}

// CloseWrite closes the writing side, where there is one.
func (g *guest) CloseWrite() error {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// SyscallConn is the connection's descriptor, where there is one.
func (g *guest) SyscallConn() (syscall.RawConn, error) {
	if c, ok := g.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// guards is the listener of connections that net/http serves.
type guards struct{ net.Listener }

// Accept puts a guard before a connection, on which something has come.
func (l guards) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &guard{Conn: c}, nil
}
