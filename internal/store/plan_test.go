package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/jobs"
)

// largeJob is a store with jobs of many lines, put there by the engine itself.
func largeJob(t *testing.T, dsn string) *DB {
	t.Helper()
	db, err := Open(t.Context(), dsn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for i := range 2 {
		j := jobs.Job{ID: jobs.JobID(fmt.Sprint("batch_", i)), Caller: sluice.Principal{Tenant: "acme"}, Created: time.Unix(1e9, 0)}
		if err := db.PutJob(t.Context(), &j, jobs.Put{Bounds: jobs.DefaultBounds()}); err != nil {
			t.Fatal(err)
		}
	}
	const lines = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO job_lines (job, line, begins, bytes, custom_id, state, claim, worker, due_us) SELECT 'batch_0', i, i * 100, 99, 'c' || i, CASE WHEN i < 9000 THEN 2 ELSE 0 END, 1, '', 0 FROM n`
	for _, q := range []string{lines, strings.ReplaceAll(lines, "batch_0", "batch_1"), "ANALYZE job_lines"} {
		if _, err := db.write.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// planSchema is a schema of Postgres that the test drops.
func planSchema(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("SLUICE_TEST_POSTGRES")
	if dsn == "" {
		t.Skip("SLUICE_TEST_POSTGRES is not set")
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("sluice_plan_%s_%d", strings.ToLower(strings.TrimSuffix(t.Name(), "/postgres")), os.Getpid())
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	return dsn + "&search_path=" + schema
}

// planOf is how the engine would answer a question.
func planOf(t *testing.T, db *DB, query string, args ...any) string {
	t.Helper()
	explain, columns := "EXPLAIN ", 1
	if db.Engine() == "sqlite" {
		explain, columns = "EXPLAIN QUERY PLAN ", 4
	}
	rows, err := db.write.QueryContext(t.Context(), explain+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := collect(rows, func(r scanner) (line string, err error) {
		into := make([]any, columns)
		for i := range into {
			into[i] = new(any)
		}
		into[columns-1] = &line
		return line, r.Scan(into...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// What is claimed of a job is found by an index in its order: nothing is sorted, and no
// line is looked at that is not claimed, however many wait.
func TestClaimsAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]func(*testing.T) string{"sqlite": func(t *testing.T) string { return "sqlite:" + t.TempDir() + "/sluice.db" }, "postgres": planSchema} {
		t.Run(name, func(t *testing.T) {
			db := largeJob(t, fresh(t))
			for what, where := range map[string]string{"waiting": waitingLines, "of lost workers": orphanLines} {
				plan := planOf(t, db, linesQuery(where, 64), "batch_1", 1)
				t.Logf("lines %s:\n%s", what, plan)
				if !strings.Contains(plan, "job_lines_due") || strings.Contains(plan, "Seq Scan on job_lines") || what == "waiting" && (strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE")) {
					t.Errorf("lines %s are found so:\n%s", what, plan)
				}
			}
		})
	}
}
