package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/internal/route"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

// A disk that fills up while a batch is checked, runs or is written has it wait, at the
// slice or line where it was, until there is room again.
func TestFault_P7_StoreFullWithBatches(t *testing.T) {
	t.Parallel()
	const lines = 1500
	for _, in := range []jobs.State{jobs.Validating, jobs.InProgress, jobs.Cancelling} {
		t.Run(in.String(), func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				db, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"), Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				table := &route.Table{Models: map[sluice.ModelID]*route.Model{"fast": {ID: "fast"}}}
				failed := make(chan struct{}, 1)
				ran := make(chan struct{}, lines)
				d := jobs.New(jobs.Options{
					Store: db, Table: func() *route.Table { return table }, Bounds: jobs.Bounds{Lines: 8, Lease: 10 * time.Second},
					Principal: func(p sluice.Principal) (sluice.Principal, error) { return p, nil },
					Run: func(_ context.Context, _ *exchange.Request, c exchange.Client) (res exchange.Result) {
						ran <- struct{}{}
						time.Sleep(time.Second)
						if err := c.Answer(&exchange.Head{Status: 200}, []byte(`{"text":"`+strings.Repeat("x", 2000)+`"}`)); err != nil {
							res.Err = sluice.AsError(err)
						}
						return res
					},
					Hooks: jobs.Hooks{StoreFailed: func() {
						select {
						case failed <- struct{}{}:
						default:
						}
					}},
				})
				j := fullJob(t, db, d, lines)
				if in == jobs.Validating {
					fillUp(t, db)
				}
				d.Start(t.Context())
				defer d.Close(t.Context())
				if in != jobs.Validating {
					awaitState(t, db, j, jobs.InProgress)
				}
				if in == jobs.Cancelling {
					if _, err := d.Cancel(t.Context(), "acme", j); err != nil {
						t.Fatal(err)
					}
				}
				if in != jobs.Validating {
					fillUp(t, db)
				}
				<-failed // the write-ahead log takes some more
				time.Sleep(time.Minute)
				was, err := db.Job(t.Context(), "acme", j)
				if err != nil || was.State != in {
					t.Fatalf("is %s, %v", was.State, err)
				}
				pragma(t, db, "max_page_count = 1073741823")
				if in == jobs.InProgress {
					if time.Sleep(20 * time.Second); len(ran) < was.Counts.Succeeded+8 {
						t.Errorf("%d have run, of which %d were done when it was full", len(ran), was.Counts.Succeeded)
					}
					if _, err := d.Cancel(t.Context(), "acme", j); err != nil {
						t.Fatal(err)
					}
				}
				want := jobs.Cancelled
				if in == jobs.Validating {
					awaitState(t, db, j, jobs.InProgress)
					return
				}
				is := awaitState(t, db, j, want)
				if is.Counts.Succeeded+is.Counts.Cancelled != lines || is.Counts.Succeeded != len(ran) {
					t.Errorf("%d ran, and it ended with %+v", len(ran), is.Counts)
				}
			})
		})
	}
}

// fillUp leaves a store no page that is free.
func fillUp(t *testing.T, db *DB) {
	t.Helper()
	var pages int64
	if err := db.write.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	pragma(t, db, fmt.Sprintf("max_page_count = %d", pages+2))
}

// fullJob submits a batch.
func fullJob(t *testing.T, db *DB, d *jobs.Desk, lines int) jobs.JobID {
	t.Helper()
	w, err := d.Create(t.Context(), jobs.NewFile{Tenant: "acme", Purpose: jobs.PurposeBatch})
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		line := fmt.Sprintf(`{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"fast","messages":[]}}`+"\n", i)
		if err := w.Write(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j, err := d.Submit(t.Context(), jobs.NewJob{Kind: jobs.OpenAIBatch, Caller: sluice.Principal{Tenant: "acme", Key: "k"}, Endpoint: "/v1/chat/completions", Op: wire.Chat, Input: f.ID})
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

func awaitState(t *testing.T, db *DB, id jobs.JobID, want jobs.State) jobs.Job {
	t.Helper()
	for range 600 {
		j, err := db.Job(t.Context(), "acme", id)
		if err != nil {
			t.Fatal(err)
		}
		if j.State == want {
			return j
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("is not %s", want)
	return jobs.Job{}
}
