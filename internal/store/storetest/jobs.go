package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
	"sluice/internal/store"
	"sluice/internal/wire"
)

var jobTests = []namedTest{
	{"files", testFiles},
	{"pages of files", testFilePages},
	{"bound of files", testFileBound},
	{"jobs", testJobs},
	{"pages of jobs", testJobPages},
	{"bounds of jobs", testJobBounds},
	{"steps", testJobSteps},
	{"claims", testClaims},
	{"fence", testFence},
	{"workers side by side", testWorkers},
	{"ends", testEndLines},
	{"void", testVoid},
	{"void of late entries", testVoidLate},
	{"sweep", testSweep},
}

var until = noon.Add(time.Hour)

func newFile(id string) jobs.File {
	return jobs.File{ID: jobs.FileID(id), Tenant: "acme", Project: "web", Name: "lines.jsonl", Purpose: "batch", Created: noon}
}

// putFile writes a file of a few chunks and seals it.
func putFile(t testing.TB, db *store.DB, f jobs.File, chunks ...string) jobs.File {
	t.Helper()
	must(t, db.PutFile(t.Context(), f))
	for n, c := range chunks {
		must(t, db.PutChunk(t.Context(), f.Tenant, f.ID, n, []byte(c), 0))
		f.Bytes += int64(len(c))
	}
	f.Ready = true
	must(t, db.SealFile(t.Context(), f))
	return f
}

func newJob(id string) *jobs.Job {
	return &jobs.Job{
		ID: jobs.JobID(id), Kind: jobs.MessageBatch, State: jobs.Validating,
		Caller: sluice.Principal{Tenant: "acme", Project: "web", Key: "k1", Run: "r1"},
		Terms:  jobs.Terms{Task: "summary", Labels: []sluice.Label{{Key: "feature", Value: "inbox"}}, Header: map[string][]string{"Anthropic-Beta": {"x"}}},
		Op:     wire.Messages, Input: "file-in", Metadata: map[string]string{"a": "b"}, Window: time.Hour,
		Created: noon, Deadline: noon.Add(time.Hour), Keep: 48 * time.Hour,
	}
}

// startJob is a job in progress with n lines.
func startJob(t testing.TB, db *store.DB, id string, n int) *jobs.Job {
	t.Helper()
	j := newJob(id)
	must(t, db.PutJob(t.Context(), j, jobs.DefaultBounds()))
	fence, ok, err := db.LeaseJob(t.Context(), j.ID, "w", noon, until)
	must(t, err)
	held(t, ok)
	lines := make([]jobs.Line, n)
	for i := range lines {
		lines[i] = jobs.Line{Line: i + 1, At: int64(10 * i), Bytes: 9, CustomID: fmt.Sprint("c", i+1)}
	}
	ok, err = db.PutLines(t.Context(), j.ID, fence, lines, until, 0)
	must(t, err)
	held(t, ok)
	j.State, j.Started = jobs.InProgress, noon
	ok, err = db.SaveJob(t.Context(), j, jobs.Validating, fence)
	must(t, err)
	held(t, ok)
	return j
}

func held(t testing.TB, ok bool) {
	t.Helper()
	if !ok {
		t.Fatal("the job was taken to be another's, or in another state")
	}
}

func counts(t testing.TB, db *store.DB, id jobs.JobID, want jobs.Counts) {
	t.Helper()
	j, err := db.Job(t.Context(), "", id)
	must(t, err)
	if diff := cmp.Diff(want, j.Counts); diff != "" {
		t.Errorf("counts -want +got:\n%s", diff)
	}
}

func claim(t testing.TB, db *store.DB, id jobs.JobID, worker string, now time.Time, limit int) []jobs.Line {
	t.Helper()
	must(t, db.Beat(t.Context(), worker, now.Add(time.Minute)))
	lines, err := db.Claim(t.Context(), id, worker, now, limit)
	must(t, err)
	return lines
}

func answered(l jobs.Line, id jobs.JobID) jobs.Posting {
	return jobs.Posting{Line: l.Line, Claim: l.Claim, Result: &jobs.Result{
		Line: l.Line, CustomID: l.CustomID, State: jobs.LineSucceeded, Status: 200, Request: jobs.RequestOf(id, l.Line, l.Claim), Body: []byte(`{"n":1}`),
		Usage: sluice.Usage{Input: 7, Output: 3, Source: sluice.UsageReported}, Cost: 11, Ended: noon,
	}}
}

