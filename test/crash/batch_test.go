package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/fakellm"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
	"sluice/internal/store"
	"sluice/internal/wire"
	"sluice/test/gateway"
)

// TestBatchKilled kills the gateway again and again while it works at a batch: nothing of
// the batch is lost and nothing is answered twice. Every call of the provider's is in the
// ledger; of each line one is the tenant's, and the others say that they were voided.
// SLUICE_CRASH_LINES is how many lines the batch has, of which a few are refused: more
// for each kill (64) than a gateway comes to before it is killed, so that the last one
// ends the batch.
func TestBatchKilled(t *testing.T) {
	kills := max(2, size(t, "SLUICE_CRASH_ROUNDS", 10)/3)
	lines := size(t, "SLUICE_CRASH_LINES", 64*kills)
	rnd := rand.New(rand.NewPCG(uint64(size(t, "SLUICE_CRASH_SEED", 1)), 0))
	p := newProvider(t)
	p.Play("sim-small", fakellm.Rule{Fault: "first=100ms"})
	g := gateway.New(t, gateway.Options{Config: configuration(p.url) + "batch: {lines: 8}\n", Tenants: map[string]string{soft: soft}})
	g.Start() // so that the database is there
	g.Stop()
	key, err := auth.Parse(g.Key(soft))
	must(t, err)
	id := submit(t, g.Dir, key.ID, lines)
	for range kills {
		g.Start()
		time.Sleep(time.Duration(200+rnd.IntN(500)) * time.Millisecond)
		g.Kill()
	}
	g.Start()
	for deadline := time.Now().Add(gateway.Patience + time.Duration(lines)*50*time.Millisecond); g.Metrics()[`sluice_batch_jobs_total{kind="batch",state="completed"}`] == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the batch does not end")
		}
		time.Sleep(50 * time.Millisecond)
	}
	g.Quiet()
	g.Stop()
	db := openStore(t, g.Dir)
	b := books{t: t, db: db, job: id, lines: lines}
	b.results()
	b.ledger(len(p.calls))
	t.Logf("%d kills, %d lines: %d upstream calls, %d entries voided at %d nano-dollars", kills, lines, len(p.calls), b.voided, b.voidedCost)
	if b.voided == 0 {
		t.Error("no attempt was voided: nothing was in flight when the gateway was killed")
	}
}

// refusedEach is which lines are refused.
const refusedEach = 50

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "sluice.db"), store.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// submit puts a batch into the store of a gateway that does not run.
func submit(t *testing.T, dir string, key sluice.KeyID, lines int) jobs.JobID {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "sluice.db"), store.Options{})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	d := jobs.New(jobs.Options{Store: db})
	w, err := d.Create(t.Context(), jobs.NewFile{Tenant: soft, Project: "default", Purpose: jobs.PurposeBatch})
	must(t, err)
	for i := range lines {
		text := fmt.Sprint("line ", i)
		if i%refusedEach == refusedEach-1 {
			text = strings.Repeat("more than the model's context ", 40_000)
		}
		must(t, w.Write(t.Context(), fmt.Appendf(nil, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"fast","max_tokens":8,"messages":[{"role":"user","content":"%s"}]}}`+"\n", i, text)))
	}
	f, err := w.Commit(t.Context())
	must(t, err)
	j, err := d.Submit(t.Context(), jobs.NewJob{
		Kind: jobs.OpenAIBatch, Caller: sluice.Principal{Tenant: soft, Project: "default", Key: key}, Endpoint: "/v1/chat/completions", Op: wire.Chat, Input: f.ID,
	})
	must(t, err)
	return j.ID
}

// books are what a batch has come to.
type books struct {
	t          *testing.T
	db         *store.DB
	job        jobs.JobID
	lines      int
	requests   map[string]string // of each answer, by custom id
	voided     int
	voidedCost sluice.Nano
}

// results checks that each line has one result.
func (b *books) results() {
	j, err := b.db.Job(b.t.Context(), soft, b.job)
	must(b.t, err)
	refused := b.lines / refusedEach
	if j.State != jobs.Completed || j.Counts.Succeeded != b.lines-refused || j.Counts.Failed != refused || j.Counts.Total != b.lines {
		b.t.Fatalf("the batch is %s with %+v; problems %v", j.State, j.Counts, j.Problems)
	}
	b.requests = map[string]string{}
	for _, id := range []jobs.FileID{j.Output, j.Errors} {
		r, err := jobs.New(jobs.Options{Store: b.db}).Open(b.t.Context(), soft, id)
		must(b.t, err)
		var text bytes.Buffer
		must(b.t, r.Copy(b.t.Context(), &text))
		for s := bufio.NewScanner(&text); s.Scan(); {
			var line struct {
				CustomID string `json:"custom_id"`
				Response struct {
					Request string `json:"request_id"`
				}
			}
			must(b.t, json.Unmarshal(s.Bytes(), &line))
			if b.requests[line.CustomID] != "" {
				b.t.Errorf("%s has two results", line.CustomID)
			}
			b.requests[line.CustomID] = line.Response.Request
		}
	}
	if len(b.requests) != b.lines {
		b.t.Errorf("%d results of %d lines", len(b.requests), b.lines)
	}
}

// ledger checks that each call is in the ledger, and that the tenant pays for the calls
// whose answers it has.
func (b *books) ledger(calls int) {
	attempts, paid := 0, sluice.Nano(0)
	for i := range b.lines {
		for claim := range int64(12) {
			id := jobs.RequestOf(b.job, i+1, claim+1)
			entries, err := b.db.Explain(b.t.Context(), ledger.Of(soft), id)
			if sluice.AsError(err).Kind == sluice.KindNotFound && err != nil {
				continue
			}
			must(b.t, err)
			for _, e := range entries {
				if e.Attempt > 0 {
					attempts++
				}
				wins := b.requests[fmt.Sprint("c", i)] == string(e.Request)
				if e.Voided == wins {
					b.t.Errorf("%s: voided is %v, and its answer is the line's: %v", e.Request, e.Voided, wins)
				}
				if e.Voided {
					b.voided++
					b.voidedCost += e.Cost
				} else {
					paid += e.Cost
				}
			}
		}
	}
	if attempts < calls {
		b.t.Errorf("%d attempts in the ledger of %d calls", attempts, calls)
	}
	rows, err := b.db.Usage(b.t.Context(), ledger.UsageQuery{Owner: ledger.Of(soft)})
	must(b.t, err)
	var requests int64
	var cost sluice.Nano
	for _, r := range rows {
		requests, cost = requests+r.Requests, cost+r.Cost
	}
	if cost != paid || requests != int64(b.lines) || paid == 0 {
		b.t.Errorf("the tenant is charged %d for %d requests, want %d for %d", cost, requests, paid, b.lines)
	}
	a, err := b.db.Verify(b.t.Context())
	must(b.t, err)
	if !a.OK() {
		b.t.Errorf("sums differ: %s", strings.Join(a.Differences, "; "))
	}
}
