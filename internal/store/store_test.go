package store_test

import (
	"testing"

	"sluice/internal/store/storetest"
)

func TestSQLite(t *testing.T) { storetest.Run(t, storetest.SQLite) }

func TestPostgres(t *testing.T) { storetest.Run(t, storetest.Postgres) }
