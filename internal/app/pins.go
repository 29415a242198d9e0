package app

import (
	"context"
	"time"

	"sluice"
	"sluice/internal/pins"
)

var _ pins.Store = (*lateStore)(nil)

// Pins implements pins.Store.
func (l *lateStore) Pins(ctx context.Context, now time.Time) ([]pins.Record, error) {
	db, err := l.get()
	if err != nil {
		return nil, err
	}
	return db.Pins(ctx, now)
}

// KeepPin implements pins.Store.
func (l *lateStore) KeepPin(ctx context.Context, now time.Time, r pins.Record) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.KeepPin(ctx, now, r)
}

// DropPin implements pins.Store.
func (l *lateStore) DropPin(ctx context.Context, p sluice.PoolID) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.DropPin(ctx, p)
}

// openPins makes what keeps operators' pins of ladders. They are in force once the store
// is there, before the first request.
func (a *App) openPins() {
	a.pins = pins.New(pins.Options{Store: &a.store, Operate: a.gate.Operate, Shared: a.store.sharedState, Log: a.log})
	a.cleanup.push("stop reading pins of ladders", func(context.Context) error { a.pins.Close(); return nil })
}
