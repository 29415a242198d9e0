package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

func postgresEngine() engine {
	return engine{
		name:       "postgres",
		open:       openPostgres,
		snapshot:   &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		insertRows: 50,
		withIDs: func(ctx context.Context, db asker, query, column string, ids []string) (*sql.Rows, error) {
			return db.QueryContext(ctx, query+" WHERE "+column+" = ANY($1)", ids)
		},
		conflict: func(err error) bool {
			e, ok := errors.AsType[*pgconn.PgError](err)
			return ok && e.Code == "23505"
		},
	}
}

func openPostgres(ctx context.Context, dsn string, o Options) (*DB, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the postgres address does not parse: use postgres://USER:PASSWORD@HOST/DATABASE") // the cause may show the password
	}
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(o.Readers + 1)
	pool.SetMaxIdleConns(o.Readers + 1)
	db := &DB{write: pool, read: pool}
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(unavailable(err, cfg), pool.Close())
	}
	return db, nil
}

// unavailable tells a database that is not there yet from one that refuses.
func unavailable(err error, cfg *pgx.ConnConfig) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code[:2] != "57" && e.Code[:2] != "53" {
		return fmt.Errorf("postgres at %s:%d refuses user %q on database %q: %s (%s)", cfg.Host, cfg.Port, cfg.User, cfg.Database, e.Message, e.Code)
	}
	return fmt.Errorf("%w: postgres at %s:%d, database %q: %w", ErrUnavailable, cfg.Host, cfg.Port, cfg.Database, err)
}
