package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sluice/internal/ledger"
)

// checkMax is the size up to which a database is read whole for damage when it
// is opened; larger ones are checked where they are used.
const checkMax = 256 << 20

func sqliteEngine() engine {
	return engine{
		name:       "sqlite",
		open:       openSQLite,
		insertRows: 1,
		withIDs:    sqliteWithIDs,
		conflict: func(err error) bool {
			e, ok := errors.AsType[*sqlite.Error](err)
			return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE)
		},
	}
}

// sqliteWithIDs passes the ids as one JSON array: a statement with so many
// parameters would take longer to bind than to answer.
func sqliteWithIDs(ctx context.Context, db asker, query, column string, ids []string) (*sql.Rows, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	return db.QueryContext(ctx, query+" WHERE "+column+" IN (SELECT value FROM json_each($1))", string(list))
}

// openSQLite opens one connection that writes and a few that read. A lock file
// keeps a second process out: two would each believe that its counters are whole.
func openSQLite(ctx context.Context, dsn string, o Options) (_ *DB, err error) {
	path := strings.TrimPrefix(strings.TrimPrefix(dsn, "sqlite:"), "//")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := ledger.LockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	db := &DB{lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.closeOpened())
		}
	}()
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err // SQLite would say less
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)",
		"foreign_keys(ON)", "cache_size(-16384)", "journal_size_limit(67108864)",
	}
	if db.write, err = sql.Open("sqlite", sqliteDSN(path, "immediate", pragmas)); err != nil {
		return nil, err
	}
	db.write.SetMaxOpenConns(1)
	if db.read, err = sql.Open("sqlite", sqliteDSN(path, "deferred", append(pragmas, "query_only(ON)"))); err != nil {
		return nil, err
	}
	db.read.SetMaxOpenConns(o.Readers)
	db.read.SetMaxIdleConns(o.Readers)
	return db, checkSQLite(ctx, db.write, path)
}

func (db *DB) closeOpened() error {
	var errs []error
	for _, p := range []*sql.DB{db.write, db.read} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, db.lock.Unlock())...)
}

func sqliteDSN(path, txlock string, pragmas []string) string {
	q := url.Values{"_pragma": pragmas, "_txlock": {txlock}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// checkSQLite refuses a damaged file before anything is written to it.
func checkSQLite(ctx context.Context, db *sql.DB, path string) error {
	query := "PRAGMA schema_version"
	if info, err := os.Stat(path); err == nil && info.Size() <= checkMax {
		query = "PRAGMA quick_check(1)"
	}
	var answer string
	err := db.QueryRowContext(ctx, query).Scan(&answer)
	if query == "PRAGMA quick_check(1)" && err == nil && answer != "ok" {
		err = errors.New(answer)
	} else if e, ok := errors.AsType[*sqlite.Error](err); err != nil && !(ok && damaged(e.Code())) {
		if ok && e.Code()&0xff == sqlite3.SQLITE_BUSY {
			return fmt.Errorf("%w: another process has locked %s", ErrUnavailable, path)
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("the database %[1]s is damaged (%[2]w). Nothing was changed. To put a backup in its place, run: "+
			"rm -f %[1]s-wal %[1]s-shm && cp BACKUP %[1]s ; to begin an empty one, run: mkdir %[1]s.damaged && mv %[1]s %[1]s-* %[1]s.damaged/ ; "+
			"what the journal still has is drained into either", path, err)
	}
	return nil
}

func damaged(code int) bool {
	return code&0xff == sqlite3.SQLITE_CORRUPT || code&0xff == sqlite3.SQLITE_NOTADB
}
