package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sluice/internal/versions"
)

var _ versions.Store = (*DB)(nil)

// versionColumns are a version's columns but body and changes, in the order of
// scanVersion.
const versionColumns = "number, id, hash, at_us, author, reason, source, of_number, file, file_hash"

// AddVersion adds a version of the configuration and returns its number. One whose ID
// is there already, or that was read from a file and has the hash of the newest, is
// not added: its number is that one's. The oldest beyond versions.MaxStored and
// MaxStoredBytes are forgotten.
func (db *DB) AddVersion(ctx context.Context, v versions.Version) (number int64, err error) {
	err = db.tx(ctx, func(tx *sql.Tx) error {
		// This takes the row's lock, so that replicas follow each other on Postgres
		// too.
		if _, err := tx.ExecContext(ctx, "UPDATE meta SET value = value WHERE name = 'config_version'"); err != nil {
			return err
		}
		var known bool
		if number, known, err = knownVersion(ctx, tx, &v); err != nil || known {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE meta SET value = value + 1 WHERE name = 'config_version'"); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'config_version'").Scan(&number); err != nil {
			return err
		}
		for _, s := range []*string{&v.Author, &v.Reason, &v.File, &v.Text, &v.Changes} {
			clean(s)
		}
		_, err := tx.ExecContext(ctx,
			"INSERT INTO config_versions ("+versionColumns+", size, body, changes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
			number, v.ID, v.Hash, v.At.UnixMicro(), v.Author, v.Reason, string(v.Source), v.Of, v.File, v.FileHash, v.Size(), v.Text, v.Changes)
		if err != nil {
			return err
		}
		return forgetVersions(ctx, tx, number)
	})
	if err != nil {
		return 0, fmt.Errorf("add version of the configuration: %w", err)
	}
	return number, nil
}

// knownVersion finds the version that v is already, if it is one.
func knownVersion(ctx context.Context, q querier, v *versions.Version) (number int64, known bool, err error) {
	newest, err := versionRows(ctx, q, "SELECT "+versionColumns+" FROM config_versions ORDER BY number DESC LIMIT 1")
	if err != nil {
		return 0, false, err
	}
	if len(newest) > 0 && v.Source == versions.File && newest[0].Hash == v.Hash {
		return newest[0].Number, true, nil
	}
	same, err := versionRows(ctx, q, "SELECT "+versionColumns+" FROM config_versions WHERE id = $1", v.ID)
	if err != nil || len(same) == 0 {
		return 0, false, err
	}
	return same[0].Number, true, nil
}

// forgetVersions deletes the oldest beyond what is kept; never the newest.
func forgetVersions(ctx context.Context, tx *sql.Tx, newest int64) error {
	rows, err := tx.QueryContext(ctx, "SELECT number, size FROM config_versions ORDER BY number DESC")
	if err != nil {
		return err
	}
	type sized struct{ number, size int64 }
	all, err := collect(rows, func(r scanner) (v sized, err error) { return v, r.Scan(&v.number, &v.size) })
	if err != nil {
		return err
	}
	var size int64
	for i, v := range all {
		if size += v.size; i > 0 && (i >= versions.MaxStored || size > versions.MaxStoredBytes) {
			_, err := tx.ExecContext(ctx, "DELETE FROM config_versions WHERE number <= $1 AND number < $2", v.number, newest)
			return err
		}
	}
	return nil
}

// ListVersions lists versions below a number, newest first, without their Text and
// Changes; before 0 begins with the newest.
func (db *DB) ListVersions(ctx context.Context, before int64, limit int) ([]versions.Version, error) {
	where, args := "", []any(nil)
	if before > 0 {
		where, args = " WHERE number < $1", []any{before}
	}
	found, err := versionRows(ctx, db.read, fmt.Sprintf("SELECT %s FROM config_versions%s ORDER BY number DESC LIMIT %d", versionColumns, where, max(limit, 0)), args...)
	if err != nil {
		return nil, fmt.Errorf("list versions of the configuration: %w", err)
	}
	return found, nil
}

// FindVersion finds a version by its number, or the newest with a hash that begins with
// r.Hash; KindNotFound if there is none.
func (db *DB) FindVersion(ctx context.Context, r versions.Ref) (v versions.Version, err error) {
	where, arg := "number = $1", any(r.Number)
	if r.Number <= 0 {
		where, arg = "hash LIKE $1", any(r.Hash+"%") // hexadecimal digits: see versions.ParseRef
	}
	var text, changes string
	row := db.read.QueryRowContext(ctx, "SELECT body, changes, "+versionColumns+" FROM config_versions WHERE "+where+" ORDER BY number DESC LIMIT 1", arg)
	v, err = scanVersion(row, &text, &changes)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return v, versions.Missing(r)
	case err != nil:
		return v, fmt.Errorf("read version of the configuration: %w", err)
	}
	v.Text, v.Changes = text, changes
	return v, nil
}

func versionRows(ctx context.Context, q querier, query string, args ...any) ([]versions.Version, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r scanner) (versions.Version, error) { return scanVersion(r) })
}

// scanVersion reads versionColumns, after what stands before them.
func scanVersion(row scanner, before ...any) (v versions.Version, err error) {
	var at int64
	err = row.Scan(append(before, &v.Number, &v.ID, &v.Hash, &at, &v.Author, &v.Reason, &v.Source, &v.Of, &v.File, &v.FileHash)...)
	v.At = fromMicros(at)
	return v, err
}
