package jobs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

// out is one line of an OpenAI batch's output.
type out struct {
	ID       string
	CustomID string `json:"custom_id"`
	Response *struct {
		StatusCode int    `json:"status_code"`
		RequestID  string `json:"request_id"`
		Body       json.RawMessage
	}
	Error *struct{ Code, Message string }
}

func outs(t *testing.T, text string) map[string]out {
	t.Helper()
	found := map[string]out{}
	s := bufio.NewScanner(strings.NewReader(text))
	for s.Scan() {
		var o out
		if err := json.Unmarshal(s.Bytes(), &o); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		if _, twice := found[o.CustomID]; twice {
			t.Errorf("%s is there twice", o.CustomID)
		}
		found[o.CustomID] = o
	}
	return found
}

func TestBatch(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.answer = func(_ context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
			if r.Task != "nightly" || r.Class != sluice.Batch {
				t.Errorf("task %q, class %s", r.Task, r.Class)
			}
			if textOf(r.Body) == "t7" {
				return 0, sluice.Invalid("messages", "are too rude")
			}
			return 1000, nil
		}
		c := o.start(jobs.Bounds{})
		j := o.batch(c, "acme", "\n"+chatLines(40)+"\r\n", time.Hour)
		if j.State != jobs.Validating {
			t.Errorf("is %s at once", j.State)
		}
		j = o.until(j.ID, ended)
		want := jobs.Counts{Total: 40, Succeeded: 39, Failed: 1}
		if j.State != jobs.Completed || j.Counts != want || j.Cost != 39_000 || j.Usage.Output != 39*5 {
			t.Errorf("job %+v", j)
		}
		if j.Started.Before(j.Created) || j.Finalizing.Before(j.Started) || j.Ended.Before(j.Finalizing) || !j.ResultsExpire.After(j.Ended) || j.Model != "fast" {
			t.Errorf("times of %+v", j)
		}
		good, bad := outs(t, o.content(c, "acme", j.Output)), outs(t, o.content(c, "acme", j.Errors))
		if len(good) != 39 || len(bad) != 1 {
			t.Fatalf("%d answers, %d errors", len(good), len(bad))
		}
		if r := good["c3"].Response; r == nil || r.StatusCode != 200 || !strings.Contains(string(r.Body), `"text":"t3"`) || r.RequestID != good["c3"].ID {
			t.Errorf("c3 is %+v", good["c3"])
		}
		if r := bad["c7"].Response; r == nil || r.StatusCode != 400 || !strings.Contains(string(r.Body), "are too rude") || bad["c7"].Error != nil {
			t.Errorf("c7 is %+v", bad["c7"])
		}
		if n, cost := o.charged("acme"); n != 40 || cost != 39_000 {
			t.Errorf("charged %d for %d requests", cost, n)
		}
		if o.most != jobs.DefaultBounds().Lines {
			t.Errorf("%d lines at a time, want %d", o.most, jobs.DefaultBounds().Lines)
		}
		if _, err := c.File(t.Context(), "globex", j.Output); sluice.AsError(err).Kind != sluice.KindNotFound {
			t.Errorf("another tenant sees the output: %v", err)
		}
	})
}

// The end user that a token was verified to be of is that of each line, whatever it says.
func TestLinesHaveTheCallersUser(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{})
		for caller, want := range map[sluice.UserID]sluice.UserID{"alice": "alice", "": "mallory"} {
			o.answer = func(_ context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
				if r.Principal.User != want {
					t.Errorf("a line of %q ran as %q, want %q", caller, r.Principal.User, want)
				}
				return 1000, nil
			}
			line := strings.Replace(chatLine("a", "x"), `"model"`, `"user":"mallory","model"`, 1)
			j, err := c.Submit(t.Context(), jobs.NewJob{
				Kind: jobs.OpenAIBatch, Caller: sluice.Principal{Tenant: "acme", Project: "web", Key: "jwt:corp:a", User: caller},
				Endpoint: "/v1/chat/completions", Op: wire.Chat, Input: o.put(c, "acme", line+"\n"), Window: time.Hour,
			})
			o.must(err)
			if j = o.until(j.ID, ended); j.Counts.Succeeded != 1 {
				t.Errorf("job %+v", j)
			}
		}
	})
}

