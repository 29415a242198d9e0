package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/handover"
	"sluice/internal/jobs"
)

var _ handover.Store = (*DB)(nil)

const handoverColumns = "h.id, h.job, h.ref, h.lines, h.backend, h.replica, h.provider, h.site, h.key, h.created_us, h.expected_us"

// scanHandover reads handoverColumns, and what follows them.
func scanHandover(row scanner, more ...any) (b handover.Batch, err error) {
	var replica, created, expected int64
	err = row.Scan(append([]any{&b.ID, &b.Job, &b.Ref, &b.Lines, (*string)(&b.Backend), &replica, (*string)(&b.Provider), &b.Site, &b.Key, &created, &expected}, more...)...)
	b.Replica, b.Created, b.Expected = replica != 0, fromMicros(created), fromMicros(expected)
	return b, err
}

// HandOver implements handover.Store.
func (db *DB) HandOver(ctx context.Context, b *handover.Batch, lines []int) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO handovers (id, job, ref, lines, backend, replica, provider, site, key, created_us, expected_us, tidied, tried_us)
			VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8, $9, $10, 0, 0)`,
			b.ID, b.Job, b.Lines, string(b.Backend), flag(b.Replica), string(b.Provider), b.Site, b.Key, b.Created.UnixMicro(), b.Expected.UnixMicro())
		if err != nil {
			return err
		}
		return eachLine(ctx, tx, "INSERT INTO handover_lines (job, handover, line, taken_back) VALUES ($1, $2, $3, 0)", []any{b.Job, b.ID}, lines)
	})
	return told(err, "hand over lines of %s", b.Job)
}

// eachLine runs a statement for each line, which is its last argument.
func eachLine(ctx context.Context, tx *sql.Tx, statement string, args []any, lines []int) error {
	each, err := tx.PrepareContext(ctx, statement)
	if err != nil {
		return err
	}
	defer each.Close()
	args = append(args, nil)
	for _, n := range lines {
		args[len(args)-1] = n
		if _, err := each.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// HandedOver implements handover.Store.
func (db *DB) HandedOver(ctx context.Context, id, ref string) (ok bool, err error) {
	n, err := changedBy(db.write.ExecContext(ctx, "UPDATE handovers SET ref = $2 WHERE id = $1 AND lines > 0", id, ref))
	return n > 0, told(err, "keep what a provider calls %s", id)
}

// Handed implements handover.Store.
func (db *DB) Handed(ctx context.Context, job string, line int) (b handover.Batch, over, ok bool, err error) {
	var back int64
	b, err = scanHandover(db.read.QueryRowContext(ctx, "SELECT "+handoverColumns+`, l.taken_back
		FROM handover_lines l JOIN handovers h ON h.id = l.handover WHERE l.job = $1 AND l.line = $2`, job, line), &back)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return handover.Batch{}, false, false, nil
	case err != nil:
		return handover.Batch{}, false, false, fmt.Errorf("find where a line of %s is: %w", job, err)
	}
	return b, back != 0, true, nil
}

// TakeBack implements handover.Store.
func (db *DB) TakeBack(ctx context.Context, id string, lines []int) (p sluice.ProviderID, back int, err error) {
	err = db.tx(ctx, func(tx *sql.Tx) error {
		back = 0
		err := tx.QueryRowContext(ctx, "SELECT provider FROM handovers WHERE id = $1", id).Scan((*string)(&p))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, line := range lines {
			n, err := changedBy(tx.ExecContext(ctx, "UPDATE handover_lines SET taken_back = 1 WHERE handover = $1 AND line = $2 AND taken_back = 0", id, line))
			if err != nil {
				return err
			}
			back += int(n)
		}
		return nil
	})
	return p, back, told(err, "take lines of %s back", id)
}

// NotMade implements handover.Store. What it was made of may be at the provider: the batch
// stays, of no lines, until it has been put in order.
func (db *DB) NotMade(ctx context.Context, id string) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		n, err := changedBy(tx.ExecContext(ctx, "UPDATE handovers SET lines = 0 WHERE id = $1 AND ref = ''", id))
		if err != nil || n == 0 {
			return err
		}
		return run(ctx, tx, id, "DELETE FROM handover_lines WHERE handover = $1")
	})
	return told(err, "forget %s", id)
}

// Refs implements handover.Store.
func (db *DB) Refs(ctx context.Context, p sluice.ProviderID, since time.Time) ([]string, error) {
	rows, err := db.read.QueryContext(ctx, "SELECT ref FROM handovers WHERE provider = $1 AND created_us >= $2 AND ref <> ''", string(p), since.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("find the batches at %s: %w", p, err)
	}
	return collect(rows, func(r scanner) (ref string, err error) {
		err = r.Scan(&ref)
		return ref, err
	})
}

// atProvider is the condition on a line l of a batch, and its line j of a job, that its
// provider has it: it has no end yet, and is not to run by itself.
const atProvider = "l.taken_back = 0 AND j.state < 2"

// HandedOut implements handover.Store.
func (db *DB) HandedOut(ctx context.Context, before time.Time, limit int) ([]handover.Batch, error) {
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM handovers h WHERE h.tidied = 0 AND h.tried_us < $1
		AND NOT EXISTS (SELECT 1 FROM handover_lines l JOIN job_lines j ON j.job = l.job AND j.line = l.line WHERE l.handover = h.id AND %s)
		ORDER BY h.tried_us, h.id LIMIT %d`, handoverColumns, atProvider, limit), before.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("find batches of providers that are over: %w", err)
	}
	return collect(rows, func(r scanner) (handover.Batch, error) { return scanHandover(r) })
}

// Tidied implements handover.Store.
func (db *DB) Tidied(ctx context.Context, id string, now time.Time, done bool) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE handovers SET tidied = $2, tried_us = $3 WHERE id = $1", id, flag(done), now.UnixMicro()); err != nil {
			return err
		}
		return run(ctx, tx, id, "DELETE FROM handovers WHERE id = $1 AND tidied = 1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = handovers.job)")
	})
	return told(err, "say that %s is in order", id)
}

// Elsewhere implements jobs.Store.
func (db *DB) Elsewhere(ctx context.Context, id jobs.JobID) (lines int, expected time.Time, err error) {
	var at int64
	err = db.read.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(MAX(h.expected_us), 0) FROM handovers h JOIN handover_lines l ON l.handover = h.id
		JOIN job_lines j ON j.job = l.job AND j.line = l.line WHERE h.job = $1 AND `+atProvider, string(id)).Scan(&lines, &at)
	if at > 0 {
		expected = fromMicros(at)
	}
	return lines, expected, told(err, "find what of %s providers have", id)
}

// HandOvers are the batches that providers have of a job, oldest first, and how many of
// its lines are in each and have not been taken back.
func (db *DB) HandOvers(ctx context.Context, job string) (out []handover.Share, err error) {
	rows, err := db.read.QueryContext(ctx, `SELECT h.provider, h.ref, h.created_us, COUNT(*), SUM(l.taken_back)
		FROM handovers h JOIN handover_lines l ON l.handover = h.id WHERE h.job = $1
		GROUP BY h.id, h.provider, h.ref, h.created_us ORDER BY h.created_us, h.id LIMIT 1000`, job)
	if err != nil {
		return nil, fmt.Errorf("find what of %s providers have: %w", job, err)
	}
	return collect(rows, func(r scanner) (s handover.Share, err error) {
		var created int64
		err = r.Scan((*string)(&s.Provider), &s.Ref, &created, &s.Lines, &s.Back)
		s.Created = fromMicros(created)
		return s, err
	})
}
