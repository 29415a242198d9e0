package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/jobs"
	"sluice/test/bubble"
)

// checkLines is how many lines a slice of a check has.
const checkLines = 1000

// A batch of one line is checked before the many slices that other tenants have waiting.
func TestTenantsAreCheckedInTurn(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{})
		c.Hold()
		gate := make(chan struct{})
		c.see.held.Store(&gate)
		large := chatLines(3*checkLines + 1)
		for _, tenant := range []string{"acme", "acme", "acme", "globex", "globex"} {
			o.batch(c, sluice.TenantID(tenant), large, time.Hour)
		}
		synctest.Wait()
		begun := len(c.see.noted("PutLines"))
		if begun == 0 {
			t.Fatal("nothing is being checked")
		}
		small := o.batch(c, "initech", chatLines(1), time.Hour)
		synctest.Wait() // until it waits for its turn
		close(gate)
		o.until(small.ID, func(j jobs.Job) bool { return j.State == jobs.InProgress })
		before := map[string]int{}
		for _, p := range c.see.noted("PutLines")[begun:] {
			if p.tenant == "initech" {
				break
			}
			before[string(p.tenant)]++
		}
		// TestTurns has the bound itself: the slice that is done beside it may be followed by another.
		if before["acme"] > 3 || before["globex"] > 3 {
			t.Errorf("after %v slices that began later", before)
		}
	})
}

// The line that a tenant may not have waiting any more is where the check ends, and it is
// named.
func TestTenantLines(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{TenantLines: checkLines + 1500})
		c.Hold()
		first := o.batch(c, "acme", chatLines(checkLines), time.Hour)
		o.until(first.ID, func(j jobs.Job) bool { return j.State == jobs.InProgress })
		began := len(c.see.noted("PutLines"))
		j := o.until(o.batch(c, "acme", "\n"+chatLines(3*checkLines), time.Hour).ID, ended)
		if j.State != jobs.Failed || len(j.Problems) != 1 || j.Problems[0].Line != 1502 || !strings.Contains(j.Problems[0].Message, "2500") {
			t.Errorf("is %s with %+v", j.State, j.Problems)
		}
		if n := len(c.see.noted("PutLines")) - began; n != 2 {
			t.Errorf("read %d slices, want those up to the line", n)
		}
		j = o.until(o.batch(c, "acme", chatLines(1500), time.Hour).ID, func(j jobs.Job) bool { return j.State != jobs.Validating })
		if j.State != jobs.InProgress {
			t.Errorf("what fits is %s with %+v", j.State, j.Problems)
		}
	})
}

// A file is refused at the chunk with which its tenant would have too many bytes.
func TestTenantBytes(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.desk(jobs.Bounds{TenantBytes: 2*jobs.ChunkBytes + 5})
		w, err := c.Create(t.Context(), jobs.NewFile{Tenant: "acme"})
		o.must(err)
		for err == nil && w.Bytes() < 100<<20 {
			err = w.Write(t.Context(), make([]byte, jobs.ChunkBytes/4))
		}
		if err == nil || w.Bytes() > 3*jobs.ChunkBytes || !strings.Contains(err.Error(), fmt.Sprint(2*jobs.ChunkBytes+5)) {
			t.Errorf("%d bytes were taken, then %v", w.Bytes(), err)
		}
		w.Abort(t.Context())
		o.put(c, "acme", strings.Repeat("x", 2*jobs.ChunkBytes))
	})
}

// A worker that dies between two slices has another go on with the next: no line is checked
// or written again, and none is lost.
func TestSlicesGoOnElsewhere(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		first := o.start(jobs.Bounds{Lease: 10 * time.Second})
		first.Hold()
		dies := func(name string, nth int) {
			n := 0
			first.see.failing(func(call string, _ bool) error {
				if call == name {
					n++
				}
				if n > nth {
					first.see.dead.Store(true)
					return errLost
				}
				return nil
			})
		}
		const lines = 2*checkLines + 100
		dies("PutLines", 1)
		j := o.batch(first, "acme", chatLines(lines), 10*time.Minute)
		time.Sleep(5 * time.Second)
		if got := o.job(j.ID).Counts.Total; !first.see.dead.Load() || got != checkLines {
			t.Fatalf("it is dead: %v, and left %d lines", first.see.dead.Load(), got)
		}
		o.kill(first)
		second := o.start(jobs.Bounds{Lease: 10 * time.Second})
		second.Hold()
		j = o.until(j.ID, func(j jobs.Job) bool { return j.State == jobs.InProgress })
		puts := second.see.noted("PutLines")
		if j.Counts.Total != lines || len(puts) == 0 || puts[0].after != checkLines || len(second.see.noted("ResetLines")) > 0 {
			t.Errorf("has %+v after %+v", j.Counts, puts)
		}
		first = second
		dies("PutOutput", 1)
		time.Sleep(time.Until(j.Deadline) + 5*time.Second)
		o.kill(second)
		third := o.start(jobs.Bounds{Lease: 10 * time.Second})
		j = o.until(j.ID, ended)
		outputs := third.see.noted("Results")
		if len(outputs) == 0 || outputs[0].after != 2000 {
			t.Errorf("went on with %+v", outputs)
		}
		wholeErrors(o, third, &j, lines)
	})
}

