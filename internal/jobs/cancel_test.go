package jobs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

// Whenever a batch of OpenAI's is cancelled, the lines that were run have a result and no
// others; of a message batch each line has one.
func TestCancelAtAnyMoment(t *testing.T) {
	t.Parallel()
	const lines = 12
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second, 7 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				o := newOffice(t)
				c := o.start(jobs.Bounds{Lines: 2})
				batch := o.batch(c, "acme", chatLines(lines), time.Hour)
				messages := o.messages(c, "acme", lines)
				time.Sleep(after)
				for _, j := range []jobs.Job{batch, messages} {
					_, err := c.Cancel(t.Context(), "acme", j.ID)
					if err != nil && sluice.AsError(err).Kind != sluice.KindConflict {
						t.Fatal(err)
					}
				}
				batch, messages = o.until(batch.ID, ended), o.until(messages.ID, ended)
				found := outs(t, o.content(c, "acme", batch.Output)+o.content(c, "acme", batch.Errors))
				for i := range lines {
					_, is := found[fmt.Sprint("c", i+1)]
					if ran := o.ran[fmt.Sprint("t", i+1)] > 0; ran != is {
						t.Errorf("line %d has a result: %v, and was run: %v", i+1, is, ran)
					}
				}
				kinds := map[string]int{}
				for s := range strings.Lines(o.content(c, "acme", messages.Output)) {
					var l struct{ Result struct{ Type string } }
					o.must(json.Unmarshal([]byte(s), &l))
					kinds[l.Result.Type]++
				}
				if kinds["succeeded"]+kinds["canceled"] != lines || kinds["canceled"] != messages.Counts.Cancelled {
					t.Errorf("of %d messages there are %v, and counted %+v", lines, kinds, messages.Counts)
				}
			})
		})
	}
}

// messages submits a message batch.
func (o *office) messages(c *clerk, tenant sluice.TenantID, lines int) jobs.Job {
	o.t.Helper()
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, `{"custom_id":"m%d","params":{"model":"fast","max_tokens":5,"messages":[{"role":"user","content":"u%[1]d"}]}}`+"\n", i+1)
	}
	j, err := c.Submit(o.t.Context(), jobs.NewJob{
		Kind: jobs.MessageBatch, Caller: sluice.Principal{Tenant: tenant, Project: "web", Key: "k"}, Endpoint: "/v1/messages", Op: wire.Messages, Input: o.put(c, tenant, b.String()), Window: time.Hour,
	})
	o.must(err)
	return j
}

// A batch that is cancelled while its input is checked has no lines, however many of them
// were known; one whose client waits for the check cannot be cancelled before that is done.
func TestCancelDuringTheCheck(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		c, other := o.desk(jobs.Bounds{TenantLines: 3000}), o.desk(jobs.Bounds{})
		puts := 0
		var refused error
		c.see.failing(func(name string, _ bool) error {
			if name != "PutLines" {
				return nil
			}
			if puts++; puts != 2 {
				return nil
			}
			open, err := o.db.OpenJobs(t.Context(), 9)
			o.must(err)
			for _, j := range open {
				if _, err := other.Cancel(t.Context(), "acme", j.ID); err != nil {
					refused = err
				}
			}
			return nil
		})
		c.Start(t.Context())
		o.t.Cleanup(func() { c.Close(t.Context()) })
		j := o.until(o.batch(c, "acme", chatLines(2500), time.Hour).ID, ended)
		if j.State != jobs.Cancelled || j.Counts != (jobs.Counts{}) || j.Output != "" || j.Errors != "" || refused != nil || len(o.ran) != 0 {
			t.Errorf("is %s with %+v, output %q, errors %q, %v; %d ran", j.State, j.Counts, j.Output, j.Errors, refused, len(o.ran))
		}
		puts = 0
		m := o.messages(c, "acme", 2500) // for which there is room only if the other's lines are given back
		if m.State != jobs.InProgress || sluice.AsError(refused).Kind != sluice.KindConflict {
			t.Errorf("is %s, and to cancel it was %v", m.State, refused)
		}
		_, err := c.Cancel(t.Context(), "acme", m.ID)
		o.must(err)
		if m = o.until(m.ID, ended); m.Counts.Total != 2500 || m.Counts.Cancelled+m.Counts.Succeeded != 2500 {
			t.Errorf("%+v", m.Counts)
		}
	})
}
