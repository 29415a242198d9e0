package jobs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/internal/route"
	"sluice/internal/store"
	"sluice/internal/store/storetest"
	"sluice/internal/wire"
)

// benchLines are the lines of the batch that one round of a benchmark has.
const benchLines = 5000

// BenchmarkValidate is the checking of lines of 200 bytes, told as lines a second.
func BenchmarkValidate(b *testing.B) {
	onEngines(b, func(b *testing.B, d *jobs.Desk, input jobs.FileID) {
		d.Hold()
		for b.Loop() {
			awaitJob(b, d, submitted(b, d, input), func(j *jobs.Job) bool { return j.State == jobs.InProgress })
		}
	})
}

// BenchmarkRun is a batch from its submission to its files, of lines that are answered at
// once.
func BenchmarkRun(b *testing.B) {
	onEngines(b, func(b *testing.B, d *jobs.Desk, input jobs.FileID) {
		for b.Loop() {
			awaitJob(b, d, submitted(b, d, input), func(j *jobs.Job) bool { return j.State == jobs.Completed })
		}
	})
}

// onEngines runs a benchmark on a desk before each database that is there.
func onEngines(b *testing.B, run func(*testing.B, *jobs.Desk, jobs.FileID)) {
	for name, fresh := range map[string]storetest.Fresh{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			table := &route.Table{Models: map[sluice.ModelID]*route.Model{"fast": {ID: "fast"}}}
			d := jobs.New(jobs.Options{
				Store: storetest.Open(b, fresh(b), store.Options{}), Table: func() *route.Table { return table },
				Bounds: jobs.Bounds{TenantJobs: 1 << 20, TenantLines: 1 << 30, Lines: 64},
				Principal: func(p sluice.Principal) (sluice.Principal, error) {
					p.Policy = &sluice.Policy{}
					return p, nil
				},
				Run: func(_ context.Context, _ *exchange.Request, c exchange.Client) (res exchange.Result) {
					if err := c.Answer(&exchange.Head{Status: 200}, []byte(`{"object":"chat.completion"}`)); err != nil {
						res.Err = sluice.AsError(err)
					}
					return res
				},
			})
			d.Start(b.Context())
			defer d.Close(b.Context())
			w, err := d.Create(b.Context(), jobs.NewFile{Tenant: "acme", Purpose: jobs.PurposeBatch})
			if err == nil {
				err = w.Write(b.Context(), []byte(chatLines(benchLines)))
			}
			if err != nil {
				b.Fatal(err)
			}
			f, err := w.Commit(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			run(b, d, f.ID)
			b.ReportMetric(float64(benchLines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

func submitted(b *testing.B, d *jobs.Desk, input jobs.FileID) jobs.JobID {
	b.Helper()
	j, err := d.Submit(b.Context(), jobs.NewJob{
		Kind: jobs.OpenAIBatch, Caller: sluice.Principal{Tenant: "acme", Project: "web", Key: "k"}, Endpoint: "/v1/chat/completions", Op: wire.Chat, Input: input, Window: time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	return j.ID
}

// awaitJob waits for a job to be as wanted.
func awaitJob(b *testing.B, d *jobs.Desk, id jobs.JobID, is func(*jobs.Job) bool) {
	b.Helper()
	for {
		j, err := d.Job(b.Context(), "acme", id)
		if err != nil || j.State.Ended() && !is(&j) {
			b.Fatal(fmt.Errorf("job %+v: %w", j, err))
		}
		if is(&j) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
