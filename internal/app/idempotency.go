package app

import (
	"context"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/telemetry"
)

var _ idempotency.Store = (*lateStore)(nil)

// ClaimKey implements idempotency.Store.
func (l *lateStore) ClaimKey(ctx context.Context, c idempotency.Claim) (*idempotency.Found, error) {
	db, err := l.get()
	if err != nil {
		return nil, err
	}
	return db.ClaimKey(ctx, c)
}

// FindKey implements idempotency.Store.
func (l *lateStore) FindKey(ctx context.Context, m idempotency.Mark, now time.Time) (*idempotency.Found, error) {
	db, err := l.get()
	if err != nil {
		return nil, err
	}
	return db.FindKey(ctx, m, now)
}

// RenewKeys implements idempotency.Store.
func (l *lateStore) RenewKeys(ctx context.Context, held []idempotency.Held, until time.Time) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.RenewKeys(ctx, held, until)
}

// KeepAnswer implements idempotency.Store.
func (l *lateStore) KeepAnswer(ctx context.Context, k idempotency.Kept) (bool, error) {
	db, err := l.get()
	if err != nil {
		return false, err
	}
	return db.KeepAnswer(ctx, k)
}

// FreeKey implements idempotency.Store.
func (l *lateStore) FreeKey(ctx context.Context, h idempotency.Held) error {
	db, err := l.get()
	if err != nil {
		return err
	}
	return db.FreeKey(ctx, h)
}

// SweepKeys implements idempotency.Store.
func (l *lateStore) SweepKeys(ctx context.Context, now time.Time, b idempotency.Bounds) (map[sluice.TenantID]int64, error) {
	db, err := l.get()
	if err != nil {
		return nil, err
	}
	return db.SweepKeys(ctx, now, b)
}

// keepKeys puts what obeys Idempotency-Key in front of what answers requests. It begins
// once the store is there.
func (a *App) keepKeys(next exchange.Runner, limits idempotency.Limits) *idempotency.Keeper {
	a.keys = idempotency.New(idempotency.Options{
		Next: next, Record: a.exchange, Store: &a.store, Log: a.log, Limits: limits, Told: a.metrics.Idempotency,
	})
	a.cleanup.push("end leases of keys", func(context.Context) error { a.keys.Close(); return nil })
	return a.keys
}

func (a *App) keysLevel() telemetry.KeysLevel {
	l := a.keys.Level()
	return telemetry.KeysLevel{Bytes: l.Bytes, Held: l.Held}
}
