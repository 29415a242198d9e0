package jobs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/store"
	"sluice/internal/store/storetest"
)

// history is a job in the store and what a model knows of it: workers that live, die, are
// paused and post what they have, in any order.
type history struct {
	db      *store.DB
	id      jobs.JobID
	now     time.Time
	lines   int
	alive   map[string]time.Time // until when each worker's lease is
	held    map[string][]jobs.Line
	claims  map[int]int64          // the last claim of each line
	results map[int]int64          // the claim whose result each line has
	owner   map[int]string         // who has it
	ended   map[int]jobs.LineState // the end of each line
	state   jobs.State
}

func (h *history) check(t *rapid.T) {
	j, err := h.db.Job(context.Background(), "", h.id)
	must(t, err)
	c := j.Counts
	if c.Total != h.lines || c.Waiting+c.Running+c.Succeeded+c.Failed+c.Cancelled+c.Expired != h.lines {
		t.Fatalf("%+v of %d lines", c, h.lines)
	}
	var ends [jobs.NumLineStates]int
	for _, s := range h.ended {
		ends[s]++
	}
	if c.Succeeded != ends[jobs.LineSucceeded] || c.Cancelled != ends[jobs.LineCancelled] || c.Open() != h.lines-len(h.ended) || c.Running != len(h.owner) {
		t.Fatalf("%+v, and the model has ends %v and %d that run", c, ends, len(h.owner))
	}
	if j.Cost != sluice.Nano(len(h.results)) {
		t.Fatalf("cost %d of %d results", j.Cost, len(h.results))
	}
	results, err := h.db.Results(context.Background(), h.id, 0, 1000, 1<<30)
	must(t, err)
	if len(results) != len(h.ended) {
		t.Fatalf("%d results, want %d", len(results), len(h.ended))
	}
	for _, r := range results {
		if r.State != h.ended[r.Line] || h.results[r.Line] > 0 && r.Request != jobs.RequestOf(h.id, r.Line, h.results[r.Line]) {
			t.Fatalf("line %d is %s by %s, want %s by claim %d", r.Line, r.State, r.Request, h.ended[r.Line], h.results[r.Line])
		}
	}
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (h *history) claim(t *rapid.T) {
	w := worker(t)
	h.alive[w] = h.now.Add(time.Minute)
	must(t, h.db.Beat(context.Background(), w, h.alive[w]))
	lines, err := h.db.Claim(context.Background(), jobs.Claim{Job: h.id, Worker: w, Now: h.now, Limit: rapid.IntRange(1, 4).Draw(t, "limit"), Lost: rapid.Bool().Draw(t, "lost")})
	must(t, err)
	if h.state != jobs.InProgress && len(lines) > 0 {
		t.Fatalf("claimed %v of a job that is %s", lines, h.state)
	}
	for _, l := range lines {
		before, runs := h.owner[l.Line]
		if _, over := h.ended[l.Line]; over || l.Claim != h.claims[l.Line]+1 || runs != l.Lost || runs && h.now.Before(h.alive[before]) {
			t.Fatalf("%s was given line %d by claim %d after %d; it has ended: %v, %s has it until %s at %s", w, l.Line, l.Claim, h.claims[l.Line], over, before, h.alive[before], h.now)
		}
		h.claims[l.Line], h.owner[l.Line] = l.Claim, w
	}
	h.held[w] = append(h.held[w], lines...)
}

func (h *history) post(t *rapid.T) {
	w := worker(t)
	if len(h.held[w]) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.held[w])-1).Draw(t, "line")
	l := h.held[w][i]
	post := jobs.Posting{Line: l.Line, Claim: l.Claim}
	if rapid.IntRange(0, 3).Draw(t, "result") > 0 {
		post.Result = &jobs.Result{Line: l.Line, State: jobs.LineSucceeded, Status: 200, Request: jobs.RequestOf(h.id, l.Line, l.Claim), Body: []byte("{}"), Cost: 1, Ended: h.now}
	}
	if rapid.Bool().Draw(t, "once") { // else it may post it again
		h.held[w] = append(h.held[w][:i:i], h.held[w][i+1:]...)
	}
	stale, err := h.db.Post(context.Background(), h.id, h.now, []jobs.Posting{post})
	must(t, err)
	mine := h.owner[l.Line] == w && h.claims[l.Line] == l.Claim
	if (len(stale) == 0) != mine {
		t.Fatalf("claim %d of line %d by %s: stale is %v, and %s has it by %d", l.Claim, l.Line, w, stale, h.owner[l.Line], h.claims[l.Line])
	}
	if !mine {
		return
	}
	delete(h.owner, l.Line)
	if post.Result != nil {
		h.ended[l.Line], h.results[l.Line] = jobs.LineSucceeded, l.Claim
	}
}