func TestMessageBatch(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{})
		submit := func(text string) (jobs.Job, error) {
			w, err := c.Create(t.Context(), jobs.NewFile{Tenant: "acme", Purpose: jobs.PurposeBatch, Hidden: true})
			o.must(err)
			o.must(w.Write(t.Context(), []byte(text)))
			f, err := w.Commit(t.Context())
			o.must(err)
			return c.Submit(t.Context(), jobs.NewJob{Kind: jobs.MessageBatch, Op: wire.Messages, Caller: sluice.Principal{Tenant: "acme", Key: "k"}, Input: f.ID, Window: time.Hour})
		}
		line := `{"custom_id":"a","params":{"model":"fast","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}}` + "\n"
		_, err := submit(line + line)
		if e := sluice.AsError(err); e.Kind != sluice.KindInvalid || e.Param != "requests.1.custom_id" || strings.HasPrefix(e.Msg, "custom_id") {
			t.Errorf("two of one id are %v", err)
		}
		j, err := submit(line + `{"custom_id":"b","params":{"model":"fast","max_tokens":5,"stream":true,"messages":[]}}` + "\n")
		o.must(err)
		if j.State != jobs.InProgress || j.Counts.Total != 2 {
			t.Errorf("is %+v", j)
		}
		j = o.until(j.ID, ended)
		text := o.content(c, "acme", j.Output)
		if j.Errors != "" || strings.Count(text, "\n") != 2 ||
			!strings.Contains(text, `{"custom_id":"a","result":{"type":"succeeded","message":{"object"`) ||
			!strings.Contains(text, `{"custom_id":"b","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error"`) {
			t.Errorf("results\n%s", text)
		}
		files, _, err := c.Files(t.Context(), jobs.FileQuery{Tenant: "acme"})
		o.must(err)
		if len(files) > 0 {
			t.Errorf("a job's own files are listed: %v", files)
		}
		if _, err := c.Open(t.Context(), "acme", j.Input); sluice.AsError(err).Kind != sluice.KindNotFound {
			t.Errorf("its input is still there: %v", err)
		}
		o.must(c.DeleteJob(t.Context(), "acme", j.ID))
		if _, err := c.Open(t.Context(), "acme", j.Output); sluice.AsError(err).Kind != sluice.KindNotFound {
			t.Errorf("its results are still there: %v", err)
		}
	})
}

func TestAsync(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.answer = func(_ context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
			if r.Principal.Run != "r7" || r.Cache != exchange.WishBypass {
				t.Errorf("runs in %q with the wish %q", r.Principal.Run, r.Cache)
			}
			return 1000, nil
		}
		c := o.start(jobs.Bounds{})
		j, err := c.Submit(t.Context(), jobs.NewJob{
			Kind: jobs.Async, Op: wire.Chat, Caller: sluice.Principal{Tenant: "acme", Key: "k"}, Window: time.Hour, Terms: jobs.Terms{Run: "r7", Cache: exchange.WishBypass},
			Input: o.put(c, "acme", "{\"model\":\"fast\",\n\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n"),
		})
		o.must(err)
		if _, err := c.Answer(t.Context(), "acme", j.ID); sluice.AsError(err).Kind != sluice.KindConflict {
			t.Errorf("the answer that is not there yet is %v", err)
		}
		o.until(j.ID, ended)
		r, err := c.Answer(t.Context(), "acme", j.ID)
		o.must(err)
		if r.Status != 200 || !strings.Contains(string(r.Body), `"text":"hi"`) {
			t.Errorf("answer %+v", r)
		}
		if _, err := c.Answer(t.Context(), "globex", j.ID); sluice.AsError(err).Kind != sluice.KindNotFound {
			t.Errorf("another tenant has it: %v", err)
		}
	})
}

