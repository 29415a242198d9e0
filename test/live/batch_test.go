package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/jobs"
	"sluice/internal/route"
	"sluice/internal/store"
	"sluice/internal/store/storetest"
	"sluice/internal/wire"
)

// The figures of the batch that runs beside others: three engines that serve about 70
// requests of 1,000 tokens a second between them, of which interactive ones want 80 %.
const (
	besideRate  = 56 // interactive requests a second
	besideInput = 1000
	lineInput   = 200
	lineOutput  = 40
)

// beside is one run of interactive requests, with or without a batch beside them.
type beside struct {
	gots []got
	job  jobs.Job
	took time.Duration // of the batch
}

// interactive plays the load for a length, and a batch of so many lines beside it, 0 for
// none.
func interactive(t *testing.T, length time.Duration, lines int, window time.Duration) (b beside) {
	const warm = 5 * time.Second
	one := backend{fleet.Llama8BOnH100(), route.Capacity{Concurrency: 256, KVTokens: 443_000, PrefillTokens: 4000}}
	tenants := map[sluice.TenantID]sluice.Policy{"people": {}, "nightly": {}}
	at(t, plan{
		backends: []backend{one, one, one}, queue: route.QueueBounds{MaxWait: time.Hour}, tenants: tenants, output: 50,
	}, func(t *testing.T, s *site) {
		c := s.crowd()
		rnd := rand.New(rand.NewPCG(11, 3))
		c.every(length, func(int) (ask, time.Duration) {
			return ask{tenant: "people", in: besideInput - 50 + rnd.IntN(100), out: 200}, time.Duration(rnd.ExpFloat64() / besideRate * float64(time.Second))
		})
		if lines > 0 {
			b.batch(t, s, tenants, lines, window)
		}
		b.gots = between(c.all()["people"], warm, length)
		s.served(b.gots)
	})
	return b
}

// batch submits lines of small requests and waits until they have ended.
func (b *beside) batch(t *testing.T, s *site, tenants map[sluice.TenantID]sluice.Policy, lines int, window time.Duration) {
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	d := jobs.New(jobs.Options{
		Store: db, Run: s.run, Table: func() *route.Table { return s.table },
		Principal: func(p sluice.Principal) (sluice.Principal, error) {
			policy := tenants[p.Tenant]
			policy.Weight = 1
			p.Policy = &policy
			return p, nil
		},
	})
	d.Start(t.Context())
	defer d.Close(context.WithoutCancel(t.Context()))
	w, err := d.Create(t.Context(), jobs.NewFile{Tenant: "nightly", Purpose: jobs.PurposeBatch})
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		line := fmt.Appendf(nil, `{"custom_id":"c%d","method":"POST","url":"/v1/completions","body":{"model":"m","max_tokens":%d,"prompt":[%s]}}`+"\n", i, lineOutput, s.bodies.prompt(lineInput))
		if err := w.Write(t.Context(), line); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.job, err = d.Submit(t.Context(), jobs.NewJob{
		Kind: jobs.OpenAIBatch, Caller: sluice.Principal{Tenant: "nightly", Project: sluice.DefaultProject, Key: "nightly"},
		Endpoint: "/v1/completions", Op: wire.Completions, Input: f.ID, Window: window,
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := b.job.ID; !b.job.State.Ended(); time.Sleep(time.Second) {
		if b.job, err = d.Job(t.Context(), "nightly", id); err != nil {
			t.Fatal(err)
		}
	}
	b.took = b.job.Ended.Sub(b.job.Created)
}

// A batch takes what interactive requests leave: beside it, 99 of 100 of them have their
// first token within 1.05 times the time that they have it in without it, and it meets
// its deadline. SLUICE_LIVE_LINES is how many lines it has (300); with 10000 the run takes
// minutes.
func TestBatchBesideInteractive(t *testing.T) {
	long(t)
	lines := 300
	if v := os.Getenv("SLUICE_LIVE_LINES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("SLUICE_LIVE_LINES is %q: write a whole number from 1", v)
		}
		lines = n
	}
	length, window := time.Duration(lines)*time.Second/10+10*time.Second, max(time.Minute, time.Duration(lines)*time.Second/5)
	without, with := interactive(t, length, 0, 0), interactive(t, length, lines, window)
	p50, p99 := quantile(without.gots, 500, first), quantile(without.gots, 990, first)
	b50, b99 := quantile(with.gots, 500, first), quantile(with.gots, 990, first)
	t.Logf("%d interactive requests in %v: first token p50 %v, p99 %v; beside a batch of %d lines p50 %v, p99 %v (%.3f times); the batch is %s after %v of %v, urgency %s",
		len(with.gots), length, short(p50), short(p99), lines, short(b50), short(b99), float64(b99)/float64(p99), with.job.State, short(with.took), window, with.job.Urgency)
	if b99 > p99*105/100 {
		t.Errorf("first token p99 %v beside the batch, %v without it", b99, p99)
	}
	if with.job.State != jobs.Completed || with.job.Counts.Succeeded != lines {
		t.Errorf("the batch is %s with %+v", with.job.State, with.job.Counts)
	}
}
