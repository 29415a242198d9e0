package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/handover"
	"sluice/internal/jobs"
	"sluice/internal/store"
)

var handoverTests = []namedTest{
	{"life of a batch at a provider", testHandOver},
	{"batch that was not made", testNotMade},
	{"batches that are over", testHandedOut},
}

// handOver hands lines of a job over.
func handOver(t testing.TB, db *store.DB, id, job string, lines ...int) handover.Batch {
	t.Helper()
	b := handover.Batch{ID: id, Job: job, Lines: len(lines), Backend: "b", Provider: "p", Site: "s", Key: "k", Created: noon, Expected: until}
	must(t, db.HandOver(t.Context(), &b, lines))
	return b
}

// called says what the provider calls a batch.
func called(t testing.TB, db *store.DB, b *handover.Batch, ref string) {
	t.Helper()
	ok, err := db.HandedOver(t.Context(), b.ID, ref)
	must(t, err)
	held(t, ok)
	b.Ref = ref
}

// testHandOver has lines in one batch each, that are found until they are taken back.
func testHandOver(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	ctx := t.Context()
	b := handOver(t, db, "h1", "j", 1, 2, 3)
	called(t, db, &b, "batch_1")
	got, back, ok, err := db.Handed(ctx, "j", 2)
	must(t, err)
	if diff := cmp.Diff(b, got); diff != "" || back || !ok {
		t.Errorf("taken back %v, found %v, -want +got:\n%s", back, ok, diff)
	}
	for _, other := range []struct {
		job  string
		line int
	}{{"j", 4}, {"k", 2}} {
		if _, _, ok, err := db.Handed(ctx, other.job, other.line); ok || err != nil {
			t.Errorf("line %d of %s is found: %v", other.line, other.job, err)
		}
	}
	again := handover.Batch{ID: "h2", Job: "j", Backend: "b", Provider: "p", Created: noon}
	if err := db.HandOver(ctx, &again, []int{4, 3}); err == nil {
		t.Error("a line is in two batches")
	}
	if _, _, ok, _ := db.Handed(ctx, "j", 4); ok {
		t.Error("half of a batch was kept")
	}
	for _, want := range []int{1, 0} { // of line 2
		p, n, err := db.TakeBack(ctx, "h1", []int{2, 7})
		must(t, err)
		if p != "p" || n != want {
			t.Errorf("%d lines of %q were taken back, want %d", n, p, want)
		}
	}
	if _, n, err := db.TakeBack(ctx, "none", []int{2}); n != 0 || err != nil {
		t.Errorf("%d lines of no batch were taken back, %v", n, err)
	}
	if _, back, ok, err := db.Handed(ctx, "j", 2); !back || !ok || err != nil {
		t.Errorf("a line that was taken back: %v, found %v, %v", back, ok, err)
	}
	shares, err := db.HandOvers(ctx, "j")
	must(t, err)
	if diff := cmp.Diff([]handover.Share{{Provider: "p", Ref: "batch_1", Created: noon, Lines: 3, Back: 1}}, shares); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// testNotMade forgets a batch that has no name, and no other.
func testNotMade(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	ctx := t.Context()
	named := handOver(t, db, "h1", "j", 1)
	called(t, db, &named, "batch_1")
	handOver(t, db, "h2", "j", 2)
	must(t, db.NotMade(ctx, "h1"), db.NotMade(ctx, "h2"))
	for line, want := range map[int]bool{1: true, 2: false} {
		if _, _, ok, err := db.Handed(ctx, "j", line); ok != want || err != nil {
			t.Errorf("line %d is found: %v, %v; want %v", line, ok, err, want)
		}
	}
	if ok, err := db.HandedOver(ctx, "h2", "batch_2"); ok || err != nil {
		t.Errorf("a batch that is forgotten has a name: %v, %v", ok, err)
	}
	if left, err := db.HandedOut(ctx, noon, 10); err != nil || len(left) != 2 { // the other one's job is none
		t.Errorf("to be put in order are %v, %v, want both", left, err)
	}
	refs, err := db.Refs(ctx, "p", noon)
	must(t, err)
	if diff := cmp.Diff([]string{"batch_1"}, refs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if refs, err := db.Refs(ctx, "p", noon.Add(time.Second)); len(refs) > 0 || err != nil {
		t.Errorf("got %v, %v of later ones, want none", refs, err)
	}
}

// testHandedOut has a batch over once each of its lines has an end or is taken back, until it
// is put in order; and knows what providers have of a job.
func testHandedOut(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	ctx := t.Context()
	j := startJob(t, db, "j", 3)
	if lines := claim(t, db, j.ID, "w1", noon, 3); len(lines) != 3 {
		t.Fatalf("got %d lines, want 3", len(lines))
	}
	handOver(t, db, "h1", "j", 1, 2)
	over := func(want ...string) {
		t.Helper()
		found, err := db.HandedOut(ctx, noon.Add(time.Hour), 10)
		must(t, err)
		var got []string
		for _, b := range found {
			got = append(got, b.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("over are, -want +got:\n%s", diff)
		}
	}
	elsewhere := func(want int) {
		t.Helper()
		got, expected, err := db.Elsewhere(ctx, j.ID)
		if got != want || err != nil || expected.Equal(until) != (want > 0) {
			t.Errorf("providers have %d lines, expected at %v, %v; want %d at %v", got, expected, err, want, until)
		}
	}
	over()
	elsewhere(2)
	_, _, err := db.TakeBack(ctx, "h1", []int{1})
	must(t, err)
	over()
	elsewhere(1)
	_, err = db.Post(ctx, j.ID, noon, []jobs.Posting{{Line: 2, Claim: 1, Result: &jobs.Result{Line: 2, State: jobs.LineSucceeded}}})
	must(t, err)
	over("h1")
	elsewhere(0)
	must(t, db.Tidied(ctx, "h1", noon.Add(2*time.Hour), false))
	over()
	must(t, db.Tidied(ctx, "h1", noon, false))
	over("h1")
	must(t, db.Tidied(ctx, "h1", noon, true))
	over()
	handOver(t, db, "h2", "gone", 1)
	over("h2") // nobody has its job any more
	must(t, db.Tidied(ctx, "h2", noon, true))
	if ok, err := db.HandedOver(ctx, "h2", "x"); ok || err != nil {
		t.Errorf("a batch of no job stays: %v, %v", ok, err)
	}
}
