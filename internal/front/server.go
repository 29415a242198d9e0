package front

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// newGrace is how long a new connection may be silent while the server shuts down, as
// net/http has it.
const newGrace = 5 * time.Second

// The pauses between looks at what is still served, and after an accept that failed.
const (
	shortPause = time.Millisecond
	longPause  = 500 * time.Millisecond
	retryPause = 50 * time.Millisecond
)

// Options is what a Server works with. All are needed.
type Options struct {
	Base context.Context                // of all requests
	Find func(path string) http.Handler // what serves a plain request to a path; nil if net/http does
	Idle time.Duration                  // that a connection may wait for a request
	// Rest serves connections with a request that is not plain, http.Server.Serve say,
	// until the listener is closed. What was read of such a connection is read again.
	Rest func(net.Listener) error
}

// Server serves connections. Shutdown or Close ends it.
type Server struct {
	o       Options
	rest    *handed
	lame    atomic.Bool
	dated   atomic.Pointer[dated]
	running sync.WaitGroup // goroutines of connections

	mu       sync.Mutex
	conns    map[*conn]struct{} // guarded by mu
	listener net.Listener       // guarded by mu; nil before Serve
	watch    *watch             // guarded by mu; nil until there is a connection for it
	blind    bool               // guarded by mu: there is none
	closing  bool               // guarded by mu
}

// New makes a Server.
func New(o Options) *Server {
	return &Server{o: o, rest: newHanded(), conns: make(map[*conn]struct{})}
}

// Serve accepts connections until Shutdown or Close, and returns nil then.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listener = l
	s.mu.Unlock()
	var rest sync.WaitGroup
	rest.Go(func() { _ = s.o.Rest(s.rest) }) // it ends with its listener
	err := s.accept(l)
	if err != nil {
		s.rest.Close()
	}
	rest.Wait()
	return err
}

// accept starts a goroutine for each connection.
func (s *Server) accept(l net.Listener) error {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			s.start(c)
		case s.ends():
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // some will be given back
			time.Sleep(retryPause)
		default:
			return err
		}
	}
}

func (s *Server) ends() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// start begins to serve a connection.
func (s *Server) start(accepted net.Conn) {
	c := newConn(s, accepted)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = accepted.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.look(c)
	s.running.Go(c.serve)
}

// look has the kernel watch a connection, if it can. mu is held.
func (s *Server) look(c *conn) {
	fd, ok := descriptor(c.Conn)
	if !ok || s.blind {
		return
	}
	if s.watch == nil {
		w, err := newWatch()
		if s.blind = err != nil; s.blind {
			return
		}
		s.watch = w
	}
	c.watched = s.watch.add(fd, c)
}

// unwatch ends that, before another has the descriptor.
func (s *Server) unwatch(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.watched != 0 && s.watch != nil {
		s.watch.remove(c)
	}
}

// forget notes that a connection is not served here any more.
func (s *Server) forget(c *conn) {
	s.unwatch(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// LameDuck has connections close after their answer, at once where none is under way.
func (s *Server) LameDuck() {
	s.lame.Store(true)
	s.stop()
}

// stop closes the connections on which nothing is served, and reports whether all are.
func (s *Server) stop() (all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = true
	for c := range s.conns {
		all = c.stop() && all
	}
	return all && len(s.conns) == 0
}

// Shutdown accepts no more and waits until what is served has ended, or ctx has: then
// the error is ctx's, and Close ends the rest.
func (s *Server) Shutdown(ctx context.Context) error {
	s.close()
	s.LameDuck()
	pause := shortPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for !s.stop() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			pause = min(2*pause, longPause)
			timer.Reset(pause)
		}
	}
	s.end()
	s.running.Wait()
	return nil
}

// Close ends everything at once.
func (s *Server) Close() {
	s.close()
	s.mu.Lock()
	for c := range s.conns {
		c.leave()
		_ = c.Conn.Close()
	}
	s.mu.Unlock()
	s.end()
}

// close stops accepting.
func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing = true; s.listener != nil {
		_ = s.listener.Close()
	}
}

// end ends what is beside the connections.
func (s *Server) end() {
	s.rest.Close()
	s.mu.Lock()
	w := s.watch
	s.watch, s.blind = nil, true
	s.mu.Unlock()
	if w != nil {
		w.close()
	}
}

// dated is the time of a second as answers tell it.
type dated struct {
	second int64
	text   string
}

// date is the time now, for a Date header.
func (s *Server) date() string {
	now := time.Now()
	if d := s.dated.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &dated{now.Unix(), now.UTC().Format(http.TimeFormat)}
	s.dated.Store(d)
	return d.text
}
