package proxy

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"sluice"
)

// The bounds of the server.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	maxStreams        = 200 // of one HTTP/2 connection
	lastWords         = 2 * time.Second
	deadPeer          = 45 * time.Second // without an acknowledgement of what was sent
)

// newServer has no WriteTimeout, which would cut streams, and no ReadTimeout,
// which would cut long bodies: both have deadlines that move on.
func (p *Proxy) newServer() *http.Server {
	return &http.Server{
		Handler:           p.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		BaseContext:       func(net.Listener) context.Context { return p.base },
		ConnContext:       connContext,
		ErrorLog:          log.New(io.Discard, "", 0), // malformed requests of strangers are no news
	}
}

// connContext prepares a connection and makes it known to its requests.
func connContext(ctx context.Context, c net.Conn) context.Context {
	watchPeer(c)
	if g, ok := c.(*guard); ok {
		return context.WithValue(ctx, guardKey{}, g)
	}
	return ctx
}

// guardKey is the context's key of the connection that a request came on.
type guardKey struct{}

// guardOf is the connection that a request has for itself, nil if there is none.
func guardOf(r *http.Request) *guard {
	if r.ProtoMajor != 1 {
		return nil
	}
	g, _ := r.Context().Value(guardKey{}).(*guard)
	return g
}

// Serve accepts connections until Shutdown, MaxConns at a time. It returns nil
// then.
func (p *Proxy) Serve(l net.Listener) error {
	if err := p.server.Serve(newDoor(l, p.o.MaxConns)); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// LameDuck makes readiness fail and connections close after their answer, so
// that balancers and clients go elsewhere while all is still served.
func (p *Proxy) LameDuck() {
	p.lame.Store(true)
	p.server.SetKeepAlivesEnabled(false)
}

// Shutdown stops listening and lets requests finish until ctx ends. Those that
// have not are then ended with shutting_down, each settled and told so, and the
// error is ctx's.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.LameDuck()
	err := p.server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	p.cancel(&sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.ShuttingDown, RetryAfter: time.Second, Msg: "the gateway is shutting down", Hint: "try again"})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if p.server.Shutdown(last) != nil {
		p.server.Close()
	}
	return err
}
