package store

import (
	"context"
	"database/sql"
	"fmt"

	"sluice"
	"sluice/internal/jobs"
)

// sweepRows is how many files, jobs and workers one sweep deletes at most.
const sweepRows = 20

// Sweep deletes a slice of what is over of files and jobs, each in a transaction of its
// own, so that others are not kept waiting.
func (db *DB) Sweep(ctx context.Context, s jobs.Sweep) (more bool, err error) {
	now, abandoned, forgotten := s.Now.UnixMicro(), s.Abandoned.UnixMicro(), s.Forgotten.UnixMicro()
	for _, kind := range [...]struct {
		find string
		args []any
		drop func(tx *sql.Tx, t sluice.TenantID, id string) error
	}{
		{
			"SELECT tenant, id FROM files WHERE (expires_us > 0 AND expires_us <= $1 OR ready = 0 AND created_us < $2) AND NOT EXISTS (SELECT 1 FROM jobs WHERE input = files.id AND ended = 0)",
			[]any{now, abandoned},
			func(tx *sql.Tx, t sluice.TenantID, id string) error { return dropFile(ctx, tx, t, jobs.FileID(id)) },
		},
		{ // what clients are told of it stays for a while
			"SELECT tenant, id FROM jobs WHERE results_us > 0 AND results_us <= $1",
			[]any{forgotten},
			func(tx *sql.Tx, t sluice.TenantID, id string) error { return dropJob(ctx, tx, t, jobs.JobID(id)) },
		},
	} {
		n, err := db.sweep(ctx, fmt.Sprintf("%s ORDER BY id LIMIT %d", kind.find, sweepRows), kind.args, kind.drop)
		more = more || n == sweepRows
		if err != nil {
			return more, fmt.Errorf("delete what is over: %w", err)
		}
	}
	for _, q := range [...]struct {
		sql string
		arg int64
	}{
		{"DELETE FROM job_workers WHERE until_us <= $1", now},
		{fmt.Sprintf("DELETE FROM voided_requests WHERE request_id IN (SELECT request_id FROM voided_requests WHERE at_us <= $1 LIMIT %d)", litterRows), forgotten},
	} {
		n, err := changedBy(db.write.ExecContext(ctx, q.sql, q.arg))
		more = more || n == litterRows
		if err != nil {
			return more, fmt.Errorf("delete what is over: %w", err)
		}
	}
	left, err := db.clearLitter(ctx, s.Now)
	return more || left, told(err, "delete what is over")
}

// sweep drops what a question finds. What somebody else has dropped meanwhile is none.
func (db *DB) sweep(ctx context.Context, find string, args []any, drop func(*sql.Tx, sluice.TenantID, string) error) (int, error) {
	type found struct {
		tenant sluice.TenantID
		id     string
	}
	rows, err := db.read.QueryContext(ctx, find, args...)
	if err != nil {
		return 0, err
	}
	all, err := collect(rows, func(r scanner) (f found, err error) {
		err = r.Scan(&f.tenant, &f.id)
		return f, err
	})
	for _, f := range all {
		err := db.tx(ctx, func(tx *sql.Tx) error { return drop(tx, f.tenant, f.id) })
		if err != nil && sluice.AsError(err).Kind != sluice.KindNotFound {
			return 0, err
		}
	}
	return len(all), err
}

// leaveJobs has what a tenant that is deleted has of files and jobs be over.
func leaveJobs(ctx context.Context, tx *sql.Tx, t sluice.TenantID) error {
	var open int64
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM jobs WHERE tenant = $1 AND ended = 0", string(t)).Scan(&open); err != nil {
		return err
	}
	if open > 0 {
		return conflict("tenant %q has %d batches that have not ended: cancel them first, or suspend it", t, open)
	}
	return run(ctx, tx, string(t),
		"UPDATE files SET expires_us = 1 WHERE tenant = $1",
		"UPDATE jobs SET results_us = 1 WHERE tenant = $1",
		"UPDATE job_litter SET due_us = 0 WHERE tenant = $1")
}
