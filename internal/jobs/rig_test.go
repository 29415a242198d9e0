package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/store"
	"sluice/internal/store/storetest"
	"sluice/internal/wire"
)

// office is a store with desks in front of it, whose lines go to a gateway that is not
// there.
type office struct {
	t     *testing.T
	db    *store.DB
	desks []*clerk

	mu      sync.Mutex
	answer  func(ctx context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error)
	took    time.Duration        // of each request
	revoked *sluice.Error        // who asks may not any more
	policy  sluice.Policy        // of everybody
	failed  atomic.Int64         // calls of the store, as desks say
	log     *slog.Logger         // of all desks; nil discards
	ran     map[string]int       // by custom text of the body: requests that began
	classes map[sluice.Class]int // of requests that began
	flight  int                  // requests that run
	unkept  bool                 // nothing is entered in the ledger
	most    int                  // of those at a time
	head    exchange.Head        // of every answer
	told    int                  // requests that have ended, as the hook is told
}

// clerk is one desk and the store as it sees it.
type clerk struct {
	*jobs.Desk
	see *sight
}

func newOffice(t *testing.T) *office {
	t.Helper()
	return &office{t: t, db: storetest.Open(t, storetest.SQLite(t), store.Options{}), took: time.Second, ran: map[string]int{}, classes: map[sluice.Class]int{}}
}

// desk starts one more desk.
func (o *office) desk(b jobs.Bounds) *clerk {
	o.t.Helper()
	c := &clerk{see: &sight{Store: o.db}}
	table := &route.Table{Models: map[sluice.ModelID]*route.Model{"fast": {ID: "fast"}, "large": {ID: "large"}}}
	c.Desk = jobs.New(jobs.Options{
		Store: c.see, Run: o.run, Refuse: o.refuse, Table: func() *route.Table { return table }, Bounds: b, Log: o.log,
		Hooks: jobs.Hooks{Ran: func(*exchange.Result) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.told++
		}, StoreFailed: func() { o.failed.Add(1) }},
		Principal: func(p sluice.Principal) (sluice.Principal, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.revoked != nil {
				return sluice.Principal{}, o.revoked
			}
			policy := o.policy
			p.Policy = &policy
			return p, nil
		},
	})
	o.desks = append(o.desks, c)
	return c
}

// start starts a desk that the test closes.
func (o *office) start(b jobs.Bounds) *clerk {
	o.t.Helper()
	c := o.desk(b)
	c.Start(o.t.Context())
	o.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if !c.see.dead.Load() {
			c.Close(ctx)
		}
	})
	return c
}

// kill makes a desk one whose process is dead: nothing of it reaches the store any more.
func (o *office) kill(c *clerk) {
	c.see.dead.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Close(ctx)
}

// run answers a line after a while, and has its entry in the ledger.
func (o *office) run(ctx context.Context, r *exchange.Request, c exchange.Client) (res exchange.Result) {
	o.mu.Lock()
	o.ran[textOf(r.Body)]++
	o.classes[r.Class]++
	o.flight++
	o.most = max(o.most, o.flight)
	answer, took := o.answer, o.took
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		o.flight--
		o.mu.Unlock()
	}()
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		res.Err, _ = errors.AsType[*sluice.Error](context.Cause(ctx))
	case <-timer.C:
	}
	cost := sluice.Nano(1000)
	if answer != nil && res.Err == nil {
		cost, res.Err = answer(ctx, r)
	}
	res.Usage, res.Cost = sluice.Usage{Input: 10, Output: 5, Source: sluice.UsageReported}, cost
	if cost == 0 {
		res.Usage = sluice.Usage{}
	}
	if !o.unkept {
		o.enter(r, &res)
	}
	if res.Err == nil {
		head := o.head
		head.Status = 200
		if err := c.Answer(&head, []byte(`{"object":"chat.completion","text":"`+textOf(r.Body)+`"}`)); err != nil {
			res.Err = sluice.AsError(err)
		}
	}
	return res
}

// refuse enters a request that is not run.
func (o *office) refuse(r *exchange.Request, _ exchange.Client, e *sluice.Error) exchange.Result {
	res := exchange.Result{Err: e}
	o.enter(r, &res)
	return res
}

