package store

import (
	"context"
	"database/sql"
	"fmt"

	"sluice"
	"sluice/internal/jobs"
)

// Sweep deletes what is over of files and jobs: each in a transaction of its own, so that
// others are not kept waiting by a large one.
func (db *DB) Sweep(ctx context.Context, s jobs.Sweep) (deleted int, err error) {
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
			"SELECT tenant, id FROM jobs WHERE results_us > 0 AND results_us <= $1 AND EXISTS (SELECT 1 FROM job_lines WHERE job = jobs.id)",
			[]any{now},
			func(tx *sql.Tx, _ sluice.TenantID, id string) error {
				return run(ctx, tx, id, "DELETE FROM job_lines WHERE job = $1", "DELETE FROM job_results WHERE job = $1", "DELETE FROM handover_lines WHERE job = $1")
			},
		},
		{
			"SELECT tenant, id FROM jobs WHERE results_us > 0 AND results_us <= $1",
			[]any{forgotten},
			func(tx *sql.Tx, t sluice.TenantID, id string) error { return dropJob(ctx, tx, t, jobs.JobID(id)) },
		},
	} {
		n, err := db.sweep(ctx, fmt.Sprintf("%s ORDER BY id LIMIT %d", kind.find, s.Limit), kind.args, kind.drop)
		deleted += n
		if err != nil {
			return deleted, fmt.Errorf("delete what is over: %w", err)
		}
	}
	for _, q := range [...]struct {
		sql string
		arg int64
	}{{"DELETE FROM job_workers WHERE until_us <= $1", now}, {"DELETE FROM voided_requests WHERE at_us <= $1", forgotten}} {
		if _, err := db.write.ExecContext(ctx, q.sql, q.arg); err != nil {
			return deleted, fmt.Errorf("delete what is over: %w", err)
		}
	}
	return deleted, nil
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
	n := 0
	for _, f := range all {
		err := db.tx(ctx, func(tx *sql.Tx) error { return drop(tx, f.tenant, f.id) })
		switch {
		case err == nil:
			n++
		case sluice.AsError(err).Kind != sluice.KindNotFound:
			return n, err
		}
	}
	return n, err
}
