package fakellm

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"sluice"
)

// Config is what `sluice fakellm` is started with.
type Config struct {
	Listen  string // address; empty means 127.0.0.1:8090
	Script  string // file; empty for none
	Seed    uint64
	Instant bool
	Speed   int64 // times as fast as the fleet's figures; below 2 changes nothing
	Strict  bool
	Book    int
}

// DefaultListen is the address of a fakellm that is told none.
const DefaultListen = "127.0.0.1:8090"

// Service is a Server on its own listener, as the command runs it.
type Service struct {
	Server *Server
	ln     net.Listener
	http   *http.Server
}

// Listen makes the server and opens its address; Run serves it.
func Listen(c Config) (*Service, error) {
	o := Options{Seed: c.Seed, Instant: c.Instant, Speed: c.Speed, Strict: c.Strict, Book: c.Book}
	if c.Script != "" {
		script, err := LoadScript(c.Script)
		if err != nil {
			return nil, err
		}
		o.Script = script
	}
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	ln, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, &sluice.Error{
			Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Param: "listen", Msg: "names " + c.Listen + ", which cannot be listened on", Err: err,
			Hint: "stop what listens there, or choose another address with --listen",
		}
	}
	return &Service{Server: s, ln: ln, http: &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}}, nil
}

// Addr is the address it listens on.
func (s *Service) Addr() string { return s.ln.Addr().String() }

// Run serves until the context ends, then cuts what is in flight.
func (s *Service) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	err := s.http.Serve(s.ln)
	s.Server.Close()
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return err
}