func (h *history) end(t *rapid.T) {
	if h.state == jobs.InProgress {
		j, err := h.db.Job(context.Background(), "", h.id)
		must(t, err)
		j.State, j.Cancelling = jobs.Cancelling, h.now
		ok, err := h.db.SaveJob(context.Background(), &j, jobs.InProgress, 0)
		must(t, err)
		if !ok {
			t.Fatal("not cancelled")
		}
		h.state = jobs.Cancelling
	}
	running, more, err := h.db.EndLines(context.Background(), h.id, h.now, jobs.LineCancelled)
	must(t, err)
	if more {
		t.Fatal("there are more")
	}
	for line := 1; line <= h.lines; line++ {
		w, runs := h.owner[line]
		if _, over := h.ended[line]; over || runs && h.now.Before(h.alive[w]) {
			continue
		}
		delete(h.owner, line)
		h.ended[line] = jobs.LineCancelled
	}
	if running != len(h.owner) {
		t.Fatalf("%d run, want %d", running, len(h.owner))
	}
}

func worker(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "worker")
}

// Whatever workers do, and however often they do it: each line has one end, that of the
// claim which was its last, a line is with one worker at a time, and the counts are the
// lines.
func TestLinesHaveOneEnd(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	n := 0
	start := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		n++
		h := &history{
			db: db, id: jobs.JobID(fmt.Sprint("batch_", n)), now: start, lines: rapid.IntRange(1, 6).Draw(t, "lines"), state: jobs.InProgress,
			alive: map[string]time.Time{}, held: map[string][]jobs.Line{}, claims: map[int]int64{}, results: map[int]int64{}, owner: map[int]string{}, ended: map[int]jobs.LineState{},
		}
		for _, w := range []string{"a", "b", "c"} { // of another history
			must(t, db.Beat(context.Background(), w, start))
		}
		h.put(t)
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"claim", "claim", "post", "post", "post", "wait", "wait", "end"}), 1, 20).Draw(t, "steps")
		for _, step := range steps {
			switch step {
			case "claim":
				h.claim(t)
			case "post":
				h.post(t)
			case "wait":
				h.now = h.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			case "end":
				h.end(t)
			}
		}
		h.check(t)
	})
}

// put makes a job in progress.
func (h *history) put(t *rapid.T) {
	ctx := context.Background()
	j := &jobs.Job{ID: h.id, Caller: sluice.Principal{Tenant: sluice.TenantID(h.id)}, Created: h.now, Deadline: h.now.Add(time.Hour)}
	must(t, h.db.PutJob(ctx, j, jobs.Put{Bounds: jobs.DefaultBounds()}))
	fence, _, err := h.db.LeaseJob(ctx, h.id, "put", h.now, h.now.Add(time.Second))
	must(t, err)
	lines := make([]jobs.Line, h.lines)
	for i := range lines {
		lines[i].Line = i + 1
	}
	_, _, err = h.db.PutLines(ctx, &jobs.Lines{Job: j, Fence: fence, Lines: lines, Until: h.now.Add(time.Second)})
	must(t, err)
	j.State = jobs.InProgress
	ok, err := h.db.SaveJob(ctx, j, jobs.Validating, fence)
	must(t, err)
	if !ok {
		t.Fatal("not in progress")
	}
}
