package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// The bounds of a transport.
const (
	DefaultConnect    = 5 * time.Second  // for look-up and connect together
	handshakeTimeout  = 5 * time.Second  // for TLS
	idleConnTimeout   = 90 * time.Second // how long a connection waits for its next request
	maxIdleConns      = 4096             // over all hosts
	maxIdlePerHost    = 512              // a replica serves up to a few hundred streams at a time
	maxResponseHeader = 64 << 10         // bytes
	connBuffer        = 16 << 10         // bytes, each way
)

// TransportOptions tells transports apart. It is comparable, so that one can be
// kept for each value of it.
type TransportOptions struct {
	// AllowPrivate lets private addresses be dialled. Set it for hosts that the
	// operator's configuration named as private, and for no other.
	AllowPrivate bool
	// Connect bounds look-up and connect together; 0 means DefaultConnect.
	Connect time.Duration
}

func (o TransportOptions) connect() time.Duration {
	if o.Connect > 0 {
		return o.Connect
	}
	return DefaultConnect
}

// Transport makes a round-tripper that dials through d. It offers HTTP/2 where
// TLS does, asks for no compression, and neither follows redirects nor reads
// proxy variables. It sets no deadline on an answer: the caller's context does.
func (d *Dialer) Transport(o TransportOptions) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := d.dial(ctx, network, addr, o)
			if err != nil {
				return nil, err
			}
			return &counted{Conn: c}, nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(256)},
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleConnTimeout,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxResponseHeaderBytes: maxResponseHeader,
		ReadBufferSize:         connBuffer,
		WriteBufferSize:        connBuffer,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// DialContext opens one connection under the default bounds, for clients that
// are no HTTP transport. Private addresses are refused.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.dial(ctx, network, addr, TransportOptions{})
}

// DialWith is DialContext under other bounds, for what the operator's configuration names.
func (d *Dialer) DialWith(ctx context.Context, network, addr string, o TransportOptions) (net.Conn, error) {
	return d.dial(ctx, network, addr, o)
}
