package store

import (
	"path/filepath"
	"testing"
)

// The settings that durability rests on are really in force, on each connection.
func TestPragmas(t *testing.T) {
	db, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "a b?c#%41.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000"} {
		var got string
		if err := db.write.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", pragma, got, want, err)
		}
	}
	if _, err := db.read.ExecContext(t.Context(), "DELETE FROM meta"); err == nil {
		t.Error("a connection that reads can write")
	}
}
