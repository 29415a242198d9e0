package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. Replicas that start together take turns
// (Postgres); each migration is one transaction, so one that dies is tried again
// at the next start.
func (db *DB) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	dialect := goose.DialectSQLite3
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger())}
	if db.engine.name == "postgres" {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return err
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(dialect, db.write, files, opts...)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	// The provider would close the database, which is not its own.
	current, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; current > newest {
		return fmt.Errorf("the database has schema %d and this version of sluice knows schemas up to %d: "+
			"run the version that made it, or restore a backup from before", current, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema from version %d: %w", current, err)
	}
	return nil
}
