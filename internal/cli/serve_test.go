package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"sluice/test/bubble"
)

// scripted is a gateway that says what was asked of it.
type scripted struct {
	did       []string
	reloadErr error
	startErr  error
	log       bytes.Buffer
	stopping  chan struct{} // Stop waits for it, or for its context
}

func (s *scripted) Start(context.Context) error { s.did = append(s.did, "start"); return s.startErr }

func (s *scripted) Reload(context.Context) error { s.did = append(s.did, "reload"); return s.reloadErr }

func (s *scripted) Log() *slog.Logger { return slog.New(slog.NewJSONHandler(&s.log, nil)) }

func (s *scripted) Stop(ctx context.Context) error {
	s.did = append(s.did, "stop")
	select {
	case <-s.stopping:
		return nil
	case <-ctx.Done():
		s.did = append(s.did, "cut")
		return ctx.Err()
	}
}

func TestSignals(t *testing.T) {
	for name, c := range map[string]struct {
		signals []os.Signal
		held    bool // Stop does not end by itself
		reload  error
		want    string
		talk    string
		fails   bool
	}{
		"term drains":                 {[]os.Signal{syscall.SIGTERM}, false, nil, "start stop", "draining", false},
		"interrupt drains":            {[]os.Signal{os.Interrupt}, false, nil, "start stop", "draining", false},
		"hangup reloads":              {[]os.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM}, false, nil, "start reload reload stop", "", false},
		"a failed reload goes on":     {[]os.Signal{syscall.SIGHUP, syscall.SIGTERM}, false, errors.New("line 3"), "start reload stop", "", false},
		"second term quits":           {[]os.Signal{syscall.SIGTERM, syscall.SIGTERM}, true, nil, "start stop cut", "quitting", true},
		"a hangup while it drains":    {[]os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGTERM}, true, nil, "start stop cut", "quitting", true},
		"interrupt cuts a term drain": {[]os.Signal{syscall.SIGTERM, os.Interrupt}, true, nil, "start stop cut", "quitting", true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				g := &scripted{reloadErr: c.reload, stopping: make(chan struct{})}
				if !c.held {
					close(g.stopping)
				}
				signals := make(chan os.Signal)
				result := make(chan error, 1)
				go func() { result <- serve(t.Context(), g, signals) }()
				for _, s := range c.signals {
					synctest.Wait()
					signals <- s
				}
				err := <-result
				if got := strings.Join(g.did, " "); got != c.want {
					t.Errorf("did %q, want %q", got, c.want)
				}
				if (err != nil) != c.fails {
					t.Errorf("error %v, want one: %t", err, c.fails)
				}
				if !strings.Contains(g.log.String(), c.talk) {
					t.Errorf("log %q, want %q in it", g.log.String(), c.talk)
				}
			})
		})
	}
}

func TestFailedStartCleansUp(t *testing.T) {
	g := &scripted{startErr: errors.New("port in use"), stopping: make(chan struct{})}
	close(g.stopping)
	if err := serve(t.Context(), g, nil); err == nil || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(g.did, " "); got != "start stop" {
		t.Errorf("did %q", got)
	}
}
