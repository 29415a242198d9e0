package store

import (
	"context"
	"database/sql"
	"errors"

	"sluice"
	"sluice/internal/jobs"
)

// PutOutput adds a slice of results to the files of a job.
func (db *DB) PutOutput(ctx context.Context, o *jobs.Output) (bool, error) {
	j := o.Job
	doc, err := docOf(j)
	if err != nil {
		return false, err
	}
	ok, err := db.change(ctx, j.ID, fenced(j.State, o.Fence), func(_ *sql.Conn, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE jobs SET doc = $2, lease_until_us = $3 WHERE id = $1", string(j.ID), doc, o.Until.UnixMicro()); err != nil {
			return err
		}
		for i := range o.Begin {
			if err := beginFile(ctx, tx, &o.Begin[i]); err != nil {
				return err
			}
		}
		for i := range o.Chunks {
			if err := replaceChunk(ctx, tx, j.Caller.Tenant, &o.Chunks[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return ok, told(err, "write the results of job %s", j.ID)
}

// replaceChunk puts a chunk of a file that is not ready in the place of what it had there.
func replaceChunk(ctx context.Context, tx *sql.Tx, t sluice.TenantID, c *jobs.Chunk) error {
	var was int64
	err := tx.QueryRowContext(ctx, "SELECT LENGTH(body) FROM file_chunks WHERE file = $1 AND n = $2", string(c.File), c.N).Scan(&was)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	grown := int64(len(c.Body)) - was
	n, err := changedBy(tx.ExecContext(ctx, "UPDATE files SET bytes = bytes + $3 WHERE tenant = $1 AND id = $2 AND ready = 0", string(t), string(c.File), grown))
	if err != nil {
		return err
	}
	if n == 0 {
		return missing("file_id", "file")
	}
	if _, err := tx.ExecContext(ctx, "UPDATE job_tenants SET file_bytes = file_bytes + $2 WHERE tenant = $1", string(t), grown); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO file_chunks (file, n, body) VALUES ($1, $2, $3) ON CONFLICT (file, n) DO UPDATE SET body = excluded.body", string(c.File), c.N, c.Body)
	return err
}
