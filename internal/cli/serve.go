package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

type serveCmd struct {
	Config      string `short:"c" help:"Configuration file. Without one: a simulated fleet, every hosted provider whose key variable is set, and a development tenant." placeholder:"FILE" type:"path"`
	Listen      string `help:"Data plane address, in place of the configuration's." placeholder:"ADDR"`
	AdminListen string `help:"Admin API address, likewise." placeholder:"ADDR"`
	Data        string `help:"Directory of journal and store, likewise." placeholder:"DIR" type:"path"`
}

// gateway is what serve needs of a running gateway.
type gateway interface {
	Start(ctx context.Context) error
	// Reload reads the configuration again and logs what has become of it.
	Reload(ctx context.Context) error
	// Log is the gateway's own: plain text beside it would break whoever reads it.
	Log() *slog.Logger
	// Stop drains and closes. When ctx ends it stops waiting and closes what is
	// left.
	Stop(ctx context.Context) error
}

// failing is a gateway that can end by itself, such as by losing a listener.
type failing interface {
	Failed() <-chan error
}

// Run serves until a signal ends it.
func (c *serveCmd) Run(ctx context.Context, env *Env) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	collectLate(env.Getenv)
	g, err := openGateway(ctx, env, c)
	if err != nil {
		return err
	}
	return serve(ctx, g, signals)
}

// serve starts g and obeys signals: SIGHUP reloads, the first of the others
// drains, the second quits.
func serve(ctx context.Context, g gateway, signals <-chan os.Signal) error {
	if err := g.Start(ctx); err != nil {
		return errors.Join(err, g.Stop(ctx))
	}
	var failed <-chan error
	if f, ok := g.(failing); ok {
		failed = f.Failed()
	}
	for {
		select {
		case <-ctx.Done():
			return drain(g, signals)
		case err := <-failed:
			return errors.Join(err, drain(g, signals))
		case s := <-signals:
			if s != syscall.SIGHUP {
				g.Log().Info("draining: a further signal quits at once", slog.String("signal", s.String()))
				return drain(g, signals)
			}
			_ = g.Reload(ctx) // it is in the log, and in the status
		}
	}
}

// drain stops g, and cuts the drain short at a further signal.
func drain(g gateway, signals <-chan os.Signal) error {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	done := make(chan error, 1)
	go func() { done <- g.Stop(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			if s == syscall.SIGHUP {
				continue
			}
			g.Log().Warn("quitting", slog.String("signal", s.String()))
			cut()
		}
	}
}
