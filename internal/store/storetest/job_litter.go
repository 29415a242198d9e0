package storetest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/jobs"
	"sluice/internal/store"
)

// sweepAll sweeps until nothing is left, and returns in how many slices.
func sweepAll(t testing.TB, db *store.DB, now time.Time) (slices int) {
	t.Helper()
	for {
		slices++
		more, err := db.Sweep(t.Context(), jobs.Sweep{Now: now, Abandoned: now.Add(-time.Hour), Forgotten: now.Add(-24 * time.Hour)})
		must(t, err)
		if !more {
			return slices
		}
		if slices > 1000 {
			t.Fatal("there is always more to sweep")
		}
	}
}

// rows is what tables have of files and jobs, by another connection.
func rows(t testing.TB, dsn string) map[string]int {
	t.Helper()
	name, dsn, _ := strings.Cut(dsn, ":")
	driver, dsn := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[name], map[string]string{"sqlite": dsn, "postgres": name + ":" + dsn}[name]
	db, err := sql.Open(driver, dsn)
	must(t, err)
	defer db.Close()
	out := map[string]int{}
	for _, table := range []string{"files", "file_chunks", "jobs", "job_lines", "job_results", "job_litter"} {
		var n int
		must(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
		if n > 0 {
			out[table] = n
		}
	}
	var bytes, open, lines sql.NullInt64
	must(t, db.QueryRowContext(t.Context(), "SELECT SUM(file_bytes), SUM(jobs), SUM(lines) FROM job_tenants").Scan(&bytes, &open, &lines))
	for what, n := range map[string]int64{"held bytes": bytes.Int64, "held jobs": open.Int64, "held lines": lines.Int64} {
		if n != 0 {
			out[what] = int(n)
		}
	}
	return out
}

func wantRows(t testing.TB, dsn string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, rows(t, dsn)); diff != "" {
		t.Errorf("rows -want +got:\n%s", diff)
	}
}

func testSweep(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db := Open(t, dsn, store.Options{})
	f := newFile("file-over")
	f.Expires = noon
	putFile(t, db, f, "x")
	putFile(t, db, newFile("file-stays"), "x")
	must(t, db.PutFile(t.Context(), newFile("file-abandoned")))
	j := startJob(t, db, "msgbatch_1", 1)
	_, _, err := db.EndLines(t.Context(), j.ID, noon, jobs.LineExpired)
	must(t, err)
	a := startJob(t, db, "async_1", 1)
	must(t, db.Beat(t.Context(), "w", until))
	lines, err := db.Claim(t.Context(), jobs.Claim{Job: a.ID, Worker: "w", Now: noon, Limit: 1})
	must(t, err)
	_, err = db.Post(t.Context(), a.ID, noon, []jobs.Posting{answered(lines[0], a.ID)})
	must(t, err)
	a.Kind = jobs.Async
	for _, j := range []*jobs.Job{j, a} {
		j.State, j.Ended, j.ResultsExpire = jobs.Cancelled, noon, noon.Add(time.Minute)
		ok, err := db.SaveJob(t.Context(), j, jobs.InProgress, 0)
		must(t, err)
		held(t, ok)
	}
	wantRows(t, dsn, map[string]int{"files": 3, "file_chunks": 2, "jobs": 2, "job_lines": 2, "job_results": 1, "job_litter": 2, "held bytes": 2})
	sweepAll(t, db, noon) // the file that is over and lines whose results are in files
	wantRows(t, dsn, map[string]int{"files": 2, "file_chunks": 1, "jobs": 2, "job_lines": 1, "job_results": 1, "job_litter": 1, "held bytes": 1})
	sweepAll(t, db, noon.Add(2*time.Hour)) // what was abandoned, and the answer
	wantRows(t, dsn, map[string]int{"files": 1, "file_chunks": 1, "jobs": 2, "held bytes": 1})
	sweepAll(t, db, noon.Add(25*time.Hour)) // what clients were told of the jobs
	wantRows(t, dsn, map[string]int{"files": 1, "file_chunks": 1, "held bytes": 1})
}

