package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/auth"
	"sluice/internal/auth/jwt"
	"sluice/internal/engine"
	"sluice/internal/hook"
	"sluice/internal/store"
	"sluice/internal/telemetry"
)

// drainLate is how long an entry may wait for the store before that counts as
// degraded.
const drainLate = 2 * time.Second

// viewRows bounds the engine's picture behind metrics.
const viewRows = 500

// identify finds who calls. Until the counters are seeded nobody is: a budget
// that is spent must not look whole for a moment.
func (a *App) identify(credential string) (sluice.Principal, error) {
	if !a.ready.Load() {
		return sluice.Principal{}, &sluice.Error{
			Kind: sluice.KindOverloaded, Reason: sluice.NotReady, Msg: "the gateway is starting", RetryAfter: time.Second,
			Hint: "try again in a moment",
		}
	}
	now := time.Now()
	if jwt.Is(credential) && a.tokens.Any() {
		return a.bearer(credential, now)
	}
	return a.keeper.Identify(credential, now)
}

// keysLoaded lets what waits have the limits of a new snapshot of keys, and logs what that
// could not use.
func (a *App) keysLoaded(s *auth.Snapshot, err error) {
	if err != nil {
		a.log.Warn("keys could not be read again: the last ones stay valid", "error", err)
		return
	}
	a.gate.Revise(s.PolicyOf)
	for _, p := range s.Problems() {
		a.log.Warn("a record could not be used", "problem", p)
	}
}

// serveAdmin serves the admin plane, or says that it is not there yet.
func (a *App) serveAdmin(w http.ResponseWriter, r *http.Request) {
	if api := a.admin.Load(); api != nil {
		api.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/livez" && r.Method == http.MethodGet {
		_, _ = w.Write([]byte(`{"state":"live"}` + "\n"))
		return
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(map[string]string{
		"state": "starting", "reason": sluice.NotReady.String(), "detail": "the store does not answer yet",
	})
}

func (a *App) adminOptions(db *store.DB, hasher auth.Hasher) admin.Options {
	return admin.Options{
		Plans: db, Tenants: db, Keys: db, Ledger: db,
		Admin: a.keeper.Admin, Declared: a.keeper.Declared, Changed: a.keeper.Refresh, Hasher: hasher,
		Batches: a.batches(db),
		View:    a.gate.Dump, Look: a.gate.Look, Operate: a.gate.Operate, Pin: a.pins.Order, Preview: a.previewLadder, Runtime: a.runtime, Flush: a.journal.Flush, Reload: a.reload,
		Routing: admin.Routing{Routes: a.routes, Versions: a.listVersions, Version: a.showVersion, Compare: a.compare, Change: a.setRoutes, Rollback: a.rollback, DryRun: a.dryRun},
		Cache:   admin.OutputCache{Status: a.answers.Status, Purge: a.answers.Purge},
		HasModel: func(name string) bool {
			_, ok := a.snapshot.Load().Table.Models[sluice.ModelID(name)]
			return ok
		},
		HasHook: func(name string) bool {
			return slices.ContainsFunc(a.snapshot.Load().Hooks, func(s hook.Spec) bool { return s.Name == name })
		},
		Metrics: a.metrics.Handler(), OpenMetrics: a.settings.OpenMetrics, Build: admin.ReadBuild(), Log: a.log,
	}
}

// runtime is what the status tells beside the engine's picture.
func (a *App) runtime() admin.Runtime {
	snapshot := a.snapshot.Load()
	keys, health := a.keeper.Snapshot(), a.keeper.Health()
	lag := a.journal.Lag()
	r := admin.Runtime{
		Started: a.started, Ready: a.ready.Load(), Draining: a.draining.Load(),
		Config:     a.configStatus(snapshot.Version),
		Snapshot:   admin.SnapshotStatus{Keys: keys.Keys(), Partial: !health.Ready, Problems: keys.Problems()},
		Journal:    admin.JournalStatus{LagEntries: int(lag.Entries), LagSeconds: lag.Age.Seconds(), Open: lag.Open, Bytes: lag.Bytes},
		Dependency: []admin.Dependency{a.storeState(health), a.journalState()},
	}
	if last := a.reloads.Load(); last != nil {
		if last.err != nil {
			r.Config.LastError = last.err.Error()
		} else {
			r.Config.Loaded = &last.at
		}
	}
	if !health.Checked.IsZero() {
		r.Snapshot.AgeSeconds = time.Since(health.Checked).Seconds()
	}
	if err := a.journal.Err(); err != nil {
		r.Journal.Error = err.Error()
	}
	return r
}

// configStatus is what is in force and how it came to be.
func (a *App) configStatus(version string) admin.ConfigStatus {
	s := admin.ConfigStatus{Version: version, File: a.o.ConfigPath, Loaded: &a.started, OffFile: a.offFile()}
	if v, ok := a.history.Current(); ok && v.Hash == version {
		s.Number, s.Source, s.Author, s.Reason, s.Since = v.Number, string(v.Source), v.Author, v.Reason, &v.At
	}
	return s
}

func (a *App) storeState(health auth.Health) admin.Dependency {
	d := admin.Dependency{Name: "store", State: "ok"}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	db, err := a.store.get()
	if err == nil {
		err = db.Ping(ctx)
	}
	if err == nil {
		err = health.Err
	}
	if lag := a.journal.Lag(); err == nil && lag.Age > drainLate {
		err = fmt.Errorf("%d entries wait in the journal, the oldest for %v: the store takes none", lag.Entries, lag.Age.Round(100*time.Millisecond))
	}
	if err != nil {
		d.State, d.Detail = "degraded", "requests go on; usage, explain and changes wait: "+err.Error()
	}
	return d
}

func (a *App) journalState() admin.Dependency {
	if err := a.journal.Err(); err != nil {
		return admin.Dependency{Name: "journal", State: "degraded", Detail: "tenants with hard spend are refused ledger_busy: " + err.Error()}
	}
	return admin.Dependency{Name: "journal", State: "ok"}
}

// levels is what the metrics read at each scrape.
func (a *App) levels() telemetry.Levels {
	view, lag, health := a.gate.Look(engine.Zoom{Levels: true}, viewRows), a.journal.Lag(), a.keeper.Health()
	keys := a.keeper.Snapshot()
	l := telemetry.Levels{
		JournalEntries: int(lag.Entries), JournalAge: lag.Age, JournalOpen: lag.Open,
		Health:      telemetry.Health{Domains: view.Domains, Credentials: view.Credentials},
		Regions:     view.Regions,
		State:       a.stateLevel(),
		Batch:       a.desk.Level(),
		Idempotency: a.keysLevel(),
		Drains:      a.exchange.Drains(),
		Background:  a.exchange.Background(),
		RetryBudget: view.Retries, RetryBudgetBounded: view.RetriesBounded,
		Tenants: keys.Tenants(), Keys: keys.Keys(), Ready: a.ready.Load() && !a.draining.Load(), OffFile: a.held.Load() != nil,
	}
	if !health.Checked.IsZero() {
		l.SnapshotAge = time.Since(health.Checked)
	}
	for _, p := range view.Pools {
		level := telemetry.PoolLevel{Pool: p.ID, Classes: p.Classes, Contracts: p.Contracts, Failed: p.Failed, Gathering: p.Gathering != nil, Affinity: p.Affinity, Demand: p.Demand, Ladder: p.Ladder}
		for _, b := range p.Backends {
			level.Inflight += b.Running
			l.Backends = append(l.Backends, backendLevel(&b))
		}
		l.Pools = append(l.Pools, level)
	}
	return l
}
