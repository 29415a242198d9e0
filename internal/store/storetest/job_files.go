package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/store"
)

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
	must(t, db.SealFile(t.Context(), f, nil))
	return f
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
	must(t, db.SealFile(t.Context(), f, nil))
	wantKind(t, db.PutChunk(t.Context(), "acme", f.ID, 2, []byte("c"), 100), sluice.KindNotFound)
	wantKind(t, db.SealFile(t.Context(), f, nil), sluice.KindNotFound)
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
	must(t, db.PutChunk(t.Context(), "acme", f.ID, 1, []byte{}, jobs.DefaultBounds().TenantBytes)) // more than 32 bits have
	must(t, db.PutChunk(t.Context(), "acme", f.ID, 2, make([]byte, 4), 10))
	g := newFile("file-2")
	g.Tenant = "globex"
	must(t, db.PutFile(t.Context(), g), db.PutChunk(t.Context(), "globex", g.ID, 0, make([]byte, 10), 10))
	must(t, db.DropFile(t.Context(), "acme", f.ID))
	f.ID = "file-3"
	must(t, db.PutFile(t.Context(), f), db.PutChunk(t.Context(), "acme", f.ID, 0, make([]byte, 10), 10))
}
