package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
)

var _ jobs.Store = (*DB)(nil)

// missing is what is said of what is not there and of what is another tenant's.
func missing(param, what string) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Param: param, Msg: "names no " + what + " that is here"}
}

const fileColumns = "id, tenant, project, name, purpose, bytes, ready, hidden, created_us, expires_us"

func scanFile(row scanner) (f jobs.File, err error) {
	var created, expires int64
	err = row.Scan(&f.ID, &f.Tenant, &f.Project, &f.Name, &f.Purpose, &f.Bytes, &f.Ready, &f.Hidden, &created, &expires)
	f.Created = fromMicros(created)
	if expires > 0 {
		f.Expires = fromMicros(expires)
	}
	return f, err
}

// microsOf is a time as it is kept; one that is not set is 0.
func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// PutFile begins a file.
func (db *DB) PutFile(ctx context.Context, f jobs.File) error {
	return told(db.tx(ctx, func(tx *sql.Tx) error { return beginFile(ctx, tx, &f) }), "begin file %s", f.ID)
}

func beginFile(ctx context.Context, tx *sql.Tx, f *jobs.File) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO files ("+fileColumns+") VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $7, 0)",
		string(f.ID), string(f.Tenant), string(f.Project), plainText(f.Name), plainText(f.Purpose), flag(f.Hidden), f.Created.UnixMicro())
	return err
}

// plainText is a text as both engines take it.
func plainText(s string) string {
	clean(&s)
	return s
}

// holdOf makes sure that a tenant has a row of what it holds.
const holdOf = "INSERT INTO job_tenants (tenant, file_bytes, jobs, lines) VALUES ($1, 0, 0, 0) ON CONFLICT (tenant) DO NOTHING"

// PutChunk adds a chunk to a file that is not ready.
func (db *DB) PutChunk(ctx context.Context, t sluice.TenantID, id jobs.FileID, n int, body []byte, bound int64) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, holdOf, string(t)); err != nil {
			return err
		}
		held, err := changedBy(tx.ExecContext(ctx, "UPDATE job_tenants SET file_bytes = file_bytes + $2 WHERE tenant = $1 AND (CAST($3 AS BIGINT) = 0 OR file_bytes + $2 <= $3)", string(t), len(body), bound))
		if err != nil {
			return err
		}
		if held == 0 {
			return &sluice.Error{
				Kind: sluice.KindInvalid, Reason: sluice.InvalidRequest, Param: "file",
				Msg: fmt.Sprintf("does not fit: the tenant's files have %d bytes at most, together", bound), Hint: "delete files that are not needed any more",
			}
		}
		grown, err := changedBy(tx.ExecContext(ctx, "UPDATE files SET bytes = bytes + $3 WHERE tenant = $1 AND id = $2 AND ready = 0", string(t), string(id), len(body)))
		if err != nil {
			return err
		}
		if grown == 0 {
			return missing("file_id", "file")
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO file_chunks (file, n, body) VALUES ($1, $2, $3)", string(id), n, body)
		return err
	})
	return told(err, "write chunk %d of file %s", n, id)
}

// told wraps an error, unless it is for the caller as it is.
func told(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		return e
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// changedBy is how many rows a statement changed.
func changedBy(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// SealFile ends the writing of a file.
func (db *DB) SealFile(ctx context.Context, f jobs.File, once *idempotency.Once) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		if err := takeOnce(ctx, tx, once); err != nil {
			return err
		}
		n, err := changedBy(tx.ExecContext(ctx, "UPDATE files SET name = $3, purpose = $4, expires_us = $5, ready = $6 WHERE tenant = $1 AND id = $2 AND ready = 0",
			string(f.Tenant), string(f.ID), plainText(f.Name), plainText(f.Purpose), microsOf(f.Expires), flag(f.Ready)))
		if err == nil && n == 0 {
			err = missing("file_id", "file")
		}
		return err
	})
	return told(err, "end file %s", f.ID)
}

// File reads a file, ready or not.
func (db *DB) File(ctx context.Context, t sluice.TenantID, id jobs.FileID) (jobs.File, error) {
	f, err := scanFile(db.read.QueryRowContext(ctx, "SELECT "+fileColumns+" FROM files WHERE tenant = $1 AND id = $2", string(t), string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("file_id", "file")
	}
	return f, told(err, "read file %s", id)
}

// Files is a page of files.
func (db *DB) Files(ctx context.Context, q jobs.FileQuery, now time.Time) ([]jobs.File, error) {
	var c conditions
	c.add("tenant = $?", string(q.Tenant))
	c.parts = append(c.parts, "ready = 1", "hidden = 0")
	c.add("(expires_us = 0 OR expires_us > $?)", now.UnixMicro())
	if q.Project != "" {
		c.add("project = $?", string(q.Project))
	}
	if q.Purpose != "" {
		c.add("purpose = $?", q.Purpose)
	}
	order, beyond := "DESC", "<"
	if q.Oldest {
		order, beyond = "ASC", ">"
	}
	if q.After != "" {
		after, err := db.File(ctx, q.Tenant, q.After)
		if err != nil {
			return nil, err
		}
		c.after(beyond, after.Created, string(after.ID))
	}
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM files%s ORDER BY created_us %s, id %[3]s LIMIT %d", fileColumns, c.where(), order, q.Limit+1), c.args...)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return collect(rows, scanFile)
}

// after is the condition on rows that follow one in the order of created_us and id.
func (c *conditions) after(beyond string, created time.Time, id string) {
	c.args = append(c.args, created.UnixMicro(), id)
	n := len(c.args)
	c.parts = append(c.parts, fmt.Sprintf("(created_us %[1]s $%[2]d OR created_us = $%[2]d AND id %[1]s $%[3]d)", beyond, n-1, n))
}

// Chunk reads a chunk of a file.
func (db *DB) Chunk(ctx context.Context, t sluice.TenantID, id jobs.FileID, n int) (body []byte, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT c.body FROM file_chunks c JOIN files f ON f.id = c.file WHERE f.tenant = $1 AND c.file = $2 AND c.n = $3", string(t), string(id), n).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("file_id", "file")
	}
	return body, told(err, "read chunk %d of file %s", n, id)
}

// DropFile deletes a file that no open job reads.
func (db *DB) DropFile(ctx context.Context, t sluice.TenantID, id jobs.FileID) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		var used int64
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM jobs WHERE input = $1 AND ended = 0", string(id)).Scan(&used); err != nil {
			return err
		}
		if used > 0 {
			return &sluice.Error{
				Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Param: "file_id",
				Msg: "names the input of a batch that has not ended", Hint: "cancel the batch, or delete the file when it has ended",
			}
		}
		if err := dropFile(ctx, tx, t, id); err != nil {
			return err
		}
		_, err := litter{what: fileLitter, id: string(id), tenant: t}.clear(ctx, tx)
		return err
	})
	return told(err, "delete file %s", id)
}

// dropFile deletes a file, whose chunks are litter then.
func dropFile(ctx context.Context, tx *sql.Tx, t sluice.TenantID, id jobs.FileID) error {
	var created int64
	err := tx.QueryRowContext(ctx, "DELETE FROM files WHERE tenant = $1 AND id = $2 RETURNING created_us", string(t), string(id)).Scan(&created)
	if errors.Is(err, sql.ErrNoRows) {
		return missing("file_id", "file")
	}
	if err != nil {
		return err
	}
	return addLitter(ctx, tx, fileLitter, string(id), t, fromMicros(created))
}
