package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/internal/auth"
	"sluice/internal/ledger"
)

// Options says how a database is opened. Zero fields take the defaults.
type Options struct {
	Readers     int           // connections that read; 0 is 4
	BusyTimeout time.Duration // how long a statement waits for another process's lock (SQLite); 0 is 5 s
	ScanMax     int           // most entries that a usage question may read where no roll-up answers it; 0 is 200,000
}

// DB is the store. Its methods are safe for concurrent use. Errors that a caller
// can act on are *sluice.Error: KindNotFound, KindConflict, KindInvalid.
type DB struct {
	write   *sql.DB // one connection for SQLite
	read    *sql.DB // the same pool for Postgres
	engine  engine
	lock    *ledger.FileLock // of the SQLite file; nil for Postgres
	scanMax int
	here    here // of SQLite
}

var (
	_ ledger.Sink = (*DB)(nil)
	_ auth.Source = (*DB)(nil)
)

// ErrUnavailable is wrapped by the errors of Open that may pass: the database is
// not there yet. The caller tries again.
var ErrUnavailable = errors.New("the database does not answer")

// engine is what SQLite and Postgres do differently.
type engine struct {
	name string
	open func(ctx context.Context, dsn string, o Options) (*DB, error)
	// snapshot is the transaction in which several reads see one moment.
	snapshot *sql.TxOptions
	// conflict reports a violated key.
	conflict func(error) bool
	// withIDs asks select with the condition that the column is one of ids.
	withIDs func(ctx context.Context, db asker, query, column string, ids []string) (*sql.Rows, error)
	// insertRows is how many rows one INSERT takes. Postgres saves round trips
	// with many; SQLite, for which it is 1, has none to save (see insertHere).
	insertRows int
}

// Open opens or creates the store at dsn, "sqlite:PATH" or "postgres://…", and
// brings its schema up to date. An error that wraps ErrUnavailable may pass, one
// that wraps ledger.ErrLocked is another process on the same SQLite file; all
// others are for the operator and say what to do.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if o.Readers == 0 {
		o.Readers = 4
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.ScanMax == 0 {
		o.ScanMax = 200_000
	}
	var e engine
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		e = sqliteEngine()
	case scheme == "postgres" || scheme == "postgresql":
		e = postgresEngine()
	default:
		return nil, fmt.Errorf("open store: use sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE, not a %q address", scheme)
	}
	db, err := e.open(ctx, dsn, o)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	db.engine, db.scanMax = e, o.ScanMax
	if err := db.migrate(ctx); err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(err, db.Close()))
	}
	return db, nil
}

// Close closes the store. Transactions in progress are rolled back.
func (db *DB) Close() error {
	err := db.write.Close()
	if db.read != db.write {
		err = errors.Join(err, db.read.Close())
	}
	if db.lock != nil {
		err = errors.Join(err, db.lock.Unlock())
	}
	return err
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	if err := db.read.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("ping store: %w", err)
	}
	return nil
}

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return db.engine.name }

// tx runs fn in a transaction that may write.
func (db *DB) tx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return inTx(ctx, db.write, nil, fn)
}

// view runs fn in a transaction that reads one moment.
func (db *DB) view(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return inTx(ctx, db.read, db.engine.snapshot, fn)
}

// txOn is tx with the connection that the transaction is on.
func (db *DB) txOn(ctx context.Context, fn func(conn *sql.Conn, tx *sql.Tx) error) error {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	err = inTx(ctx, conn, nil, func(tx *sql.Tx) error { return fn(conn, tx) })
	return errors.Join(err, conn.Close())
}

// asker is a pool or a transaction.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// beginner is a pool or one connection of it.
type beginner interface {
	BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
}

func inTx(ctx context.Context, db beginner, o *sql.TxOptions, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, o)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(tx); err != nil {
		if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			err = errors.Join(err, rerr)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