func testFiles(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	f := newFile("file-1")
	f.Name = "naïve\x00.jsonl"
	must(t, db.PutFile(t.Context(), f))
	must(t, db.PutChunk(t.Context(), "acme", f.ID, 0, []byte("a\x00\xff"), 100))
	wantKind(t, db.PutChunk(t.Context(), "globex", f.ID, 1, []byte("b"), 100), sluice.KindNotFound)
	must(t, db.PutChunk(t.Context(), "acme", f.ID, 1, []byte("b"), 100))
	f.Bytes, f.Ready, f.Name, f.Purpose, f.Expires = 4, true, "named later", "user_data", until
	must(t, db.SealFile(t.Context(), f))
	wantKind(t, db.PutChunk(t.Context(), "acme", f.ID, 2, []byte("c"), 100), sluice.KindNotFound)
	wantKind(t, db.SealFile(t.Context(), f), sluice.KindNotFound)
	got, err := db.File(t.Context(), "acme", f.ID)
	must(t, err)
	if diff := cmp.Diff(f, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = db.File(t.Context(), "globex", f.ID)
	wantKind(t, err, sluice.KindNotFound)
	body, err := db.Chunk(t.Context(), "acme", f.ID, 0)
	must(t, err)
	if string(body) != "a\x00\xff" {
		t.Errorf("chunk %q", body)
	}
	_, err = db.Chunk(t.Context(), "globex", f.ID, 0)
	wantKind(t, err, sluice.KindNotFound)
	_, err = db.Chunk(t.Context(), "acme", f.ID, 2)
	wantKind(t, err, sluice.KindNotFound)
	wantKind(t, db.DropFile(t.Context(), "globex", f.ID), sluice.KindNotFound)
	must(t, db.DropFile(t.Context(), "acme", f.ID))
	_, err = db.Chunk(t.Context(), "acme", f.ID, 0)
	wantKind(t, err, sluice.KindNotFound)
}

func testFilePages(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	for i := range 5 {
		f := newFile(fmt.Sprint("file-", i))
		f.Created = noon.Add(time.Duration(i/2) * time.Second) // two in each second
		putFile(t, db, f)
	}
	for _, f := range []jobs.File{{ID: "file-hidden", Hidden: true}, {ID: "file-over", Expires: noon}, {ID: "file-other", Purpose: "vision"}} {
		f.Tenant, f.Created = "acme", noon
		putFile(t, db, f)
	}
	must(t, db.PutFile(t.Context(), newFile("file-unready")))
	for _, c := range []struct {
		name string
		q    jobs.FileQuery
		want string
	}{
		{"newest first", jobs.FileQuery{Limit: 9, Purpose: "batch"}, "4 3 2 1 0"},
		{"one more than the page", jobs.FileQuery{Limit: 2, Purpose: "batch"}, "4 3 2"},
		{"after one", jobs.FileQuery{Limit: 9, Purpose: "batch", After: "file-3"}, "2 1 0"},
		{"oldest first", jobs.FileQuery{Limit: 9, Purpose: "batch", Oldest: true, After: "file-1"}, "2 3 4"},
		{"all purposes", jobs.FileQuery{Limit: 9}, "4 3 2 other 1 0"},
		{"another project", jobs.FileQuery{Limit: 9, Project: "x"}, ""},
		{"another tenant", jobs.FileQuery{Limit: 9, Tenant: "globex"}, ""},
	} {
		if c.q.Tenant == "" {
			c.q.Tenant = "acme"
		}
		files, err := db.Files(t.Context(), c.q, noon)
		must(t, err)
		got := ""
		for _, f := range files {
			got += " " + string(f.ID[len("file-"):])
		}
		if got != "" {
			got = got[1:]
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	_, err := db.Files(t.Context(), jobs.FileQuery{Tenant: "globex", Limit: 9, After: "file-3"}, noon)
	wantKind(t, err, sluice.KindNotFound)
}

// What a tenant's files have together is bounded, and deleting gives it back.
func testFileBound(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	f := newFile("file-1")
	must(t, db.PutFile(t.Context(), f), db.PutChunk(t.Context(), "acme", f.ID, 0, make([]byte, 6), 10))
	wantKind(t, db.PutChunk(t.Context(), "acme", f.ID, 1, make([]byte, 5), 10), sluice.KindInvalid)
	must(t, db.PutChunk(t.Context(), "acme", f.ID, 1, make([]byte, 4), 10))
	g := newFile("file-2")
	g.Tenant = "globex"
	must(t, db.PutFile(t.Context(), g), db.PutChunk(t.Context(), "globex", g.ID, 0, make([]byte, 10), 10))
	must(t, db.DropFile(t.Context(), "acme", f.ID))
	f.ID = "file-3"
	must(t, db.PutFile(t.Context(), f), db.PutChunk(t.Context(), "acme", f.ID, 0, make([]byte, 10), 10))
}

func testJobs(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := newJob("msgbatch_1")
	j.Problems = []jobs.Problem{{Line: 3, Code: "c", Param: "p", Message: "m"}}
	must(t, db.PutJob(t.Context(), j, jobs.DefaultBounds()))
	got, err := db.Job(t.Context(), "acme", j.ID)
	must(t, err)
	if diff := cmp.Diff(*j, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = db.Job(t.Context(), "globex", j.ID)
	wantKind(t, err, sluice.KindNotFound)
	open, err := db.OpenJobs(t.Context(), 10)
	must(t, err)
	if len(open) != 1 || open[0].ID != j.ID {
		t.Errorf("open jobs %v", open)
	}
	j.State, j.Ended, j.ResultsExpire = jobs.Failed, noon, until
	ok, err := db.SaveJob(t.Context(), j, jobs.InProgress, 0)
	must(t, err)
	if ok {
		t.Error("saved from a state that it is not in")
	}
	ok, err = db.SaveJob(t.Context(), j, jobs.Validating, 0)
	must(t, err)
	held(t, ok)
	got, err = db.Job(t.Context(), "acme", j.ID)
	must(t, err)
	if diff := cmp.Diff(*j, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if open, err := db.OpenJobs(t.Context(), 10); err != nil || len(open) > 0 {
		t.Errorf("open jobs %v, %v", open, err)
	}
	wantKind(t, db.DropJob(t.Context(), "globex", j.ID), sluice.KindNotFound)
	must(t, db.DropJob(t.Context(), "acme", j.ID))
	_, err = db.Job(t.Context(), "acme", j.ID)
	wantKind(t, err, sluice.KindNotFound)
}

func testJobPages(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	for i := range 5 {
		j := newJob(fmt.Sprint("msgbatch_", i))
		j.Created = noon.Add(time.Duration(i/2) * time.Second)
		must(t, db.PutJob(t.Context(), j, jobs.DefaultBounds()))
	}
	other := newJob("batch_x")
	other.Kind = jobs.OpenAIBatch
	must(t, db.PutJob(t.Context(), other, jobs.DefaultBounds()))
	for _, c := range []struct {
		name string
		q    jobs.JobQuery
		want string
	}{
		{"newest first", jobs.JobQuery{Limit: 9}, "4 3 2 1 0"},
		{"one more than the page", jobs.JobQuery{Limit: 2}, "4 3 2"},
		{"after one", jobs.JobQuery{Limit: 9, After: "msgbatch_2"}, "1 0"},
		{"the page before one", jobs.JobQuery{Limit: 1, Before: "msgbatch_1"}, "2 3"},
		{"of every kind", jobs.JobQuery{Limit: 9, Any: true}, "4 3 2 1 0 x"},
		{"another tenant", jobs.JobQuery{Limit: 9, Tenant: "globex", Any: true}, ""},
	} {
		if c.q.Tenant == "" {
			c.q.Tenant = "acme"
		}
		c.q.Kind = jobs.MessageBatch
		page, err := db.Jobs(t.Context(), c.q)
		must(t, err)
		got := ""
		for _, j := range page {
			got += " " + string(j.ID[len(j.ID)-1:])
		}
		if got != "" {
			got = got[1:]
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A tenant has so many jobs and lines that have not ended.
func testJobBounds(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	b := jobs.Bounds{TenantJobs: 1}
	first := newJob("msgbatch_1")
	must(t, db.PutJob(t.Context(), first, b))
	wantKind(t, db.PutJob(t.Context(), newJob("msgbatch_2"), b), sluice.KindRateLimited)
	fence, _, err := db.LeaseJob(t.Context(), first.ID, "w", noon, until)
	must(t, err)
	_, err = db.PutLines(t.Context(), first.ID, fence, make([]jobs.Line, 3), until, 2)
	wantKind(t, err, sluice.KindRateLimited)
	_, err = db.PutLines(t.Context(), first.ID, fence, []jobs.Line{{Line: 1}, {Line: 2}}, until, 2)
	must(t, err)
	_, err = db.ResetLines(t.Context(), first.ID, fence)
	must(t, err)
	_, err = db.PutLines(t.Context(), first.ID, fence, []jobs.Line{{Line: 1}, {Line: 2}}, until, 2)
	must(t, err)
	first.State, first.Ended, first.ResultsExpire = jobs.Failed, noon, until
	ok, err := db.SaveJob(t.Context(), first, jobs.Validating, 0)
	must(t, err)
	held(t, ok)
	second := newJob("msgbatch_2")
	must(t, db.PutJob(t.Context(), second, b))
	fence, _, err = db.LeaseJob(t.Context(), second.ID, "w", noon, until)
	must(t, err)
	_, err = db.PutLines(t.Context(), second.ID, fence, []jobs.Line{{Line: 1}, {Line: 2}}, until, 2)
	must(t, err)
}

// The steps of a job are one owner's until its lease is over; who lost it changes nothing.
func testJobSteps(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := newJob("msgbatch_1")
	must(t, db.PutJob(t.Context(), j, jobs.DefaultBounds()))
	first, ok, err := db.LeaseJob(t.Context(), j.ID, "a", noon, noon.Add(time.Minute))
	must(t, err)
	held(t, ok)
	if _, ok, err := db.LeaseJob(t.Context(), j.ID, "b", noon.Add(time.Second), until); ok || err != nil {
		t.Errorf("another got it too (%v)", err)
	}
	again, ok, err := db.LeaseJob(t.Context(), j.ID, "a", noon.Add(time.Second), noon.Add(time.Minute))
	must(t, err)
	held(t, ok)
	if again != first {
		t.Errorf("renewed as %d after %d", again, first)
	}
	second, ok, err := db.LeaseJob(t.Context(), j.ID, "b", noon.Add(time.Minute), until)
	must(t, err)
	held(t, ok)
	if second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
	if ok, err := db.PutLines(t.Context(), j.ID, first, make([]jobs.Line, 1), until, 0); ok || err != nil {
		t.Errorf("lines of who lost the job were taken (%v)", err)
	}
	if ok, err := db.ResetLines(t.Context(), j.ID, first); ok || err != nil {
		t.Errorf("so was a reset (%v)", err)
	}
	j.State = jobs.InProgress
	if ok, err := db.SaveJob(t.Context(), j, jobs.Validating, first); ok || err != nil {
		t.Errorf("and a state (%v)", err)
	}
	ok, err = db.SaveJob(t.Context(), j, jobs.Validating, second)
	must(t, err)
	held(t, ok)
	must(t, db.Retire(t.Context(), "c"))
	if db.Shared() {
		return // another process may be alive
	}
	_, ok, err = db.LeaseJob(t.Context(), j.ID, "c", noon.Add(2*time.Minute), until)
	must(t, err)
	held(t, ok)
}

func testClaims(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := startJob(t, db, "msgbatch_1", 5)
	lines := claim(t, db, j.ID, "a", noon, 3)
	want := []jobs.Line{
		{Line: 1, Bytes: 9, CustomID: "c1", Claim: 1}, {Line: 2, At: 10, Bytes: 9, CustomID: "c2", Claim: 1}, {Line: 3, At: 20, Bytes: 9, CustomID: "c3", Claim: 1},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	counts(t, db, j.ID, jobs.Counts{Total: 5, Waiting: 2, Running: 3})
	stale, err := db.Post(t.Context(), j.ID, noon, []jobs.Posting{
		answered(lines[0], j.ID), {Line: 2, Claim: 1, Due: noon.Add(10 * time.Second)}, {Line: 3, Claim: 1},
	})
	must(t, err)
	if len(stale) > 0 {
		t.Errorf("stale %v", stale)
	}
	counts(t, db, j.ID, jobs.Counts{Total: 5, Waiting: 4, Succeeded: 1})
	if got := claim(t, db, j.ID, "a", noon.Add(time.Second), 9); len(got) != 3 || got[0].Line != 3 || got[0].Claim != 2 {
		t.Errorf("claimed %v, want what waits and is due", got)
	}
	if got := claim(t, db, j.ID, "b", noon.Add(11*time.Second), 9); len(got) != 1 || got[0].Line != 2 {
		t.Errorf("claimed %v, want the line that has become due", got)
	}
	saved, err := db.Job(t.Context(), "acme", j.ID)
	must(t, err)
	if saved.Cost != 11 || saved.Usage.Input != 7 {
		t.Errorf("cost %d, usage %+v", saved.Cost, saved.Usage)
	}
	results, err := db.Results(t.Context(), j.ID, 0, 9, 1<<20)
	must(t, err)
	r := *answered(lines[0], j.ID).Result
	r.Usage = sluice.Usage{} // it is the job's
	if diff := cmp.Diff([]jobs.Result{r}, results); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A worker that has lost its lease posts nothing, whenever it comes.
func testFence(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := startJob(t, db, "msgbatch_1", 2)
	lost := claim(t, db, j.ID, "a", noon, 2)
	later := noon.Add(2 * time.Minute)
	taken := claim(t, db, j.ID, "b", later, 1)
	if len(taken) != 1 || !taken[0].Lost || taken[0].Claim != 2 {
		t.Fatalf("claimed %v", taken)
	}
	counts(t, db, j.ID, jobs.Counts{Total: 2, Running: 2})
	stale, err := db.Post(t.Context(), j.ID, later, []jobs.Posting{answered(lost[0], j.ID), answered(lost[1], j.ID)})
	must(t, err)
	if diff := cmp.Diff([]int{0}, stale); diff != "" {
		t.Errorf("stale -want +got:\n%s", diff) // the second is nobody else's yet
	}
	for range 2 { // an answer that is posted twice counts once
		if stale, err = db.Post(t.Context(), j.ID, later, []jobs.Posting{answered(taken[0], j.ID)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(stale) != 1 {
		t.Error("the same line was posted twice")
	}
	counts(t, db, j.ID, jobs.Counts{Total: 2, Succeeded: 2})
	results, err := db.Results(t.Context(), j.ID, 0, 9, 1<<20)
	must(t, err)
	if len(results) != 2 || results[0].Request != jobs.RequestOf(j.ID, 1, 2) {
		t.Errorf("results %v", results)
	}
}

// Workers that claim and post at once share the lines without loss.
func testWorkers(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	const workers, lines = 4, 60
	j := startJob(t, db, "msgbatch_1", lines)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			name := fmt.Sprint("w", w)
			for {
				if err := db.Beat(t.Context(), name, until); err != nil {
					t.Error(err)
					return
				}
				got, err := db.Claim(t.Context(), j.ID, name, noon, 7)
				if err != nil {
					t.Error(err)
					return
				}
				if len(got) == 0 {
					return
				}
				posts := make([]jobs.Posting, len(got))
				for i, l := range got {
					posts[i] = answered(l, j.ID)
				}
				if stale, err := db.Post(t.Context(), j.ID, noon, posts); err != nil || len(stale) > 0 {
					t.Errorf("stale %v, %v", stale, err)
				}
			}
		})
	}
	wg.Wait()
	counts(t, db, j.ID, jobs.Counts{Total: lines, Succeeded: lines})
	saved, err := db.Job(t.Context(), "acme", j.ID)
	must(t, err)
	if saved.Cost != 11*lines || saved.Usage.Output != 3*lines {
		t.Errorf("cost %d, usage %+v", saved.Cost, saved.Usage)
	}
}

func testEndLines(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := startJob(t, db, "msgbatch_1", 4)
	lost := claim(t, db, j.ID, "lost", noon, 1)
	later := noon.Add(2 * time.Minute)
	must(t, db.Beat(t.Context(), "here", later.Add(time.Minute)))
	raw, err := db.Claim(t.Context(), j.ID, "here", noon, 1)
	must(t, err)
	running, err := db.EndLines(t.Context(), j.ID, later, jobs.LineCancelled)
	must(t, err)
	if running != 1 {
		t.Errorf("%d run, want the one whose worker lives", running)
	}
	counts(t, db, j.ID, jobs.Counts{Total: 4, Running: 1, Cancelled: 3})
	stale, err := db.Post(t.Context(), j.ID, later, []jobs.Posting{answered(lost[0], j.ID), answered(raw[0], j.ID)})
	must(t, err)
	if diff := cmp.Diff([]int{0}, stale); diff != "" {
		t.Errorf("stale -want +got:\n%s", diff)
	}
	counts(t, db, j.ID, jobs.Counts{Total: 4, Succeeded: 1, Cancelled: 3})
	results, err := db.Results(t.Context(), j.ID, 1, 2, 1<<20)
	must(t, err)
	if len(results) != 2 || results[0].Line != 2 || results[1].State != jobs.LineCancelled {
		t.Errorf("results %v", results)
	}
}

// attempt is the entry of a request of a line.
func attempt(j jobs.JobID, l jobs.Line, cost sluice.Nano) ledger.Entry {
	e := entry(string(jobs.RequestOf(j, l.Line, l.Claim)), 1)
	e.Class, e.Cost, e.CostHigh = sluice.Batch, cost, cost
	return e
}

// sums is what the tenant is charged.
func sums(t testing.TB, db *store.DB) (requests, cost int64) {
	t.Helper()
	rows, err := db.Usage(t.Context(), ledger.UsageQuery{Owner: ledger.Of("acme")})
	must(t, err)
	for _, r := range rows {
		requests, cost = requests+r.Requests, cost+int64(r.Cost)
	}
	return requests, cost
}

// The entry of a lost worker's attempt is taken out of the sums when its line is taken
// over, and is still there to be seen.
func testVoid(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := startJob(t, db, "msgbatch_1", 2)
	lost := claim(t, db, j.ID, "a", noon, 2)
	must(t, db.Append(t.Context(), []ledger.Entry{attempt(j.ID, lost[0], 100), attempt(j.ID, lost[1], 10), entry("other", 1)}))
	stale, err := db.Post(t.Context(), j.ID, noon, []jobs.Posting{answered(lost[1], j.ID)})
	must(t, err)
	if len(stale) > 0 {
		t.Fatal("stale")
	}
	again := claim(t, db, j.ID, "b", noon.Add(2*time.Minute), 2)
	must(t, db.Append(t.Context(), []ledger.Entry{attempt(j.ID, again[0], 90)}))
	verified(t, db, 4)
	if n, cost := sums(t, db); n != 3 || cost != 10+90+4100 {
		t.Errorf("%d requests at %d", n, cost)
	}
	found, err := db.Explain(t.Context(), ledger.Of("acme"), jobs.RequestOf(j.ID, 1, 1))
	must(t, err)
	if len(found) != 1 || !found[0].Voided || found[0].Cost != 100 {
		t.Errorf("found %+v", found)
	}
}

// So is one that is drained from a journal after its line was taken over, and one that was
// given back.
func testVoidLate(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := startJob(t, db, "msgbatch_1", 2)
	lost := claim(t, db, j.ID, "a", noon, 2)
	_, err := db.Post(t.Context(), j.ID, noon, []jobs.Posting{{Line: 2, Claim: 1, Void: true}})
	must(t, err)
	again := claim(t, db, j.ID, "b", noon.Add(2*time.Minute), 2)
	if len(again) != 2 {
		t.Fatalf("claimed %v", again)
	}
	es := []ledger.Entry{attempt(j.ID, lost[0], 100), attempt(j.ID, again[0], 90), attempt(j.ID, lost[1], 100), attempt(j.ID, again[1], 90)}
	must(t, db.Append(t.Context(), es), db.Append(t.Context(), es))
	verified(t, db, 4)
	if n, cost := sums(t, db); n != 2 || cost != 180 {
		t.Errorf("%d requests at %d", n, cost)
	}
	if es[0].Voided {
		t.Error("the caller's entry was changed")
	}
}

func testSweep(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	f := newFile("file-over")
	f.Expires = noon
	putFile(t, db, f, "x")
	putFile(t, db, newFile("file-stays"), "x")
	must(t, db.PutFile(t.Context(), newFile("file-abandoned")))
	j := startJob(t, db, "msgbatch_1", 1)
	_, err := db.EndLines(t.Context(), j.ID, noon, jobs.LineExpired)
	must(t, err)
	j.State, j.Ended, j.ResultsExpire = jobs.Cancelled, noon, noon.Add(time.Second)
	for _, was := range []jobs.State{jobs.InProgress} {
		ok, err := db.SaveJob(t.Context(), j, was, 0)
		must(t, err)
		held(t, ok)
	}
	sweep := func(now time.Time) int {
		n, err := db.Sweep(t.Context(), jobs.Sweep{Now: now, Abandoned: now.Add(-time.Hour), Forgotten: now.Add(-24 * time.Hour), Limit: 10})
		must(t, err)
		return n
	}
	if n := sweep(noon); n != 1 {
		t.Errorf("%d swept, want the file that is over", n)
	}
	if n := sweep(noon.Add(2 * time.Hour)); n != 2 {
		t.Errorf("%d swept, want what was abandoned and the results", n)
	}
	if _, err := db.Job(t.Context(), "acme", j.ID); err != nil {
		t.Error(err)
	}
	if n := sweep(noon.Add(25 * time.Hour)); n != 1 {
		t.Errorf("%d swept, want the job", n)
	}
	_, err = db.File(t.Context(), "acme", "file-stays")
	must(t, err)
}
