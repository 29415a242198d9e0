package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/idempotency"
)

var _ idempotency.Store = (*DB)(nil)

// One statement, so that of two that ask for a key at once one has it: the other waits for
// its row.
const claimKey = `INSERT INTO idempotency_keys (mark, tenant, print, request_id, begun_us, until_us, done, bytes)
VALUES ($1, $2, $3, $4, $5, $6, 0, 0)
ON CONFLICT (mark) DO UPDATE
SET tenant = excluded.tenant, print = excluded.print, request_id = excluded.request_id, begun_us = excluded.begun_us,
    until_us = excluded.until_us, done = 0, bytes = 0, answer = NULL
WHERE idempotency_keys.until_us <= $5`

// claimTries bounds how often a key is asked for that is freed between the question who
// has it and the answer.
const claimTries = 4

// ClaimKey implements idempotency.Store.
func (db *DB) ClaimKey(ctx context.Context, c idempotency.Claim) (*idempotency.Found, error) {
	for range claimTries {
		res, err := db.write.ExecContext(ctx, claimKey, c.Mark.String(), string(c.Tenant), c.Print.String(), string(c.Request), c.Now.UnixMicro(), c.Until.UnixMicro())
		if err != nil {
			return nil, fmt.Errorf("claim key: %w", err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return nil, fmt.Errorf("claim key: %w", err)
		}
		if n > 0 {
			return nil, nil
		}
		if found, err := findKey(ctx, db.read, c.Mark); found != nil || err != nil {
			return found, err
		}
	}
	return nil, errors.New("claim key: it is given and freed all the time")
}

// makeKey is claimKey for what is made in the same transaction: the key is kept at once.
const makeKey = `INSERT INTO idempotency_keys (mark, tenant, print, request_id, begun_us, until_us, done, bytes, answer)
VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8)
ON CONFLICT (mark) DO UPDATE
SET tenant = excluded.tenant, print = excluded.print, request_id = excluded.request_id, begun_us = excluded.begun_us,
    until_us = excluded.until_us, done = 1, bytes = excluded.bytes, answer = excluded.answer
WHERE idempotency_keys.until_us <= $5`

// takeOnce keeps the key of what tx makes; nil has none. If another request has it the
// error is *idempotency.Taken, and tx is to be rolled back.
func takeOnce(ctx context.Context, tx *sql.Tx, o *idempotency.Once) error {
	if o == nil {
		return nil
	}
	n, err := changedBy(tx.ExecContext(ctx, makeKey, o.Mark.String(), string(o.Tenant), o.Print.String(), string(o.Request), o.Now.UnixMicro(), o.Until.UnixMicro(), o.Size(), o.Kept()))
	if err != nil || n > 0 {
		return err
	}
	found, err := findKey(ctx, tx, o.Mark)
	if err != nil {
		return err
	}
	if found == nil { // freed in between: whoever had it has failed
		return &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: time.Second, Msg: "the key was given back while it was asked for", Hint: "send it again"}
	}
	return &idempotency.Taken{Found: *found}
}

// FreeMade gives back a key whose request made something that it has to unmake.
func (db *DB) FreeMade(ctx context.Context, h idempotency.Held) error {
	if _, err := db.write.ExecContext(ctx, "DELETE FROM idempotency_keys WHERE mark = $1 AND request_id = $2 AND done = 1", h.Mark.String(), string(h.Request)); err != nil {
		return fmt.Errorf("free key: %w", err)
	}
	return nil
}

// findKey is what there is of a key, nil if it is free.
func findKey(ctx context.Context, q querier, m idempotency.Mark) (*idempotency.Found, error) {
	var f idempotency.Found
	var print string
	var begun, until int64
	row := q.QueryRowContext(ctx, "SELECT print, request_id, begun_us, until_us, answer FROM idempotency_keys WHERE mark = $1", m.String())
	err := row.Scan(&print, &f.Request, &begun, &until, &f.Answer)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		f.Print, err = idempotency.ParsePrint(print)
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	f.Begun, f.Until = fromMicros(begun), fromMicros(until)
	return &f, nil
}

// FindKey implements idempotency.Store.
func (db *DB) FindKey(ctx context.Context, m idempotency.Mark, now time.Time) (*idempotency.Found, error) {
	found, err := findKey(ctx, db.read, m)
	if found != nil && !found.Until.After(now) {
		found = nil
	}
	return found, err
}

// RenewKeys implements idempotency.Store.
func (db *DB) RenewKeys(ctx context.Context, held []idempotency.Held, until time.Time) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		renew, err := tx.PrepareContext(ctx, "UPDATE idempotency_keys SET until_us = $1 WHERE mark = $2 AND request_id = $3 AND done = 0")
		if err != nil {
			return err
		}
		defer renew.Close()
		for _, h := range held {
			if _, err := renew.ExecContext(ctx, until.UnixMicro(), h.Mark.String(), string(h.Request)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("renew keys: %w", err)
	}
	return nil
}

