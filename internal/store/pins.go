package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/pins"
)

var _ pins.Store = (*DB)(nil)

const keepPin = `INSERT INTO ladder_pins (pool, tier, author, reason, at_us, expires_us) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (pool) DO UPDATE
SET tier = excluded.tier, author = excluded.author, reason = excluded.reason, at_us = excluded.at_us, expires_us = excluded.expires_us`

// Pins implements pins.Store: by pool.
func (db *DB) Pins(ctx context.Context, now time.Time) ([]pins.Record, error) {
	rows, err := db.read.QueryContext(ctx, "SELECT pool, tier, author, reason, at_us, expires_us FROM ladder_pins WHERE expires_us > $1 ORDER BY pool", now.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("list pins of ladders: %w", err)
	}
	return collect(rows, func(row scanner) (r pins.Record, err error) {
		var at, expires int64
		err = row.Scan(&r.Pool, &r.Tier, &r.Author, &r.Reason, &at, &expires)
		r.At, r.Expires = fromMicros(at), fromMicros(expires)
		return r, err
	})
}

// KeepPin implements pins.Store.
func (db *DB) KeepPin(ctx context.Context, now time.Time, r pins.Record) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM ladder_pins WHERE expires_us <= $1", now.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, keepPin, string(r.Pool), int64(r.Tier), r.Author, r.Reason, r.At.UnixMicro(), r.Expires.UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the pin of a ladder: %w", err)
	}
	return nil
}

// DropPin implements pins.Store.
func (db *DB) DropPin(ctx context.Context, p sluice.PoolID) error {
	if _, err := db.write.ExecContext(ctx, "DELETE FROM ladder_pins WHERE pool = $1", string(p)); err != nil {
		return fmt.Errorf("forget the pin of a ladder: %w", err)
	}
	return nil
}