// What cannot run now waits: rates, capacity, and budgets whose window begins anew before
// the deadline.
func TestRefusedLinesWait(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		begun := time.Now()
		o.answer = func(_ context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
			switch since := time.Since(begun); {
			case since < 10*time.Second:
				return 0, &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.QueueFull, Msg: "full", RetryAfter: 3 * time.Second}
			case since < 20*time.Second:
				return 0, &sluice.Error{Kind: sluice.KindRateLimited, Reason: sluice.RateLimited, Msg: "slower", RetryAfter: 7 * time.Second}
			case since < 30*time.Second:
				return 0, &sluice.Error{Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetSpent, Msg: "spent", Refusal: &sluice.Refusal{Reset: begun.Add(time.Minute)}}
			case textOf(r.Body) == "t9":
				return 0, &sluice.Error{Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetSpent, Msg: "spent", Refusal: &sluice.Refusal{Reset: begun.Add(5 * time.Hour)}}
			}
			return 1000, nil
		}
		c := o.start(jobs.Bounds{})
		j := o.until(o.batch(c, "acme", chatLines(10), time.Hour).ID, ended)
		if want := (jobs.Counts{Total: 10, Succeeded: 9, Failed: 1}); j.State != jobs.Completed || j.Counts != want {
			t.Errorf("is %s with %+v", j.State, j.Counts)
		}
		if bad := outs(t, o.content(c, "acme", j.Errors)); bad["c9"].Response == nil || bad["c9"].Response.StatusCode != 429 {
			t.Errorf("c9 is %+v", bad["c9"])
		}
		total := 0
		for _, n := range o.ran {
			total += n
		}
		if total > 60 {
			t.Errorf("%d requests for 10 lines: what is refused is to pause the job", total)
		}
	})
}

// A key that is revoked while its batch runs ends the lines that have not run.
func TestRevokedKey(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{Lines: 2})
		j := o.batch(c, "acme", chatLines(20), time.Hour)
		o.until(j.ID, func(j jobs.Job) bool { return j.Counts.Succeeded >= 6 })
		o.mu.Lock()
		o.revoked = &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.KeyRevoked, Msg: "the API key has been revoked"}
		o.mu.Unlock()
		j = o.until(j.ID, ended)
		if j.State != jobs.Completed || j.Counts.Succeeded < 6 || j.Counts.Succeeded > 10 || j.Counts.Failed != 20-j.Counts.Succeeded {
			t.Errorf("is %s with %+v", j.State, j.Counts)
		}
		if bad := outs(t, o.content(c, "acme", j.Errors)); !strings.Contains(string(bad["c20"].Response.Body), "has been revoked") {
			t.Errorf("c20 is %s", bad["c20"].Response.Body)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.start(jobs.Bounds{Lines: 4, CancelGrace: 10 * time.Second})
		o.answer = func(ctx context.Context, r *exchange.Request) (sluice.Nano, *sluice.Error) {
			if textOf(r.Body) == "t8" { // it does not end by itself
				<-ctx.Done()
				return 500, context.Cause(ctx).(*sluice.Error)
			}
			return 1000, nil
		}
		j := o.batch(c, "acme", chatLines(50), time.Hour)
		o.until(j.ID, func(j jobs.Job) bool { return j.Counts.Succeeded >= 12 })
		if _, err := c.Cancel(t.Context(), "globex", j.ID); sluice.AsError(err).Kind != sluice.KindNotFound {
			t.Errorf("another tenant cancels it: %v", err)
		}
		begun := time.Now()
		j, err := c.Cancel(t.Context(), "acme", j.ID)
		o.must(err)
		if j.State != jobs.Cancelling {
			t.Errorf("is %s", j.State)
		}
		j = o.until(j.ID, ended)
		if took := time.Since(begun); j.State != jobs.Cancelled || took > 13*time.Second || j.Counts.Open() != 0 || j.Counts.Succeeded < 12 || j.Counts.Succeeded > 20 {
			t.Errorf("is %s with %+v after %s", j.State, j.Counts, took)
		}
		if n := len(outs(t, o.content(c, "acme", j.Output))); n != j.Counts.Succeeded {
			t.Errorf("%d answers of %d are given", n, j.Counts.Succeeded)
		}
		bad := outs(t, o.content(c, "acme", j.Errors))
		if e := bad["c8"].Error; e == nil || e.Code != "batch_cancelled" || len(bad) != 1 {
			t.Errorf("without an answer: %+v, want the one that was ended", bad)
		}
		if _, err := c.Cancel(t.Context(), "acme", j.ID); sluice.AsError(err).Kind != sluice.KindConflict {
			t.Errorf("a second cancel is %v", err)
		}
	})
}