// enter appends the request's entry to the ledger.
func (o *office) enter(r *exchange.Request, res *exchange.Result) {
	e := ledger.Entry{
		Request: r.ID, Attempt: 1, At: r.Arrived, Ended: time.Now(), Tenant: r.Principal.Tenant, Project: "web", Class: r.Class, Model: sluice.ModelID(r.Head.Model),
		Backend: "b", Final: true, Operation: "chat", Usage: res.Usage, Cost: res.Cost, CostHigh: res.Cost,
	}
	if res.Err != nil {
		e.Outcome, e.Reason = sluice.Failed, res.Err.Reason
	}
	if err := o.db.Append(context.Background(), []ledger.Entry{e}); err != nil {
		o.t.Error(err)
	}
}

// textOf is the text of a request's first message.
func textOf(body []byte) string {
	var b struct{ Messages []struct{ Content string } }
	if err := json.Unmarshal(body, &b); err != nil || len(b.Messages) == 0 {
		return ""
	}
	return b.Messages[0].Content
}

// chatLine is a line of an OpenAI batch.
func chatLine(id, text string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":"fast","messages":[{"role":"user","content":%q}]}}`, id, text)
}

func chatLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(chatLine(fmt.Sprint("c", i+1), fmt.Sprint("t", i+1)) + "\n")
	}
	return b.String()
}

// put writes a file.
func (o *office) put(c *clerk, tenant sluice.TenantID, text string) jobs.FileID {
	o.t.Helper()
	w, err := c.Create(o.t.Context(), jobs.NewFile{Tenant: tenant, Project: "web", Name: "in.jsonl", Purpose: jobs.PurposeBatch})
	o.must(err)
	o.must(w.Write(o.t.Context(), []byte(text)))
	f, err := w.Commit(o.t.Context())
	o.must(err)
	return f.ID
}

func (o *office) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// batch submits lines of chat.
func (o *office) batch(c *clerk, tenant sluice.TenantID, text string, window time.Duration) jobs.Job {
	o.t.Helper()
	n := chatJob(tenant, o.put(c, tenant, text))
	n.Window = window
	j, err := c.Submit(o.t.Context(), n)
	o.must(err)
	return j
}

// chatJob is a batch of a file of lines of chat.
func chatJob(tenant sluice.TenantID, input jobs.FileID) jobs.NewJob {
	return jobs.NewJob{
		Kind: jobs.OpenAIBatch, Caller: sluice.Principal{Tenant: tenant, Project: "web", Key: "k"}, Endpoint: "/v1/chat/completions", Op: wire.Chat,
		Input: input, Terms: jobs.Terms{Task: "nightly"},
	}
}

// job is what the store says of it.
func (o *office) job(id jobs.JobID) jobs.Job {
	o.t.Helper()
	j, err := o.db.Job(o.t.Context(), "", id)
	o.must(err)
	return j
}

// until waits in virtual time for a job to be as wanted, an hour at most. It looks less
// often the longer it takes: each look is a question to the store.
func (o *office) until(id jobs.JobID, is func(jobs.Job) bool) jobs.Job {
	o.t.Helper()
	for begun := time.Now(); time.Since(begun) < time.Hour; {
		synctest.Wait()
		if j := o.job(id); is(j) {
			return j
		}
		time.Sleep(min(max(time.Since(begun)/10, 200*time.Millisecond), 5*time.Second))
	}
	o.t.Fatalf("job %+v", o.job(id))
	return jobs.Job{}
}

func ended(j jobs.Job) bool { return j.State.Ended() }

// content is a file as a text.
func (o *office) content(c *clerk, tenant sluice.TenantID, id jobs.FileID) string {
	o.t.Helper()
	if id == "" {
		return ""
	}
	r, err := c.Open(o.t.Context(), tenant, id)
	o.must(err)
	var b bytes.Buffer
	o.must(r.Copy(o.t.Context(), &b))
	return b.String()
}

// charged is what a tenant's usage says.
func (o *office) charged(tenant sluice.TenantID) (requests int64, cost sluice.Nano) {
	o.t.Helper()
	rows, err := o.db.Usage(o.t.Context(), ledger.UsageQuery{Owner: ledger.Of(tenant)})
	o.must(err)
	for _, r := range rows {
		requests, cost = requests+r.Requests, cost+r.Cost
	}
	return requests, cost
}
