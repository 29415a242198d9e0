package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/auth"
	"sluice/internal/engine"
	"sluice/internal/ledger"
	"sluice/internal/quota"
	"sluice/internal/store"
	"sluice/internal/versions"
)

// storeRetry is the pause between two tries to reach a store that was not there
// at the start.
const storeRetry = time.Second

// storeGrace is how long a batch of the drain waits for a store that is being
// opened: without it each start would tell of a drain that failed.
const storeGrace = 2 * time.Second

// lateStore stands for a store that may come later: the journal's sink, the keeper's
// source and the history's place. Until it is there every call fails, which both take as a
// reason to try again. It is there once the counters are seeded: what the drain
// brings into it before would be counted twice or not at all.
type lateStore struct {
	opened *store.DB // by the one who opens it; nil until then
	db     atomic.Pointer[store.DB]
	there  chan struct{} // closed when db is set
	taking chan struct{} // has one token while entries are brought into the store, or must not be
}

var (
	_ ledger.Sink    = (*lateStore)(nil)
	_ auth.Source    = (*lateStore)(nil)
	_ versions.Store = (*lateStore)(nil)
)

func (l *lateStore) get() (*store.DB, error) {
	if db := l.db.Load(); db != nil {
		return db, nil
	}
	return nil, store.ErrUnavailable
}

// publish lets everybody use what was opened.
func (l *lateStore) publish() {
	l.db.Store(l.opened)
	close(l.there)
}

// Append implements ledger.Sink.
func (l *lateStore) Append(ctx context.Context, entries []ledger.Entry) error {
	select {
	case <-l.there:
	default:
		grace := time.NewTimer(storeGrace)
		defer grace.Stop()
		select {
		case <-l.there:
		case <-grace.C:
		case <-ctx.Done():
		}
	}
	db, err := l.get()
	if err != nil {
		return err
	}
	resume, err := l.still(ctx)
	if err != nil {
		return err
	}
	defer resume()
	return db.Append(ctx, entries)
}