// At the deadline what has no answer expires, and what has is given.
func TestExpiry(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.took = 7 * time.Second
		c := o.start(jobs.Bounds{Lines: 1})
		j := o.until(o.batch(c, "acme", chatLines(40), time.Minute).ID, ended)
		if took := j.Ended.Sub(j.Created); j.State != jobs.Expired || took < time.Minute || took > time.Minute+3*time.Second {
			t.Errorf("is %s after %s", j.State, took)
		}
		if j.Counts.Succeeded < 8 || j.Counts.Succeeded+j.Counts.Expired != 40 {
			t.Errorf("has %+v", j.Counts)
		}
		if e := outs(t, o.content(c, "acme", j.Errors))["c40"].Error; e == nil || e.Code != "batch_expired" {
			t.Errorf("c40 is %+v", e)
		}
	})
}

// A shutdown gives back what it has not finished, and the next process goes on at once.
func TestShutdown(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.took = 20 * time.Second
		first := o.desk(jobs.Bounds{Lines: 4})
		first.Start(t.Context())
		j := o.batch(first, "acme", chatLines(12), time.Hour)
		o.until(j.ID, func(j jobs.Job) bool { return j.Counts.Running >= 4 })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun := time.Now()
		first.Close(ctx)
		if took := time.Since(begun); took > 6*time.Second {
			t.Errorf("took %s", took)
		}
		if got := o.job(j.ID).Counts; got != (jobs.Counts{Total: 12, Waiting: 12}) {
			t.Errorf("gave back %+v", got)
		}
		o.start(jobs.Bounds{Lines: 12})
		j = o.until(j.ID, ended)
		if j.Counts.Succeeded != 12 || time.Since(begun) > 40*time.Second {
			t.Errorf("has %+v after %s", j.Counts, time.Since(begun))
		}
		if n, cost := o.charged("acme"); n != 12 || cost != 12_000 {
			t.Errorf("charged %d for %d requests", cost, n)
		}
	})
}

// Tenants have their turns by their weight, however many jobs each has.
func TestFairness(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c := o.desk(jobs.Bounds{Lines: 10, Total: 8})
		for i := range 4 {
			o.batch(c, "acme", strings.ReplaceAll(chatLines(20), `"t`, fmt.Sprintf(`"a%d-`, i)), time.Hour)
		}
		o.batch(c, "globex", strings.ReplaceAll(chatLines(20), `"t`, `"g-`), time.Hour)
		c.Start(t.Context())
		time.Sleep(4500 * time.Millisecond)
		synctest.Wait()
		of := map[byte]int{}
		o.mu.Lock()
		for text, n := range o.ran {
			of[text[0]] += n
		}
		o.mu.Unlock()
		if o.most != 8 {
			t.Errorf("%d lines at a time, want 8", o.most)
		}
		if of['g'] < 12 || of['g'] > 20 || of['a'] < 12 || of['a'] > 24 {
			t.Errorf("began %d of the tenant with four jobs, %d of that with one", of['a'], of['g'])
		}
		c.Close(t.Context())
	})
}

// A job that would be late is worked at harder, and as a class above where its plan has it.
func TestUrgency(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.took = 10 * time.Second
		o.policy.Class = sluice.Interactive
		c := o.start(jobs.Bounds{Lines: 2})
		n := env(t, "SLUICE_JOBS_URGENT", 60)
		j := o.batch(c, "acme", chatLines(n), time.Duration(n)*3*time.Second) // 5 s a line at two, 1.25 at eight
		o.until(j.ID, func(j jobs.Job) bool { return j.Urgency == jobs.Urgent })
		if p := c.Progress(new(o.job(j.ID))); p.Rate <= 0 || p.Finish.IsZero() || p.Done <= 0 {
			t.Errorf("progress %+v", p)
		}
		j = o.until(j.ID, ended)
		if j.State != jobs.Completed || j.Counts.Succeeded != n {
			t.Errorf("is %s with %+v", j.State, j.Counts)
		}
		if o.most != 8 || o.classes[sluice.Standard] == 0 || o.classes[sluice.Batch] == 0 {
			t.Errorf("%d at a time, classes %v", o.most, o.classes)
		}
	})
}
