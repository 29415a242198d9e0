package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/admit"
	"sluice/internal/auth"
	"sluice/internal/auth/jwt"
	"sluice/internal/cache"
	"sluice/internal/catalog"
	"sluice/internal/config"
	"sluice/internal/egress"
	"sluice/internal/exchange"
	"sluice/internal/fakellm"
	"sluice/internal/handover"
	"sluice/internal/hook"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
	"sluice/internal/pins"
	"sluice/internal/proxy"
	"sluice/internal/stateful"
	"sluice/internal/telemetry"
	"sluice/internal/versions"
)

// Options says what an App is made from. The zero value is the gateway without a
// configuration: a simulated fleet and a development key.
type Options struct {
	ConfigPath string     // configuration file; empty takes the built-in one
	Getenv     config.Env // nil is os.LookupEnv
	Stdout     io.Writer  // where a person at the terminal is greeted; nil discards
	Stderr     io.Writer  // where the log goes; nil discards

	// Program is how this binary is called, for the lines that greet; empty is
	// sluice.
	Program string

	// In place of what the configuration says, for tests and for several
	// gateways on one machine.
	Listen, AdminListen, Data string

	// Dial and Bind replace the network, towards backends and towards callers, for
	// tests.
	Dial egress.DialFunc
	Bind func(address string) (net.Listener, error)

	// OpenFile replaces the disk below the journal, for tests.
	OpenFile func(path string, flag int) (ledger.File, error)

	// SegmentBytes is the size at which the journal seals a segment, for tests in
	// which many come and go; 0 is the journal's own.
	SegmentBytes int64
}

// App is a running gateway.
type App struct {
	o       Options
	log     *slog.Logger
	metrics *telemetry.Metrics
	started time.Time

	journal   *ledger.Journal
	gate      *admit.Gate
	keeper    *auth.Keeper
	tokens    *jwt.Verifier
	keys      *idempotency.Keeper
	pins      *pins.Keeper
	exchange  *exchange.Exchange
	state     *stateful.Keeper
	inspector *hook.Inspector
	desk      *jobs.Desk
	handOver  *handover.Agent
	answers   *cache.Cache
	proxy     *proxy.Proxy
	store     lateStore
	settings  config.Settings // what the process was started with; most of it stays in force
	hasher    *auth.Hasher    // the one in force: a new pepper takes a restart
	simulated *simulation

	data, adminListener net.Listener
	adminServer         *http.Server
	admin               atomic.Pointer[admin.API] // nil until the store is there
	snapshot            atomic.Pointer[config.Snapshot]
	ready               atomic.Bool // store there, counters seeded
	draining            atomic.Bool

	history *versions.History
	held    atomic.Pointer[versions.Held] // what is in force in place of the file; nil if the file is
	markKey sluice.Secret                 // of the marks of secrets in kept texts

	reloading  sync.Mutex                     // serialises what puts something in force, and guards up to retired
	applied    *made                          // what is in force
	followed   string                         // hash of the file as it was read last
	prices     *catalog.Catalog               // nil until it is read
	retired    map[sluice.BackendID]time.Time // when backends that are gone were taken away
	reloads    atomic.Pointer[reloadState]
	devKey     string // credential of the development tenant; empty with a configuration file
	firstToken string // the bootstrap token, on the run that made it

	serving sync.WaitGroup
	failed  chan error // one place for each server; a server that ended by itself
	cleanup cleanupStack
}

// New builds a gateway and binds its ports. On an error nothing is left behind.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Bind == nil {
		o.Bind = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	}
	if o.Program == "" {
		o.Program = "sluice"
	}
	a := &App{o: o, started: time.Now(), failed: make(chan error, 2), retired: map[sluice.BackendID]time.Time{}}
	if err := a.setup(ctx); err != nil {
		return nil, errors.Join(err, a.cleanup.run(ctx))
	}
	return a, nil
}

// Start serves. It does not block.
func (a *App) Start(context.Context) error {
	a.serving.Go(func() {
		if err := a.proxy.Serve(a.data); err != nil {
			a.failed <- fmt.Errorf("data plane: %w", err)
		}
	})
	a.serving.Go(func() {
		if err := a.adminServer.Serve(a.adminListener); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("admin plane: %w", err)
		}
	})
	a.greet()
	return nil
}

// Log is where the gateway tells what happens to it.
func (a *App) Log() *slog.Logger { return a.log }

// Failed tells of a server that has ended by itself: the gateway should stop.
func (a *App) Failed() <-chan error { return a.failed }

// Addr is where the data plane listens.
func (a *App) Addr() string { return a.data.Addr().String() }

// AdminAddr is where the admin plane listens.
func (a *App) AdminAddr() string { return a.adminListener.Addr().String() }

// Fleet is the fleet simulated in this process, nil if there is none.
func (a *App) Fleet() *fakellm.Server {
	if a.simulated == nil {
		return nil
	}
	return a.simulated.server
}

// Stop takes the gateway down: lame duck, drain, settle, flush, close. ctx bounds
// it all; what has not finished by then is cut and settled. It is called once.
func (a *App) Stop(ctx context.Context) error {
	a.draining.Store(true)
	settings := a.snapshot.Load().Settings
	a.proxy.LameDuck()
	a.desk.Hold()
	a.exchange.Close() // nobody waits for what shadows answer
	a.log.Info("stopping", slog.String("lame_duck", settings.LameDuck.String()), slog.String("drain", settings.Drain.String()))
	pause(ctx, settings.LameDuck)
	return a.cleanup.run(ctx)
}

// Run is New, Start, and Stop when ctx ends.
func Run(ctx context.Context, o Options) error {
	a, err := New(ctx, o)
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-a.Failed():
	}
	return errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// cleanupStack undoes what setup did, and reloads that have started something, last
// first.
type cleanupStack struct {
	mu    sync.Mutex
	steps []cleanupStep
}

type cleanupStep struct {
	name string
	undo func(context.Context) error
}

// push registers how a step is undone, as soon as it has been done.
func (s *cleanupStack) push(name string, undo func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, cleanupStep{name, undo})
}

func (s *cleanupStack) pop() (last cleanupStep, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) == 0 {
		return last, false
	}
	last = s.steps[len(s.steps)-1]
	s.steps = s.steps[:len(s.steps)-1]
	return last, true
}

// run undoes everything once; a step that fails does not keep others from it.
func (s *cleanupStack) run(ctx context.Context) error {
	var errs []error
	for last, ok := s.pop(); ok; last, ok = s.pop() {
		if err := last.undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", last.name, err))
		}
	}
	return errors.Join(errs...)
}
