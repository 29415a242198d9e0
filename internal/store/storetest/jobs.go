package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/jobs"
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
	{"jobs in turn", testOpenJobs},
	{"slices of results", testPutOutput},
	{"sweep", testSweep},
	{"what is left of large files", testFileLitter},
	{"what is left of large jobs", testJobLitter},
	{"what a tenant leaves", testTenantLeaves},
}

var until = noon.Add(time.Hour)

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
	must(t, db.PutJob(t.Context(), j, jobs.Put{Bounds: jobs.DefaultBounds()}))
	fence, ok, err := db.LeaseJob(t.Context(), j.ID, "w", noon, until)
	must(t, err)
	held(t, ok)
	lines := make([]jobs.Line, n)
	for i := range lines {
		lines[i] = jobs.Line{Line: i + 1, At: int64(10 * i), Bytes: 9, CustomID: fmt.Sprint("c", i+1)}
	}
	putLines(t, db, j, fence, lines)
	j.State, j.Started = jobs.InProgress, noon
	ok, err = db.SaveJob(t.Context(), j, jobs.Validating, fence)
	must(t, err)
	held(t, ok)
	return j
}

// putLines adds lines for which there is room.
func putLines(t testing.TB, db *store.DB, j *jobs.Job, fence int64, lines []jobs.Line) {
	t.Helper()
	room, ok, err := db.PutLines(t.Context(), &jobs.Lines{Job: j, Fence: fence, Lines: lines, Until: until})
	must(t, err)
	held(t, ok)
	if room != len(lines) {
		t.Fatalf("room for %d of %d lines", room, len(lines))
	}
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

func testJobs(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := newJob("msgbatch_1")
	j.Problems = []jobs.Problem{{Line: 3, Code: "c", Param: "p", Message: "m"}}
	must(t, db.PutJob(t.Context(), j, jobs.Put{Bounds: jobs.DefaultBounds()}))
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
		must(t, db.PutJob(t.Context(), j, jobs.Put{Bounds: jobs.DefaultBounds()}))
	}
	other := newJob("batch_x")
	other.Kind = jobs.OpenAIBatch
	must(t, db.PutJob(t.Context(), other, jobs.Put{Bounds: jobs.DefaultBounds()}))
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
	must(t, db.PutJob(t.Context(), first, jobs.Put{Bounds: b}))
	wantKind(t, db.PutJob(t.Context(), newJob("msgbatch_2"), jobs.Put{Bounds: b}), sluice.KindRateLimited)
	fence, _, err := db.LeaseJob(t.Context(), first.ID, "w", noon, until)
	must(t, err)
	put := func(j *jobs.Job, want int, lines ...jobs.Line) {
		t.Helper()
		j.Checked.Line += len(lines)
		room, ok, err := db.PutLines(t.Context(), &jobs.Lines{Job: j, Fence: fence, Lines: lines, Until: until, Bound: 2})
		must(t, err)
		held(t, ok)
		if room != want {
			t.Errorf("room for %d of %d lines, want %d", room, len(lines), want)
		}
	}
	put(first, 2, make([]jobs.Line, 3)...)
	counts(t, db, first.ID, jobs.Counts{})
	put(first, 2, jobs.Line{Line: 1, CustomID: "a"}, jobs.Line{Line: 2, CustomID: "b"})
	put(first, 0, jobs.Line{Line: 3})
	put(first, 0)
	saved, err := db.Job(t.Context(), "acme", first.ID)
	must(t, err)
	if saved.Checked != first.Checked || saved.Counts.Waiting != 2 {
		t.Errorf("kept %+v with %+v, want %+v", saved.Checked, saved.Counts, first.Checked)
	}
	seen := map[int]string{}
	must(t, db.CustomIDs(t.Context(), first.ID, func(line int, id string) { seen[line] = id }))
	if diff := cmp.Diff(map[int]string{1: "a", 2: "b"}, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantKind(t, db.PutJob(t.Context(), newJob("msgbatch_2"), jobs.Put{Bounds: jobs.Bounds{TenantJobs: 9, TenantLines: 2}}), sluice.KindRateLimited)
	_, err = db.ResetLines(t.Context(), first.ID, fence)
	must(t, err)
	put(first, 2, jobs.Line{Line: 1}, jobs.Line{Line: 2})
	first.State, first.Ended, first.ResultsExpire = jobs.Failed, noon, until
	ok, err := db.SaveJob(t.Context(), first, jobs.Validating, 0)
	must(t, err)
	held(t, ok)
	second := newJob("msgbatch_2")
	must(t, db.PutJob(t.Context(), second, jobs.Put{Bounds: b}))
	fence, _, err = db.LeaseJob(t.Context(), second.ID, "w", noon, until)
	must(t, err)
	put(second, 2, jobs.Line{Line: 1}, jobs.Line{Line: 2})
}

// The steps of a job are one owner's until its lease is over; who lost it changes nothing.
func testJobSteps(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	j := newJob("msgbatch_1")
	must(t, db.PutJob(t.Context(), j, jobs.Put{Bounds: jobs.DefaultBounds()}))
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
	if _, ok, err := db.PutLines(t.Context(), &jobs.Lines{Job: j, Fence: first, Lines: make([]jobs.Line, 1), Until: until}); ok || err != nil {
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
