package proxy

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"sluice"
	"sluice/internal/front"
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
func (p *Proxy) newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           p.impatient(h),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		BaseContext:       func(net.Listener) context.Context { return p.base },
		ConnContext:       connContext,
		ErrorLog:          log.New(io.Discard, "", 0), // malformed requests of strangers are no news
	}
}

// impatient bounds how long a body is waited for that no handler reads: net/http reads
// what is left of it, and sets no time to that. Who reads it moves the deadline on.
func (p *Proxy) impatient(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own := lineOf(w, r); r.ContentLength != 0 && own != nil && !own.Whole() {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.o.BodyGrace))
		}
		h.ServeHTTP(w, r)
	})
}

// newFront is what serves requests that are plain, and hands the others to the server.
func (p *Proxy) newFront(operations map[string]http.HandlerFunc) *front.Server {
	return front.New(front.Options{
		Base: p.base, Idle: idleTimeout,
		Find: func(path string) http.Handler {
			if h := operations[path]; h != nil {
				return h
			}
			return nil
		},
		Rest: func(l net.Listener) error { return p.server.Serve(guards{l}) },
	})
}

// connContext makes a connection known to its requests.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if g, ok := c.(*guard); ok {
		return context.WithValue(ctx, guardKey{}, g)
	}
	return ctx
}

// guardKey is the context's key of the connection that a request came on.
type guardKey struct{}

// ownLine is a connection that a request has for itself.
type ownLine interface {
	Whole() bool           // the request has come to its end, so that to read it cannot wait
	WriteUntil() time.Time // the write deadline in force, zero for none
}

// lineOf is the connection that a request has for itself, nil if there is none.
func lineOf(w http.ResponseWriter, r *http.Request) ownLine {
	if own, ok := w.(*front.Response); ok {
		return own
	}
	if g, ok := r.Context().Value(guardKey{}).(*guard); ok && r.ProtoMajor == 1 {
		return g
	}
	return nil
}

// Serve accepts connections until Shutdown, MaxConns at a time. It returns nil
// then.
func (p *Proxy) Serve(l net.Listener) error {
	return p.front.Serve(newDoor(l, p.o.MaxConns))
}

// LameDuck makes readiness fail and connections close after their answer, so
// that balancers and clients go elsewhere while all is still served.
func (p *Proxy) LameDuck() {
	p.lame.Store(true)
	p.front.LameDuck()
	p.server.SetKeepAlivesEnabled(false)
}

// Shutdown stops listening and lets requests finish until ctx ends. Those that
// have not are then ended with shutting_down, each settled and told so, and the
// error is ctx's.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.LameDuck()
	err := p.end(ctx)
	if err == nil {
		return nil
	}
	p.cancel(&sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.ShuttingDown, RetryAfter: time.Second, Msg: "the gateway is shutting down", Hint: "try again"})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if p.end(last) != nil {
		p.front.Close()
		p.server.Close()
	}
	return err
}

// end waits for all requests, until ctx ends.
func (p *Proxy) end(ctx context.Context) error {
	if err := p.front.Shutdown(ctx); err != nil {
		return err
	}
	return p.server.Shutdown(ctx)
}
