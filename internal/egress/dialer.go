package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"sluice/internal/socket"
)

// LastGood is how long the last address of a name stands in for it once the
// name has stopped resolving.
const LastGood = 30 * time.Second

// maxRemembered bounds the names whose last address is kept. They come from
// the configuration, so the bound is met by no sane one.
const maxRemembered = 4096

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Options configures a Dialer. The zero value dials the real network.
type Options struct {
	// Dial replaces the network, for tests. Addresses that are written as
	// numbers are still checked; what a name resolves to is its own business
	// where Lookup is nil.
	Dial DialFunc
	// Lookup replaces the resolver beside Dial, which is then asked for the first
	// address that it gives, if Check allows that.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Resolver replaces the system's resolver; nil means net.DefaultResolver.
	Resolver *net.Resolver
}

// Dialer opens connections to addresses that Check allows.
type Dialer struct {
	o Options

	mu   sync.Mutex
	last map[string]remembered // by host name; guarded by mu
}

// remembered is what a name resolved to when it last did.
type remembered struct {
	ip      netip.Addr
	failing time.Time // first failed look-up since; zero while it resolves
}

// New makes a Dialer.
func New(o Options) *Dialer {
	return &Dialer{o: o, last: make(map[string]remembered)}
}

// dial connects within timeout.
func (d *Dialer) dial(ctx context.Context, network, addr string, o TransportOptions) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.connect())
	defer cancel()
	if d.o.Dial != nil {
		return d.dialInjected(ctx, network, addr, o.AllowPrivate)
	}
	nd := &net.Dialer{
		Resolver:  d.o.Resolver,
		KeepAlive: 15 * time.Second,
		ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return checkAddr(resolved, o.AllowPrivate)
		},
	}
	conn, err := nd.DialContext(ctx, network, addr)
	host, port, splitErr := net.SplitHostPort(addr)
	if splitErr != nil {
		return conn, err
	}
	if err == nil {
		d.remember(host, conn.RemoteAddr())
		return socket.Wrap(conn), nil
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && ctx.Err() == nil {
		if ip, ok := d.lastGood(dns.Name, host); ok {
			if conn, err = nd.DialContext(ctx, network, net.JoinHostPort(ip.String(), port)); err == nil {
				return socket.Wrap(conn), nil
			}
		}
	}
	return nil, err
}

func (d *Dialer) dialInjected(ctx context.Context, network, addr string, allowPrivate bool) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err != nil && d.o.Lookup != nil {
		ips, err := d.o.Lookup(ctx, host)
		if err != nil || len(ips) == 0 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Name: host, IsNotFound: true, UnwrapErr: err}}
		}
		host = ips[0].String()
		addr = net.JoinHostPort(host, port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := Check(ip, allowPrivate); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
	}
	return d.o.Dial(ctx, network, addr)
}

// checkAddr judges the address that a socket is about to connect to.
func checkAddr(resolved string, allowPrivate bool) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return ErrForbidden
	}
	return Check(ap.Addr(), allowPrivate)
}

func (d *Dialer) remember(host string, to net.Addr) {
	tcp, ok := to.(*net.TCPAddr)
	if !ok {
		return
	}
	ip, ok := netip.AddrFromSlice(tcp.IP)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.last[host]; known || len(d.last) < maxRemembered {
		d.last[host] = remembered{ip: ip.Unmap()}
	}
}

// lastGood is the address to use while the name does not resolve.
func (d *Dialer) lastGood(failed, host string) (netip.Addr, bool) {
	if failed != host {
		return netip.Addr{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.last[host]
	if !ok {
		return netip.Addr{}, false
	}
	if r.failing.IsZero() {
		r.failing = time.Now()
		d.last[host] = r
	}
	return r.ip, time.Since(r.failing) <= LastGood
}