// wholeErrors checks that a job that was cancelled before it ran has each line in its errors
// once, in order.
func wholeErrors(o *office, c *clerk, j *jobs.Job, lines int) {
	o.t.Helper()
	if j.State != jobs.Expired || j.Output != "" || j.Counts.Expired != lines {
		o.t.Fatalf("is %s with %+v, output %q", j.State, j.Counts, j.Output)
	}
	got := strings.Split(strings.TrimSpace(o.content(c, j.Caller.Tenant, j.Errors)), "\n")
	if len(got) != lines {
		o.t.Fatalf("%d lines, want %d", len(got), lines)
	}
	for i, line := range got {
		if !strings.Contains(line, fmt.Sprintf(`"custom_id":"c%d"`, i+1)) {
			o.t.Fatalf("line %d is %s", i+1, line)
		}
	}
}

// Whichever calls of the store fail, and however often workers die: all lines are checked
// once and written once.
func TestSlicesInAStorm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(env(t, "SLUICE_JOBS_STORMS", 1)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				o := newOffice(t)
				rnd, fate := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)) // the second of the store alone
				var mu sync.Mutex                                                           // of fate
				begin := func(calm bool) *clerk {
					c := o.start(jobs.Bounds{Lease: 10 * time.Second})
					c.Hold()
					c.see.failing(func(string, bool) error {
						mu.Lock()
						defer mu.Unlock()
						if !calm && fate.IntN(5) == 0 {
							return errLost
						}
						return nil
					})
					return c
				}
				c := begin(false)
				const lines = 2*checkLines + 1
				w, err := c.Create(t.Context(), jobs.NewFile{Tenant: "acme", Project: "web", Purpose: jobs.PurposeBatch})
				o.must(err)
				o.must(w.Write(t.Context(), []byte(chatLines(lines))))
				f, err := w.Commit(t.Context())
				o.must(err)
				n := chatJob("acme", f.ID)
				n.Window = 10 * time.Minute
				j, err := c.Submit(t.Context(), n)
				o.must(err)
				for round := 0; !o.job(j.ID).State.Ended(); round++ {
					time.Sleep(time.Duration(rnd.IntN(20)) * time.Second)
					synctest.Wait()
					o.kill(c)
					c = begin(round > 5)
					if o.job(j.ID).State == jobs.InProgress {
						time.Sleep(time.Until(j.Deadline))
					}
				}
				j = o.job(j.ID)
				c.see.failing(nil) // the storm is over
				wholeErrors(o, c, &j, lines)
			})
		})
	}
}

// A check for which there is no memory from slice to slice is none the worse.
func TestCheckWithoutMemory(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{})
		c.Crowd()
		j := o.until(o.batch(c, "acme", chatLines(2*checkLines+10)+chatLine("c1", "again")+"\n", time.Hour).ID, ended)
		if j.State != jobs.Failed || len(j.Problems) != 1 || j.Problems[0].Code != "duplicate_custom_id" || j.Problems[0].Line != 2*checkLines+11 {
			t.Errorf("is %s with %+v", j.State, j.Problems)
		}
		if n := len(c.see.noted("CustomIDs")); n != 2 {
			t.Errorf("read what it had seen %d times, want once for each slice but the first", n)
		}
	})
}

// The room of a large file that is deleted is there again in a moment.
func TestRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{TenantBytes: 20 << 20})
		o.must(c.DeleteFile(t.Context(), "acme", o.put(c, "acme", strings.Repeat("x", 20<<20))))
		time.Sleep(time.Second)
		synctest.Wait()
		o.put(c, "acme", strings.Repeat("x", 17<<20))
	})
}
