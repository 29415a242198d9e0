package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"sluice"
	"sluice/internal/jobs"
)

// What of a file or a job outlives it: what is too much for the transaction that ends it
// is deleted by and by.
const (
	fileLitter = "file" // its chunks
	jobLitter  = "job"  // its lines and results
	// What is known of a job's lines at providers; its id has this before the job's.
	handoverLitter = "handover"
)

// The bounds of what one transaction deletes.
const (
	litterChunks = 16
	litterRows   = 2000
	litterBytes  = litterChunks * jobs.ChunkBytes
)

// litter is what is to be deleted.
type litter struct {
	what, id string
	tenant   sluice.TenantID
}

func addLitter(ctx context.Context, tx *sql.Tx, what, id string, t sluice.TenantID, due time.Time) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO job_litter (id, what, tenant, due_us) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET due_us = excluded.due_us", id, what, string(t), microsOf(due))
	return err
}

// addHandoverLitter has what is known of a job's lines at providers be over at a time.
func addHandoverLitter(ctx context.Context, tx *sql.Tx, j *jobs.Job, due time.Time) error {
	var any bool
	err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM handover_lines WHERE job = $1)", string(j.ID)).Scan(&any)
	if err != nil || !any {
		return err
	}
	return addLitter(ctx, tx, handoverLitter, handoverLitter+":"+string(j.ID), j.Caller.Tenant, due)
}

// clearLitter deletes a slice of what is due, of one tenant, so that two replicas that do
// so wait for each other in one order.
func (db *DB) clearLitter(ctx context.Context, now time.Time) (more bool, err error) {
	const most = 100
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf("SELECT what, id, tenant FROM job_litter WHERE due_us <= $1 ORDER BY due_us, id LIMIT %d", most), now.UnixMicro())
	if err != nil {
		return false, err
	}
	all, err := collect(rows, func(r scanner) (l litter, err error) {
		err = r.Scan(&l.what, &l.id, &l.tenant)
		return l, err
	})
	if err != nil || len(all) == 0 {
		return false, err
	}
	err = db.tx(ctx, func(tx *sql.Tx) error {
		more = len(all) == most
		for _, l := range all {
			if l.tenant != all[0].tenant {
				more = true
				break
			}
			left, err := l.clear(ctx, tx)
			if err != nil {
				return err
			}
			if left { // so this was a slice
				more = true
				break
			}
		}
		return nil
	})
	return more, err
}

// clear deletes a slice, and what says that there is one to delete if it was the last.
func (l litter) clear(ctx context.Context, tx *sql.Tx) (more bool, err error) {
	switch l.what {
	case fileLitter:
		more, err = clearFile(ctx, tx, l)
	case jobLitter:
		if more, err = clearLines(ctx, tx, l.id, "job_results", "LENGTH(body)"); err == nil && !more {
			more, err = clearLines(ctx, tx, l.id, "job_lines", "0")
		}
	default:
		more, err = clearLines(ctx, tx, strings.TrimPrefix(l.id, handoverLitter+":"), "handover_lines", "0")
	}
	if err != nil || more {
		return more, err
	}
	return false, run(ctx, tx, l.id, "DELETE FROM job_litter WHERE id = $1")
}

// clearFile deletes a slice of the chunks of a file that is gone, gives their bytes back,
// and reports whether there are more.
func clearFile(ctx context.Context, tx *sql.Tx, l litter) (more bool, err error) {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("DELETE FROM file_chunks WHERE file = $1 AND n IN (SELECT n FROM file_chunks WHERE file = $1 ORDER BY n LIMIT %d) RETURNING LENGTH(body)", litterChunks), l.id)
	if err != nil {
		return false, err
	}
	sizes, err := collect(rows, func(r scanner) (n int64, err error) {
		err = r.Scan(&n)
		return n, err
	})
	if err != nil {
		return false, err
	}
	sum := int64(0)
	for _, n := range sizes {
		sum += n
	}
	if sum > 0 {
		if _, err := tx.ExecContext(ctx, "UPDATE job_tenants SET file_bytes = file_bytes - $2 WHERE tenant = $1", string(l.tenant), sum); err != nil {
			return false, err
		}
	}
	return len(sizes) == litterChunks, nil
}

// clearLines deletes a slice of what a table has of the lines of a job, and reports whether
// there is more.
func clearLines(ctx context.Context, tx *sql.Tx, job, table, size string) (more bool, err error) {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT line, %s FROM %s WHERE job = $1 ORDER BY line LIMIT %d", size, table, litterRows), job)
	if err != nil {
		return false, err
	}
	type row struct{ line, size int64 }
	found, err := collect(rows, func(r scanner) (v row, err error) {
		err = r.Scan(&v.line, &v.size)
		return v, err
	})
	if err != nil || len(found) == 0 {
		return false, err
	}
	n, bytes := 0, int64(0)
	for n < len(found) && bytes < litterBytes {
		bytes += found[n].size
		n++
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE job = $1 AND line <= $2", job, found[n-1].line)
	return n < len(found) || n == litterRows, err
}
