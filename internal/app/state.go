package app

import (
	"context"
	"time"

	"sluice/internal/config"
	"sluice/internal/stateful"
	"sluice/internal/telemetry"
)

var _ stateful.Store = (*lateStore)(nil)

// WriteState implements stateful.Store.
func (l *lateStore) WriteState(ctx context.Context, now time.Time, ops []stateful.Op) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.WriteState(ctx, now, ops)
}

// ReadState implements stateful.Store.
func (l *lateStore) ReadState(ctx context.Context, after int64, now time.Time, f func(stateful.Record)) (int64, error) {
	db, err := l.get()
	if err != nil {
		return after, err
	}
	return db.ReadState(ctx, after, now, f)
}

// ForgetState implements stateful.Store.
func (l *lateStore) ForgetState(ctx context.Context, over time.Time) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.ForgetState(ctx, over)
}

// sharedState reports whether other replicas write to the store, too.
func (l *lateStore) sharedState() bool {
	db, err := l.get()
	return err == nil && db.Shared()
}

// openState makes what remembers the state that backends keep. It is read once the store
// is there, before the first request.
func (a *App) openState(b config.StateBounds) {
	a.state = stateful.New(stateful.Options{
		Store: &a.store, Log: a.log, Shared: a.store.sharedState, PerTenant: b.PerTenant, Total: b.Total, Keep: b.Keep,
	})
	a.cleanup.push("record what providers keep", func(context.Context) error { a.state.Close(); return nil })
}

func (a *App) stateLevel() telemetry.StateLevel {
	s := a.state.Stats()
	return telemetry.StateLevel{IDs: s.IDs, Pending: s.Pending, Lost: s.Lost}
}
