package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sluice/internal/stateful"
)

var _ stateful.Store = (*DB)(nil)

// Of two tenants that claim one mark at one place the first has it, until its time is
// over.
const keepState = `INSERT INTO kept_state (mark, provider, backend, site, credential, tenant, until_us, seq, model)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10)
ON CONFLICT (mark, provider, backend, site, credential) DO UPDATE
SET tenant = excluded.tenant, until_us = excluded.until_us, seq = excluded.seq, model = excluded.model
WHERE kept_state.tenant = excluded.tenant AND kept_state.until_us < excluded.until_us OR kept_state.until_us <= $9`

const dropState = `DELETE FROM kept_state
WHERE mark = $1 AND provider = $2 AND backend = $3 AND site = $4 AND credential = $5 AND tenant = $6`

// WriteState applies changes of what is known of ids, in order, all or nothing. Writers
// follow each other, so that a reader which has seen one write has seen all before it.
func (db *DB) WriteState(ctx context.Context, now time.Time, ops []stateful.Op) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		// This takes the row's lock until the end, on Postgres too.
		if _, err := tx.ExecContext(ctx, "UPDATE meta SET value = value + 1 WHERE name = 'state_seq'"); err != nil {
			return err
		}
		var seq int64
		if err := tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'state_seq'").Scan(&seq); err != nil {
			return err
		}
		keep, err := tx.PrepareContext(ctx, keepState)
		if err != nil {
			return err
		}
		defer keep.Close()
		for i := range ops {
			r, p := &ops[i].Record, ops[i].Pin
			where := []any{r.Mark.String(), string(p.Provider), string(p.Backend), p.Site, p.Key, string(r.Tenant)}
			if ops[i].Drop {
				_, err = tx.ExecContext(ctx, dropState, where...)
			} else {
				_, err = keep.ExecContext(ctx, append(where, r.Until.UnixMicro(), seq, now.UnixMicro(), string(r.Model))...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write what backends keep: %w", err)
	}
	return nil
}

// ReadState calls f for what was written after a position and is not over, in order.
func (db *DB) ReadState(ctx context.Context, after int64, now time.Time, f func(stateful.Record)) (at int64, err error) {
	err = db.view(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'state_seq'").Scan(&at); err != nil || at <= after {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT mark, provider, backend, site, credential, tenant, model, until_us FROM kept_state WHERE seq > $1 AND until_us > $2 ORDER BY seq, mark", after, now.UnixMicro())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r stateful.Record
			var mark string
			var until int64
			if err := rows.Scan(&mark, &r.Pin.Provider, &r.Pin.Backend, &r.Pin.Site, &r.Pin.Key, &r.Tenant, &r.Model, &until); err != nil {
				return err
			}
			if r.Mark, err = stateful.ParseMark(mark); err != nil {
				return err
			}
			r.Until = fromMicros(until)
			f(r)
		}
		return rows.Err()
	})
	if err != nil {
		return after, fmt.Errorf("read what backends keep: %w", err)
	}
	return at, nil
}

// ForgetState deletes what was over at a time.
func (db *DB) ForgetState(ctx context.Context, over time.Time) error {
	if _, err := db.write.ExecContext(ctx, "DELETE FROM kept_state WHERE until_us <= $1", over.UnixMicro()); err != nil {
		return fmt.Errorf("forget what backends kept: %w", err)
	}
	return nil
}

// Shared reports whether other processes may write to the store.
func (db *DB) Shared() bool { return db.lock == nil }