// still keeps the drain from bringing anything into the store until resume is called.
func (l *lateStore) still(ctx context.Context) (resume func(), err error) {
	select {
	case l.taking <- struct{}{}:
		return func() { <-l.taking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Load implements auth.Source.
func (l *lateStore) Load(ctx context.Context) (auth.Records, error) {
	db, err := l.get()
	if err != nil {
		return auth.Records{}, err
	}
	return db.Load(ctx)
}

// Version implements auth.Source.
func (l *lateStore) Version(ctx context.Context) (int64, error) {
	db, err := l.get()
	if err != nil {
		return 0, err
	}
	return db.Version(ctx)
}

// AddVersion implements versions.Store.
func (l *lateStore) AddVersion(ctx context.Context, v versions.Version) (int64, error) {
	db, err := l.get()
	if err != nil {
		return 0, err
	}
	return db.AddVersion(ctx, v)
}

// ListVersions implements versions.Store.
func (l *lateStore) ListVersions(ctx context.Context, before int64, limit int) ([]versions.Version, error) {
	db, err := l.get()
	if err != nil {
		return nil, err
	}
	return db.ListVersions(ctx, before, limit)
}

// FindVersion implements versions.Store.
func (l *lateStore) FindVersion(ctx context.Context, r versions.Ref) (versions.Version, error) {
	db, err := l.get()
	if err != nil {
		return versions.Version{}, err
	}
	return db.FindVersion(ctx, r)
}

func (l *lateStore) close() error {
	if l.opened != nil {
		return l.opened.Close()
	}
	return nil
}

// openStore opens the store and makes the gateway ready, now or, where the
// database does not answer yet, from a goroutine that tries again.
func (a *App) openStore(ctx context.Context, hasher auth.Hasher) error {
	dsn := a.storeAddress()
	err := a.tryStore(ctx, dsn, hasher)
	if err == nil || !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	a.log.Warn("the store does not answer yet: requests are refused not_ready until it does", slog.Any("error", err))
	trying, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	a.cleanup.push("stop waiting for the store", func(context.Context) error {
		stop()
		<-done
		return nil
	})
	go func() {
		defer close(done)
		for pause(trying, storeRetry); trying.Err() == nil; pause(trying, storeRetry) {
			err := a.tryStore(trying, dsn, hasher)
			if err == nil {
				a.log.Info("the store answers: ready")
				return
			}
			a.log.Warn("the store does not answer yet", slog.Any("error", err))
		}
	}()
	return nil
}

func (a *App) storeAddress() string {
	if s := a.settings.Store; !s.Empty() {
		return s.Reveal()
	}
	return "sqlite:" + filepath.Join(a.settings.Data, "sluice.db")
}

// tryStore opens the store, if that is still to be done, and makes the gateway
// ready. What can fail comes before the counters are seeded, which is done once.
func (a *App) tryStore(ctx context.Context, dsn string, hasher auth.Hasher) error {
	if a.store.opened == nil {
		db, err := store.Open(ctx, dsn, store.Options{})
		if err != nil {
			return err
		}
		a.store.opened = db
	}
	db := a.store.opened
	if err := a.bootstrap(ctx, db, hasher); err != nil {
		return err
	}
	api, err := admin.New(a.adminOptions(db, hasher))
	if err != nil {
		return fmt.Errorf("build admin API: %w", err)
	}
	if err := a.state.Load(ctx, db); err != nil {
		return err
	}
	if err := a.pins.Load(ctx, db); err != nil {
		return err
	}
	if err := a.seed(ctx, db); err != nil {
		return err
	}
	a.store.publish()
	a.state.Start(ctx)
	a.pins.Start(ctx)
	a.keys.Start()
	a.admin.Store(api)
	a.keeper.Notify()
	a.history.Wake()
	a.ready.Store(true)
	return nil
}

// seed gives the engine what fixed windows have taken, at the high figure that
// budgets are charged: what the store has, and what the journal has yet to bring
// into it, such as what was just settled as lost. To wait for the drain would
// keep a gateway that died with many requests open from its work.
func (a *App) seed(ctx context.Context, db *store.DB) error {
	if err := a.bringBack(ctx, db); err != nil {
		return err
	}
	spent, err := db.Spend(ctx, time.Now(), a.journal.Undrained)
	if err != nil {
		return err
	}
	seeds := make([]engine.Spent, 0, 4*len(spent))
	for i := range spent {
		seeds = appendSeeds(seeds, &spent[i], nil)
	}
	if seeds, err = a.seedLabelled(ctx, db, seeds); err != nil {
		return err
	}
	shadows, err := db.ShadowSpend(ctx, time.Now(), a.journal.Undrained)
	if err != nil {
		return err
	}
	for i := range shadows {
		seeds = appendSeeds(seeds, &shadows[i], nil)
	}
	a.gate.Seed(seeds)
	return nil
}

// seedLabelled adds what users and runs have taken. Users can be many, so only
// what plans bound of them is kept.
func (a *App) seedLabelled(ctx context.Context, db *store.DB, seeds []engine.Spent) ([]engine.Spent, error) {
	stored, err := db.Load(ctx)
	if err != nil {
		return nil, err
	}
	bounded := make(map[sluice.Limit]bool)
	for _, p := range slices.Concat(stored.Plans, a.snapshot.Load().Records.Plans) {
		for _, l := range p.PerUser {
			if l.Window.Fixed() {
				bounded[sluice.Limit{Dimension: l.Dimension, Window: l.Window}] = true
			}
		}
	}
	now := time.Now()
	spent, err := db.LabelledSpend(ctx, now, store.Labelled{Users: len(bounded) > 0, RunsSince: now.Add(-quota.RunIdle)}, a.journal.Undrained)
	if err != nil {
		return nil, err
	}
	for i := range spent {
		s := &spent[i]
		if s.Scope == sluice.ScopeUser {
			seeds = appendSeeds(seeds, s, bounded)
			continue
		}
		seeds = append(appendSeeds(seeds, s, nil), runSeed(s, sluice.RunTime, 1), runSeed(s, sluice.AllTokens, int64(s.Input+s.Output)))
	}
	return seeds, nil
}

// runSeed is one more figure of a run.
func runSeed(s *ledger.Spend, d sluice.Dimension, n int64) engine.Spent {
	return engine.Spent{Scope: s.Scope, Tenant: s.Tenant, Run: s.Run, Dimension: d, Window: s.Window, At: s.Start, Amount: n}
}

// appendSeeds adds the figures of one sum: those that are bounded, all if bounded
// is nil.
func appendSeeds(seeds []engine.Spent, s *ledger.Spend, bounded map[sluice.Limit]bool) []engine.Spent {
	for _, d := range [...]struct {
		dimension sluice.Dimension
		amount    int64
	}{
		{sluice.Requests, s.Requests},
		{sluice.InputTokens, int64(s.Input)},
		{sluice.OutputTokens, int64(s.Output)},
		{sluice.Spend, int64(s.CostHigh)},
	} {
		if d.amount > 0 && (bounded == nil || bounded[sluice.Limit{Dimension: d.dimension, Window: s.Window}]) {
			seeds = append(seeds, engine.Spent{
				Scope: s.Scope, Tenant: s.Tenant, Project: s.Project, Key: s.Key, User: s.User, Run: s.Run, Model: s.Model, Pool: s.Pool,
				Dimension: d.dimension, Window: s.Window, At: s.Start, Amount: d.amount,
			})
		}
	}
	return seeds
}

// bringBack notices a store that has gone back in time, such as one restored from
// a backup, and gives it again what the journal still holds.
func (a *App) bringBack(ctx context.Context, db *store.DB) error {
	last, ok, err := a.journal.LastDrained()
	if err != nil || !ok {
		return err
	}
	if has, err := db.Has(ctx, last); err != nil || has {
		return err
	}
	n, err := a.journal.Rewind()
	if err != nil {
		return err
	}
	a.log.Error("the store has lost entries that it had taken: it is given again what the journal still holds; older ones come from a backup alone", slog.Int("entries", n))
	return nil
}

// bootstrapFile holds the first operator's token, readable by the owner alone.
const bootstrapFile = "admin-token"

// bootstrap mints the first operator's token where the store has none. It is
// printed once; the store keeps its hash.
func (a *App) bootstrap(ctx context.Context, db *store.DB, hasher auth.Hasher) error {
	admins, err := db.Admins(ctx)
	if err != nil || len(admins) > 0 {
		return err
	}
	minted := auth.MintAdmin()
	path := filepath.Join(a.settings.Data, bootstrapFile)
	if err := os.WriteFile(path, []byte(minted.Key.Reveal()+"\n"), 0o600); err != nil {
		return fmt.Errorf("write bootstrap token: %w", err)
	}
	token := auth.AdminToken{
		ID: string(minted.Ref.ID), Name: "bootstrap", Hash: minted.Ref.Hash(hasher), Created: time.Now(),
	}
	if err := db.CreateAdmin(ctx, token); err != nil {
		return fmt.Errorf("keep bootstrap token: %w", err)
	}
	a.firstToken = minted.Key.Reveal()
	return nil
}
