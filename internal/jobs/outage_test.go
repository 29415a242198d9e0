package jobs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/jobs"
	"sluice/test/bubble"
)

// The store is gone for a minute, and takes nothing for another (its disk is full, and what
// is there can be read), while a batch is checked, runs, and is being written: it waits and
// goes on. No line runs more often than it was begun, each is billed once, and the operator
// is told once of each thing that waits.
func TestFault_P7_StoreGoneAndFull(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		name string
		when func(*jobs.Job) bool
	}{
		{"validating", func(j *jobs.Job) bool { return j.Counts.Total == checkLines }},
		{"running", func(j *jobs.Job) bool { return j.Counts.Succeeded >= 64 }},
		{"finishing", func(j *jobs.Job) bool { return j.State == jobs.Finalizing }},
	} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				o := newOffice(t)
				var log bytes.Buffer
				o.log = slog.New(slog.NewTextHandler(&log, nil))
				o.took = 100 * time.Millisecond
				c := o.desk(jobs.Bounds{Lines: 64, Lease: 10 * time.Second})
				gone, full := errors.New("connection refused"), errors.New("database or disk is full")
				var sick error // guarded by o.mu
				puts := 0
				c.see.failing(func(call string, write bool) error {
					o.mu.Lock()
					defer o.mu.Unlock()
					if call == "PutLines" {
						puts++
					}
					if call == "PutLines" && puts == 2 && at.name == "validating" || call == "PutOutput" && at.name == "finishing" && sick == nil && puts < 1000 {
						sick, puts = gone, 1000
					}
					if sick == gone || sick == full && write {
						return sick
					}
					return nil
				})
				fall := func(err error) {
					o.mu.Lock()
					defer o.mu.Unlock()
					sick = err
				}
				c.Start(t.Context())
				lines := checkLines + 50
				if at.name != "validating" {
					lines = 150
				}
				j := o.batch(c, "acme", chatLines(lines), 12*time.Hour)
				o.until(j.ID, func(j jobs.Job) bool { return at.when(&j) })
				fall(gone)
				time.Sleep(time.Minute)
				fall(full)
				time.Sleep(time.Minute)
				synctest.Wait()
				if c.Level().Stalled < time.Minute {
					t.Errorf("says that it waits for %s", c.Level().Stalled)
				}
				fall(nil)
				j = o.until(j.ID, ended)
				if j.State != jobs.Completed || j.Counts.Succeeded != lines {
					t.Fatalf("is %s with %+v", j.State, j.Counts)
				}
				if n, cost := o.charged("acme"); n != int64(lines) || int(cost) != 1000*lines {
					t.Errorf("charged %d for %d requests", cost, n)
				}
				for text, n := range o.ran {
					if n != 1 {
						t.Errorf("%s ran %d times", text, n)
					}
				}
				if got := strings.Count(o.content(c, "acme", j.Output), "\n"); got != lines {
					t.Errorf("%d answers", got)
				}
				time.Sleep(2 * time.Minute)
				if c.Level().Stalled != 0 || o.failed.Load() < 10 {
					t.Errorf("still waits for %s, after %d failures", c.Level().Stalled, o.failed.Load())
				}
				c.Close(t.Context())
				begun, over := strings.Count(log.String(), "batches wait for the store"), strings.Count(log.String(), "batches go on")
				if begun == 0 || begun > 8 || begun != over {
					t.Errorf("told %d times that something waits and %d times that it goes on:\n%s", begun, over, log.String())
				}
				audited(o)
			})
		})
	}
}

// A tenant with ten long batches does not keep another's ten lines waiting, and what is
// claimed is claimed in turn.
func TestClaimsInTurn(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.unkept = true
		n := env(t, "SLUICE_JOBS_LONG", 120) // lines of each long batch
		c := o.start(jobs.Bounds{Lines: 8, PerTenant: 64, Total: 64, TenantLines: 1 << 30})
		for range 10 {
			long := o.batch(c, "acme", strings.ReplaceAll(chatLines(n), `"t`, `"long`), 23*time.Hour)
			o.until(long.ID, func(j jobs.Job) bool { return j.State != jobs.Validating })
		}
		time.Sleep(2500 * time.Millisecond) // all places are taken
		count := func() (long int) {
			o.mu.Lock()
			defer o.mu.Unlock()
			for text, n := range o.ran {
				if strings.HasPrefix(text, "long") {
					long += n
				}
			}
			return long
		}
		before, begun := count(), time.Now()
		short := o.until(o.batch(c, "globex", chatLines(10), time.Hour).ID, ended)
		took, since := short.Ended.Sub(begun), count()-before
		t.Logf("ten lines took %s beside %d × 10 that wait, of which %d began meanwhile", took, n, since)
		if short.State != jobs.Completed || took > 8*time.Second {
			t.Errorf("is %s after %s", short.State, took)
		}
	})
}
