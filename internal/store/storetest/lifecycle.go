package storetest

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"sluice/internal/store"
)

var lifecycleTests = []namedTest{
	{"reopen", testReopen},
	{"newer schema", testNewerSchema},
	{"cancelled", testCancelled},
}

// raw runs a statement past the store.
func raw(t testing.TB, dsn, statement string) {
	t.Helper()
	driver, name := "pgx", dsn
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, name = "sqlite", path
	}
	db, err := sql.Open(driver, name)
	must(t, err)
	_, err = db.ExecContext(t.Context(), statement)
	must(t, err, db.Close())
}

func testReopen(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db, err := store.Open(t.Context(), dsn, store.Options{})
	must(t, err)
	must(t, db.Ping(t.Context()), db.Append(t.Context(), varied(20)), db.Close())
	db = Open(t, dsn, store.Options{})
	must(t, db.Append(t.Context(), varied(30)))
	verified(t, db, 30)
}

// A database from a later version is left alone.
func testNewerSchema(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db, err := store.Open(t.Context(), dsn, store.Options{})
	must(t, err, db.Close())
	raw(t, dsn, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)")
	_, err = store.Open(t.Context(), dsn, store.Options{})
	if err == nil || !strings.Contains(err.Error(), "schema 99999") {
		t.Errorf("got %v", err)
	}
}

func testCancelled(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Append(ctx, varied(5)); err == nil {
		t.Error("a cancelled append said that it is done")
	}
	verified(t, db, 0)
}
