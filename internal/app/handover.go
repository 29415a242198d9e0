package app

import (
	"context"
	"time"

	"sluice"
	"sluice/internal/handover"
	"sluice/internal/store"
)

// lateHandOvers is the store of what providers have been handed, which may come later.
type lateHandOvers struct{ l *lateStore }

var _ handover.Store = lateHandOvers{}

// HandOver implements handover.Store.
func (s lateHandOvers) HandOver(ctx context.Context, b *handover.Batch, lines []int) error {
	return lateDo(lateJobs(s), func(db *store.DB) error { return db.HandOver(ctx, b, lines) })
}

// HandedOver implements handover.Store.
func (s lateHandOvers) HandedOver(ctx context.Context, id, ref string) (bool, error) {
	return late(lateJobs(s), func(db *store.DB) (bool, error) { return db.HandedOver(ctx, id, ref) })
}

// Handed implements handover.Store.
func (s lateHandOvers) Handed(ctx context.Context, job string, line int) (b handover.Batch, over, ok bool, err error) {
	err = lateDo(lateJobs(s), func(db *store.DB) error {
		b, over, ok, err = db.Handed(ctx, job, line)
		return err
	})
	return b, over, ok, err
}

// TakeBack implements handover.Store.
func (s lateHandOvers) TakeBack(ctx context.Context, id string, lines []int) (p sluice.ProviderID, back int, err error) {
	err = lateDo(lateJobs(s), func(db *store.DB) error {
		p, back, err = db.TakeBack(ctx, id, lines)
		return err
	})
	return p, back, err
}

// NotMade implements handover.Store.
func (s lateHandOvers) NotMade(ctx context.Context, id string) error {
	return lateDo(lateJobs(s), func(db *store.DB) error { return db.NotMade(ctx, id) })
}

// Refs implements handover.Store.
func (s lateHandOvers) Refs(ctx context.Context, p sluice.ProviderID, since time.Time) ([]string, error) {
	return late(lateJobs(s), func(db *store.DB) ([]string, error) { return db.Refs(ctx, p, since) })
}

// HandedOut implements handover.Store.
func (s lateHandOvers) HandedOut(ctx context.Context, before time.Time, limit int) ([]handover.Batch, error) {
	return late(lateJobs(s), func(db *store.DB) ([]handover.Batch, error) { return db.HandedOut(ctx, before, limit) })
}

// Tidied implements handover.Store.
func (s lateHandOvers) Tidied(ctx context.Context, id string, now time.Time, done bool) error {
	return lateDo(lateJobs(s), func(db *store.DB) error { return db.Tidied(ctx, id, now, done) })
}
