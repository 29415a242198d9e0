package egresstest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// DefaultBuffer is what a pipe holds where Net.Buffer says nothing, in bytes.
const DefaultBuffer = 64 << 10

// Net is a network. Its zero value is empty and ready.
type Net struct {
	// Buffer is what each direction of a connection holds before its writer
	// waits, in bytes; 0 means DefaultBuffer. Set it before the first dial.
	Buffer int

	mu        sync.Mutex
	listeners map[string]*listener
	holes     map[string]bool
	dials     map[string]int
}

// Listen accepts connections to addr, host:port as it is dialled.
func (n *Net) Listen(addr string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = make(map[string]*listener)
	}
	l := &listener{net: n, addr: address(addr), conns: make(chan *Conn, 4096), done: make(chan struct{})}
	n.listeners[addr] = l
	return l
}

// Blackhole lets dials to addr hang until their context ends.
func (n *Net) Blackhole(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holes == nil {
		n.holes = make(map[string]bool)
	}
	n.holes[addr] = true
}

// Dials counts the dials to addr so far.
func (n *Net) Dials(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[addr]
}

// Dial connects to a listener. It is an egress.DialFunc.
func (n *Net) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	l, hole := n.listeners[addr], n.holes[addr]
	if n.dials == nil {
		n.dials = make(map[string]int)
	}
	n.dials[addr]++
	n.mu.Unlock()
	if hole {
		<-ctx.Done()
		return nil, opError(network, addr, ctx.Err())
	}
	if l == nil {
		return nil, opError(network, addr, syscall.ECONNREFUSED)
	}
	client, server := n.pair(addr)
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, opError(network, addr, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, opError(network, addr, ctx.Err())
	}
}

func (n *Net) pair(addr string) (client, server *Conn) {
	size := n.Buffer
	if size <= 0 {
		size = DefaultBuffer
	}
	up, down := newPipe(size), newPipe(size)
	client = &Conn{in: down, out: up, local: "client:0", remote: address(addr)}
	server = &Conn{in: up, out: down, local: address(addr), remote: "client:0"}
	return client, server
}

func opError(network, addr string, err error) error {
	return &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: err}
}

type listener struct {
	net   *Net
	addr  address
	conns chan *Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		if l.net.listeners[string(l.addr)] == l {
			delete(l.net.listeners, string(l.addr))
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