// A large file goes slice by slice, and its bytes are its tenant's until they are gone.
func testFileLitter(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db := Open(t, dsn, store.Options{})
	chunks := make([]string, 40)
	for i := range chunks {
		chunks[i] = "abc"
	}
	f := newFile("file-1")
	putFile(t, db, f, chunks...)
	must(t, db.DropFile(t.Context(), "acme", f.ID))
	_, err := db.File(t.Context(), "acme", f.ID)
	wantKind(t, err, sluice.KindNotFound)
	_, err = db.Chunk(t.Context(), "acme", f.ID, 30)
	wantKind(t, err, sluice.KindNotFound)
	wantRows(t, dsn, map[string]int{"file_chunks": 24, "job_litter": 1, "held bytes": 72})
	if n := sweepAll(t, db, noon); n != 2 {
		t.Errorf("swept in %d slices", n)
	}
	wantRows(t, dsn, map[string]int{})
}

// So do the lines and results of a large job.
func testJobLitter(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db := Open(t, dsn, store.Options{})
	j := startJob(t, db, "msgbatch_1", 2100)
	must(t, db.Beat(t.Context(), "w", until))
	lines, err := db.Claim(t.Context(), jobs.Claim{Job: j.ID, Worker: "w", Now: noon, Limit: 10})
	must(t, err)
	posts := make([]jobs.Posting, len(lines))
	for i := range lines {
		posts[i] = answered(lines[i], j.ID)
	}
	_, err = db.Post(t.Context(), j.ID, noon, posts)
	must(t, err)
	ends := 0
	for more := true; more; ends++ {
		_, more, err = db.EndLines(t.Context(), j.ID, noon, jobs.LineCancelled)
		must(t, err)
	}
	if ends != 2 {
		t.Errorf("ended in %d slices", ends)
	}
	counts(t, db, j.ID, jobs.Counts{Total: 2100, Succeeded: 10, Cancelled: 2090})
	other := startJob(t, db, "msgbatch_2", 1)
	j.State, j.Ended, j.ResultsExpire = jobs.Cancelled, noon, noon.Add(time.Minute)
	ok, err := db.SaveJob(t.Context(), j, jobs.InProgress, 0)
	must(t, err)
	held(t, ok)
	must(t, db.DropJob(t.Context(), "acme", j.ID))
	wantRows(t, dsn, map[string]int{"jobs": 1, "job_lines": 2101, "job_results": 10, "job_litter": 1, "held jobs": 1, "held lines": 1})
	if n := sweepAll(t, db, noon); n != 2 {
		t.Errorf("swept in %d slices", n)
	}
	wantRows(t, dsn, map[string]int{"jobs": 1, "job_lines": 1, "held jobs": 1, "held lines": 1})
	counts(t, db, other.ID, jobs.Counts{Total: 1, Waiting: 1})
}

