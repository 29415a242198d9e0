package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/store"
	"sluice/internal/versions"
)

var versionTests = []namedTest{
	{"round trip", testVersionRoundTrip},
	{"added once", testVersionAddedOnce},
	{"by hash", testVersionByHash},
	{"bounded", testVersionsBounded},
	{"replicas", testVersionsOfReplicas},
	{"recent since with detail", testRecentSince},
}

func version(n int) versions.Version {
	return versions.Version{
		ID: fmt.Sprintf("id-%d", n), Hash: fmt.Sprintf("%012x", n+0xabc000), At: noon.Add(time.Duration(n) * time.Second),
		Author: "ada", Reason: "more of it", Source: versions.File,
		Content: versions.Content{File: "sluice.yaml", FileHash: "aabbccddeeff", Text: fmt.Sprintf("models: {m%d: {}}\n", n), Changes: `{"backends":{"a":{"weight":0}}}`},
	}
}

func add(t *testing.T, db *store.DB, v versions.Version) int64 {
	t.Helper()
	n, err := db.AddVersion(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func testVersionRoundTrip(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	first := version(1)
	second := version(2)
	second.Source, second.Of, second.Reason = versions.Rollback, 1, ""
	first.Number, second.Number = add(t, db, first), add(t, db, second)
	if first.Number != 1 || second.Number != 2 {
		t.Errorf("got numbers %d and %d", first.Number, second.Number)
	}
	got, err := db.FindVersion(t.Context(), versions.Ref{Number: 2})
	must(t, err)
	if diff := cmp.Diff(second, got); diff != "" {
		t.Errorf("version 2 (-want +got):\n%s", diff)
	}
	list, err := db.ListVersions(t.Context(), 0, 10)
	must(t, err)
	first.Text, first.Changes, second.Text, second.Changes = "", "", "", ""
	if diff := cmp.Diff([]versions.Version{second, first}, list); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	list, err = db.ListVersions(t.Context(), 2, 10)
	must(t, err)
	if len(list) != 1 || list[0].Number != 1 {
		t.Errorf("before 2: got %v", list)
	}
	_, err = db.FindVersion(t.Context(), versions.Ref{Number: 3})
	wantKind(t, err, sluice.KindNotFound)
}

// What is added twice, since nobody knew that it had been taken, is there once; and a
// file that is read again is the version that it is.
func testVersionAddedOnce(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	add(t, db, version(1))
	add(t, db, version(2))
	if n := add(t, db, version(1)); n != 1 {
		t.Errorf("version 1 again has number %d", n)
	}
	again := version(2)
	again.ID = "of a restart"
	if n := add(t, db, again); n != 2 {
		t.Errorf("the file that is in force has number %d when it is read again", n)
	}
	again.Source = versions.Rollback
	if n := add(t, db, again); n != 3 {
		t.Errorf("a rollback to what is in force elsewhere has number %d", n)
	}
	back := version(1)
	back.ID = "the old file again"
	if n := add(t, db, back); n != 4 {
		t.Errorf("the old file, back again, has number %d", n)
	}
}

func testVersionByHash(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	for i := range 3 {
		v := version(i)
		v.Hash = []string{"aaaaaa000000", "bbbbbb000000", "aaaaaa000000"}[i]
		add(t, db, v)
	}
	for hash, want := range map[string]int64{"aaaaaa": 3, "aaaaaa000000": 3, "bbbbbb00": 2} {
		v, err := db.FindVersion(t.Context(), versions.Ref{Hash: hash})
		must(t, err)
		if v.Number != want || v.Text == "" {
			t.Errorf("%s: got version %d, text %q, want %d", hash, v.Number, v.Text, want)
		}
	}
	_, err := db.FindVersion(t.Context(), versions.Ref{Hash: "cccccc"})
	wantKind(t, err, sluice.KindNotFound)
}

func testVersionsBounded(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	for i := range versions.MaxStored + 3 {
		v := version(i)
		v.Text = ""
		add(t, db, v)
	}
	list, err := db.ListVersions(t.Context(), 0, 2*versions.MaxStored)
	must(t, err)
	if len(list) != versions.MaxStored || list[0].Number != versions.MaxStored+3 {
		t.Errorf("got %d versions, the newest %d", len(list), list[0].Number)
	}
	large := strings.Repeat("# comment\n", versions.MaxStoredBytes/30)
	for i := range 4 {
		v := version(10_000 + i)
		v.Text = large
		add(t, db, v)
	}
	list, err = db.ListVersions(t.Context(), 0, 2*versions.MaxStored)
	must(t, err)
	if len(list) != 3 && len(list) != 2 {
		t.Errorf("got %d versions of a third of the bound", len(list))
	}
}

// Replicas that put versions in force at one moment number them one after the other.
func testVersionsOfReplicas(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	var wg sync.WaitGroup
	numbers := make([]int64, 16)
	for i := range numbers {
		wg.Go(func() {
			v := version(i)
			for try := 0; numbers[i] == 0 && try < 100; try++ {
				numbers[i], _ = db.AddVersion(t.Context(), v)
			}
		})
	}
	wg.Wait()
	seen := map[int64]bool{}
	for _, n := range numbers {
		if n < 1 || n > 16 || seen[n] {
			t.Errorf("number %d is out of range or given twice", n)
		}
		seen[n] = true
	}
}

func testRecentSince(t *testing.T, fresh Fresh) {
	db := Open(t, fresh(t), store.Options{})
	es := varied(40)
	must(t, db.Append(t.Context(), es))
	since := es[20].At
	want := 0
	for _, e := range es {
		if e.Final && !e.At.Before(since) {
			want++
		}
	}
	for _, detail := range []bool{false, true} {
		page, err := db.Recent(t.Context(), ledger.RecentQuery{Owner: ledger.Everyone(), Since: since, Detail: detail, Limit: 500})
		must(t, err)
		if len(page.Entries) != want || want == 0 {
			t.Errorf("got %d requests since, want %d", len(page.Entries), want)
		}
		for _, e := range page.Entries {
			if got := len(e.Detail) > 0; got != detail {
				t.Errorf("request %s has a detail: %v, want %v", e.Request, got, detail)
			}
		}
	}
}
