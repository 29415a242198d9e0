package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/admit"
	"sluice/internal/auth"
	"sluice/internal/batch"
	"sluice/internal/egress"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/exchange"
	"sluice/internal/fetch"
	"sluice/internal/handover"
	"sluice/internal/hook"
	"sluice/internal/ledger"
	"sluice/internal/proxy"
	"sluice/internal/route"
	"sluice/internal/telemetry"
	"sluice/internal/upstream"
	"sluice/internal/versions"
)

// drainRetry is the longest pause of a failing drain: a store that comes back is
// used within this time.
const drainRetry = time.Second

// lastDrain bounds the wait of a gateway that stops for a store that takes
// nothing. What is left is in the journal, synced, and drained by the next start.
const lastDrain = 5 * time.Second

// setup builds the graph. It is one straight line: see the package
// documentation.
func (a *App) setup(ctx context.Context) error {
	first, held, ended, err := a.startWith()
	if err != nil {
		return err
	}
	snapshot := first.snapshot
	a.applied = first
	a.held.Store(held)
	a.snapshot.Store(snapshot)
	settings := snapshot.Settings
	a.settings = settings
	logs := telemetry.LogOptions{Level: settings.LogLevel, Format: logFormat(settings.LogJSON)}
	stderr := telemetry.Shared(a.o.Stderr)
	a.log = telemetry.NewLogger(stderr, logs)
	requests := telemetry.NewRequestLog(stderr, logs)
	a.cleanup.push("write the last requests' log", func(context.Context) error { requests.Close(); return nil })
	for _, w := range snapshot.Warnings {
		a.log.Warn(w.Error())
	}

	if a.data, err = a.listen("listen", settings.Listen); err != nil {
		return err
	}
	if a.adminListener, err = a.listen("admin.listen", settings.AdminListen); err != nil {
		return err
	}
	if err := os.MkdirAll(settings.Data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}

	build := admin.ReadBuild()
	a.metrics = telemetry.New(telemetry.Options{Version: build.Version, Revision: build.Revision})
	a.metrics.Declare(snapshot.Table)
	a.metrics.DeclareHooks(snapshot.Hooks)
	hooks := telemetry.Hooks{Metrics: a.metrics, Log: a.log}

	a.store.there, a.store.taking = make(chan struct{}), make(chan struct{}, 1)
	a.cleanup.push("close store", func(context.Context) error { return a.store.close() })
	a.journal, err = ledger.OpenJournal(filepath.Join(settings.Data, "journal"), ledger.JournalOptions{
		Sink: &a.store, RetryMax: drainRetry, Hooks: hooks.Journal(), OpenFile: a.o.OpenFile, SegmentBytes: a.o.SegmentBytes,
	})
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	a.cleanup.push("drain journal", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, lastDrain)
		defer cancel()
		return a.journal.Close(ctx)
	})
	if err := a.settleLost(); err != nil {
		return err
	}

	a.openState(snapshot.State)
	a.gate = admit.New(engine.New(engine.Config{Table: snapshot.Table}), admit.Options{Hooks: hooks.Gate()})
	a.cleanup.push("close gate", func(context.Context) error { a.gate.Close(); return nil })
	a.openPins()

	hasher := auth.NewHasher(settings.Pepper)
	a.hasher = &hasher
	a.keeper = auth.NewKeeper(auth.KeeperOptions{
		Hasher: hasher, Poll: settings.KeyPoll, StaleMax: settings.StaleMax, Introduce: a.introduceOf, Loaded: a.keysLoaded,
	}, snapshot.Records, &a.store)

	dialer := egress.New(egress.Options{Dial: a.o.Dial})
	a.readTokens(dialer, snapshot.Issuers)
	client := upstream.New(upstream.Options{Dialer: dialer})
	a.cleanup.push("close upstream connections", func(context.Context) error { return client.Close() })
	a.readEngines(client)
	a.probeBackends(client)
	a.inspector = hook.New(hook.Options{Dialer: dialer, Told: a.metrics.Inspected})
	a.inspector.Use(snapshot.Hooks)
	a.cleanup.push("close hooks' connections", func(context.Context) error { return a.inspector.Close() })
	table := func() *route.Table { return a.snapshot.Load().Table }
	target := func(id sluice.BackendID) (*upstream.Target, bool) {
		t, ok := a.snapshot.Load().Targets[id]
		return t, ok
	}
	fetcher := fetch.New(egress.New(egress.Options{Dial: a.o.Dial}), a.metrics.Fetched) // its own: what clients name is not to fill what is kept of the names of backends
	a.cleanup.push("close what fetches media", func(context.Context) error { fetcher.Close(); return nil })
	a.handOver = handover.New(handover.Options{Upstream: client, Target: target, Store: lateHandOvers{&a.store}, Log: a.log, Hooks: a.metrics.HandOvers()})
	a.cleanup.push("stop asking for providers' batches", func(context.Context) error { a.handOver.Close(); return nil })
	exchanges := exchange.New(exchange.Options{
		HandOver: a.handOver,
		Gate:     a.gate, Journal: a.journal, Learned: estimate.New(estimate.Options{}), Upstream: client,
		Table: table, Target: target,
		State:   a.state,
		Fetch:   fetcher.Get,
		Inspect: a.inspector,
		Hooks:   hooks.Exchange(),

		EventLimit: settings.EventLimit,
	})
	a.exchange = exchanges
	a.cleanup.push("end shadows", func(context.Context) error { exchanges.Close(); return nil })
	log := func(r *proxy.Record) {
		ended := telemetry.Request(*r)
		a.metrics.Request(&ended)
		requests.Log(&ended)
	}
	a.answers, err = a.openCache(exchanges, dialer)
	if err != nil {
		return err
	}
	a.openDesk(a.answers.Run, table, log, snapshot.Batch)
	keys := a.keepKeys(a.answers.Run, snapshot.Keys)
	face := batch.New(batch.Options{Desk: a.desk, PublicURL: settings.PublicURL, Keys: keys})
	a.proxy = proxy.New(proxy.Options{
		Run: keys.Run, Identify: a.identify, Table: table, Look: a.gate.Look, Log: log,
		Mounts: mounts(face), Later: later(face),
		Ready:   a.ready.Load,
		Panic:   hooks.Exchange().Panic,
		MaxBody: settings.BodyLimit, KeepAliveAfter: settings.KeepaliveAfter,
		MaxConns: connections(a.simulated != nil),
	})
	a.metrics.Watch(a.levels)

	a.adminServer = admin.NewServer(http.HandlerFunc(a.serveAdmin), a.log)
	a.cleanup.push("stop admin plane", func(ctx context.Context) error {
		defer a.serving.Wait()
		return a.adminServer.Shutdown(ctx)
	})
	a.cleanup.push("drain requests", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, a.snapshot.Load().Settings.Drain)
		defer cancel()
		var lines sync.WaitGroup
		a.handOver.Close() // what providers have is given back at once: they go on
		lines.Go(func() { a.desk.Close(ctx) })
		defer lines.Wait()
		if err := a.proxy.Shutdown(ctx); err != nil {
			a.log.Warn("requests were cut at the end of the drain", slog.Any("error", err))
		}
		return nil
	})

	a.history = versions.New(versions.Options{Store: &a.store, Log: a.log})
	a.history.Start(ctx)
	a.cleanup.push("record versions", func(context.Context) error { a.history.Close(); return nil })
	if err := a.openStore(ctx, hasher); err != nil {
		return err
	}
	a.begin(ctx, ended)
	a.keeper.Start(ctx)
	a.cleanup.push("stop reading keys", func(context.Context) error { a.keeper.Close(); return nil })
	a.desk.Start(ctx)
	return nil
}

// listen binds a port and registers its release, for setups that fail later:
// a server that was started closes it first.
func (a *App) listen(setting, address string) (net.Listener, error) {
	l, err := a.o.Bind(address)
	if err != nil {
		return nil, &sluice.Error{
			Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Param: setting, Msg: "names " + address + ", which cannot be listened on", Err: err,
			Hint: "stop what listens there, or set another address in the configuration",
		}
	}
	a.cleanup.push("close "+setting, func(context.Context) error {
		_ = l.Close() // closed already, where a server ran on it
		return nil
	})
	return l, nil
}

// settleLost ends what the last process left open.
func (a *App) settleLost() error {
	n, err := a.journal.SettleLost(time.Now())
	if err != nil {
		return fmt.Errorf("settle what the last run left open: %w", err)
	}
	if n > 0 {
		a.log.Warn("settled as lost what the last run left open", slog.Int("attempts", n))
	}
	return nil
}

func logFormat(json bool) string {
	if json {
		return "json"
	}
	return "text"
}