// Each tenant has its oldest job looked at before another has its second.
func testOpenJobs(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	for i, of := range []struct{ id, tenant string }{{"batch_1", "acme"}, {"batch_2", "acme"}, {"batch_3", "acme"}, {"batch_4", "globex"}, {"batch_5", "globex"}, {"batch_6", "initech"}} {
		j := newJob(of.id)
		j.Caller.Tenant, j.Created = sluice.TenantID(of.tenant), noon.Add(time.Duration(i)*time.Second)
		must(t, db.PutJob(t.Context(), j, jobs.Put{Bounds: jobs.DefaultBounds()}))
	}
	open, err := db.OpenJobs(t.Context(), 5)
	must(t, err)
	var got []string
	for _, j := range open {
		got = append(got, strings.TrimPrefix(string(j.ID), "batch_"))
	}
	if want := []string{"1", "4", "6", "2", "5"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Slices of results are added whole, by who has the job, and the last chunk of a file grows.
func testPutOutput(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db := Open(t, dsn, store.Options{})
	j := startJob(t, db, "msgbatch_1", 1)
	fence, _, err := db.LeaseJob(t.Context(), j.ID, "w", noon, until)
	must(t, err)
	_, _, err = db.EndLines(t.Context(), j.ID, noon, jobs.LineExpired)
	must(t, err)
	j.State, j.Ending = jobs.Finalizing, jobs.Expired
	ok, err := db.SaveJob(t.Context(), j, jobs.InProgress, 0)
	must(t, err)
	held(t, ok)
	f := newFile("file-out")
	f.Hidden = true
	j.Written = jobs.Written{Line: 1, Output: f.ID, OutputBytes: 3}
	put := func(fence int64, begin []jobs.File, chunks ...jobs.Chunk) (bool, error) {
		return db.PutOutput(t.Context(), &jobs.Output{Job: j, Fence: fence, Until: until, Begin: begin, Chunks: chunks})
	}
	ok, err = put(fence, []jobs.File{f}, jobs.Chunk{File: f.ID, Body: []byte("abc")})
	must(t, err)
	held(t, ok)
	if ok, err := put(fence-1, nil, jobs.Chunk{File: f.ID, N: 1, Body: []byte("lost")}); ok || err != nil {
		t.Errorf("what another writes was taken (%v)", err)
	}
	_, err = put(fence, nil, jobs.Chunk{File: f.ID, N: 1, Body: []byte("x")}, jobs.Chunk{File: "file-gone", Body: []byte("x")})
	wantKind(t, err, sluice.KindNotFound)
	wantRows(t, dsn, map[string]int{"files": 1, "file_chunks": 1, "jobs": 1, "job_lines": 1, "held jobs": 1, "held lines": 1, "held bytes": 3})
	j.Written.OutputBytes = 6
	ok, err = put(fence, nil, jobs.Chunk{File: f.ID, Body: []byte("abcd")}, jobs.Chunk{File: f.ID, N: 1, Body: []byte("ef")})
	must(t, err)
	held(t, ok)
	saved, err := db.Job(t.Context(), "acme", j.ID)
	must(t, err)
	if diff := cmp.Diff(j.Written, saved.Written); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	j.State, j.Ended, j.ResultsExpire, j.Output, j.Written = jobs.Expired, noon, until, f.ID, jobs.Written{}
	ok, err = db.SaveJob(t.Context(), j, jobs.Finalizing, fence)
	must(t, err)
	held(t, ok)
	f.Ready, f.Expires, f.Bytes = true, until, 6
	got, err := db.File(t.Context(), "acme", f.ID)
	must(t, err)
	if diff := cmp.Diff(f, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A tenant that is deleted leaves no file and no job; one with a job that has not ended is
// not deleted.
func testTenantLeaves(t *testing.T, fresh Fresh) {
	dsn := fresh(t)
	db := Open(t, dsn, store.Options{})
	must(t, db.CreateTenant(t.Context(), auth.Tenant{ID: "acme", Name: "Acme"}))
	for i := range 3 {
		putFile(t, db, newFile(fmt.Sprint("file-", i)), "x")
	}
	j := startJob(t, db, "batch_1", 2)
	wantKind(t, db.DeleteTenant(t.Context(), "acme"), sluice.KindConflict)
	_, _, err := db.EndLines(t.Context(), j.ID, noon, jobs.LineCancelled)
	must(t, err)
	j.State, j.Ended, j.ResultsExpire = jobs.Cancelled, noon, until
	ok, err := db.SaveJob(t.Context(), j, jobs.InProgress, 0)
	must(t, err)
	held(t, ok)
	must(t, db.DeleteTenant(t.Context(), "acme"))
	sweepAll(t, db, noon)
	wantRows(t, dsn, map[string]int{})
}
