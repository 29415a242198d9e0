package storetest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

func claim(t testing.TB, db *store.DB, id jobs.JobID, worker string, now time.Time, limit int) []jobs.Line {
	t.Helper()
	must(t, db.Beat(t.Context(), worker, now.Add(time.Minute)))
	lines, err := db.Claim(t.Context(), jobs.Claim{Job: id, Worker: worker, Now: now, Limit: limit, Lost: true})
	must(t, err)
	return lines
}

func answered(l jobs.Line, id jobs.JobID) jobs.Posting {
	return jobs.Posting{Line: l.Line, Claim: l.Claim, Result: &jobs.Result{
		Line: l.Line, CustomID: l.CustomID, State: jobs.LineSucceeded, Status: 200, Request: jobs.RequestOf(id, l.Line, l.Claim), Body: []byte(`{"n":1}`),
		Usage: sluice.Usage{Input: 7, Output: 3, Source: sluice.UsageReported}, Cost: 11, Ended: noon,
		Told: jobs.Told{Backend: "b", Policy: "v1", Queued: 3, Dropped: "max_tokens=4", Cache: "miss", Tier: 2, Reason: "degraded", Header: http.Header{"X-Request-Id": {"p1"}}},
	}}
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
	if kept, err := db.Claim(t.Context(), jobs.Claim{Job: j.ID, Worker: "b", Now: later, Limit: 1}); err != nil || len(kept) > 0 {
		t.Errorf("claimed %v of a lost worker's without asking for them (%v)", kept, err)
	}
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
				got, err := db.Claim(t.Context(), jobs.Claim{Job: j.ID, Worker: name, Now: noon, Limit: 7})
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
	raw, err := db.Claim(t.Context(), jobs.Claim{Job: j.ID, Worker: "here", Now: noon, Limit: 1})
	must(t, err)
	running, more, err := db.EndLines(t.Context(), j.ID, later, jobs.LineCancelled)
	must(t, err)
	if running != 1 || more {
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
	if len(results) != 2 || results[0].Line != 2 || results[0].Request != jobs.RequestOf(j.ID, 2, 1) || results[1].State != jobs.LineCancelled || results[1].Request != "" {
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