// KeepAnswer implements idempotency.Store.
func (db *DB) KeepAnswer(ctx context.Context, k idempotency.Kept) (bool, error) {
	res, err := db.write.ExecContext(ctx, "UPDATE idempotency_keys SET answer = $1, bytes = $2, until_us = $3, done = 1 WHERE mark = $4 AND request_id = $5 AND done = 0",
		k.Answer, int64(len(k.Answer))+idempotency.Overhead, k.Until.UnixMicro(), k.Mark.String(), string(k.Request))
	if err != nil {
		return false, fmt.Errorf("keep answer: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// FreeKey implements idempotency.Store.
func (db *DB) FreeKey(ctx context.Context, h idempotency.Held) error {
	if _, err := db.write.ExecContext(ctx, "DELETE FROM idempotency_keys WHERE mark = $1 AND request_id = $2 AND done = 0", h.Mark.String(), string(h.Request)); err != nil {
		return fmt.Errorf("free key: %w", err)
	}
	return nil
}

// sweepAtOnce bounds the answers that one statement drops: it keeps others from writing.
const sweepAtOnce = 1000

// SweepKeys implements idempotency.Store.
func (db *DB) SweepKeys(ctx context.Context, now time.Time, b idempotency.Bounds) (map[sluice.TenantID]int64, error) {
	has, err := db.sweepKeys(ctx, now, b)
	if err != nil {
		return nil, fmt.Errorf("sweep keys: %w", err)
	}
	return has, nil
}

func (db *DB) sweepKeys(ctx context.Context, now time.Time, b idempotency.Bounds) (map[sluice.TenantID]int64, error) {
	for {
		res, err := db.write.ExecContext(ctx, "DELETE FROM idempotency_keys WHERE mark IN (SELECT mark FROM idempotency_keys WHERE until_us <= $1 LIMIT $2)", now.UnixMicro(), sweepAtOnce)
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil || n < sweepAtOnce {
			if err != nil {
				return nil, err
			}
			break
		}
	}
	has, err := db.keptBytes(ctx)
	if err != nil {
		return nil, err
	}
	for tenant, n := range idempotency.Excess(has, b) {
		dropped, err := db.dropOldest(ctx, tenant, n)
		if err != nil {
			return nil, err
		}
		has[tenant] -= dropped
	}
	return has, nil
}

// keptBytes is what the answers of each tenant count.
func (db *DB) keptBytes(ctx context.Context) (map[sluice.TenantID]int64, error) {
	rows, err := db.read.QueryContext(ctx, "SELECT tenant, CAST(SUM(bytes) AS BIGINT) FROM idempotency_keys WHERE done = 1 GROUP BY tenant")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	has := make(map[sluice.TenantID]int64)
	for rows.Next() {
		var t sluice.TenantID
		var n int64
		if err := rows.Scan(&t, &n); err != nil {
			return nil, err
		}
		has[t] = n
	}
	return has, rows.Err()
}

// dropOldest drops the oldest answers of a tenant, of n bytes or more together, and says
// how many.
func (db *DB) dropOldest(ctx context.Context, t sluice.TenantID, n int64) (dropped int64, err error) {
	for dropped < n {
		marks, bytes, err := db.oldest(ctx, t, n-dropped)
		if err != nil || len(marks) == 0 {
			return dropped, err
		}
		err = db.tx(ctx, func(tx *sql.Tx) error {
			drop, err := tx.PrepareContext(ctx, "DELETE FROM idempotency_keys WHERE mark = $1 AND done = 1")
			if err != nil {
				return err
			}
			defer drop.Close()
			for _, m := range marks {
				if _, err := drop.ExecContext(ctx, m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return dropped, err
		}
		dropped += bytes
	}
	return dropped, nil
}

// oldest are the marks of the oldest answers of a tenant, up to n bytes or sweepAtOnce.
func (db *DB) oldest(ctx context.Context, t sluice.TenantID, n int64) (marks []string, bytes int64, err error) {
	rows, err := db.read.QueryContext(ctx, "SELECT mark, bytes FROM idempotency_keys WHERE tenant = $1 AND done = 1 ORDER BY until_us, mark LIMIT $2", string(t), sweepAtOnce)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for bytes < n && rows.Next() {
		var mark string
		var size int64
		if err := rows.Scan(&mark, &size); err != nil {
			return nil, 0, err
		}
		marks, bytes = append(marks, mark), bytes+size
	}
	return marks, bytes, rows.Err()
}
