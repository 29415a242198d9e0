package jobs_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/wire"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every mistake of an input is told with its line, and nothing of it runs.
func TestProblems(t *testing.T) {
	t.Parallel()
	good := chatLine("ok", "x")
	body := func(b string) string {
		return `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + b + `}`
	}
	for _, c := range []struct {
		name, input string
		want        []string // line code param
	}{
		{"nothing", "", []string{"0 empty_file "}},
		{"blank lines", "\n \r\n\n", []string{"0 empty_file "}},
		{"no JSON", good + "\n{\"custom_id\":", []string{"2 invalid_json_line "}},
		{"a list", "[]", []string{"1 invalid_json_line "}},
		{"a member twice", `{"custom_id":"a","custom_id":"b"}`, []string{"1 invalid_json_line "}},
		{"nothing in it", "{}", []string{"1 missing_required_parameter custom_id", "1 missing_required_parameter method", "1 missing_required_parameter url", "1 missing_required_parameter body"}},
		{"no custom_id", strings.Replace(good, `"ok"`, `""`, 1), []string{"1 missing_required_parameter custom_id"}},
		{"a long custom_id", chatLine(strings.Repeat("i", 513), "x"), []string{"1 invalid_custom_id custom_id"}},
		{"the same custom_id", good + "\n\n" + good, []string{"3 duplicate_custom_id custom_id"}},
		{"method", strings.Replace(good, "POST", "GET", 1), []string{"1 invalid_method method"}},
		{"url", strings.Replace(good, "/v1/chat/completions", "/v1/embeddings", 1), []string{"1 invalid_url url"}},
		{"body", body(`"x"`), []string{"1 missing_required_parameter body"}},
		{"no model", body(`{"messages":[]}`), []string{"1 invalid_request body.model"}},
		{"an unknown model", body(`{"model":"slow","messages":[]}`), []string{"1 model_not_found body.model"}},
		{"two models", good + "\n" + body(`{"model":"large","messages":[]}`), []string{"2 mismatched_model body.model"}},
		{"a stream", body(`{"model":"fast","stream":true,"messages":[]}`), []string{"1 invalid_request body.stream"}},
		{"an engine's field", body(`{"model":"fast","priority":1,"messages":[]}`), []string{"1 invalid_request body.priority"}},
		{"too large", good + "\n" + chatLine("b", strings.Repeat("x", 5000)) + "\n" + strings.Replace(good, "POST", "PUT", 1), []string{"2 request_too_large ", "3 invalid_method method", "3 duplicate_custom_id custom_id"}},
		{"too many", chatLines(31), []string{"31 too_many_tasks "}},
		{"too many, the last without an end", strings.TrimSpace(chatLines(31)), []string{"31 too_many_tasks "}},
		{"a number as custom_id", `{"custom_id":5}`, []string{"1 invalid_json_line "}},
		{"byte order mark", "\ufeff" + good, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				o := newOffice(t)
				d := o.start(jobs.Bounds{LineBytes: 4096, JobLines: 30})
				j := o.until(o.batch(d, "acme", c.input, time.Hour).ID, ended)
				var got []string
				for _, p := range j.Problems {
					got = append(got, fmt.Sprintf("%d %s %s", p.Line, p.Code, p.Param))
					if strings.Contains(p.Message, "Go ") {
						t.Errorf("tells of what is the gateway's own: %s", p.Message)
					}
				}
				if len(c.want) == 2 { // of one line, in any order of its members
					if len(got) > 1 && got[0] > got[1] {
						got[0], got[1] = got[1], got[0]
					}
				}
				if diff := cmp.Diff(sorted(c.want), sorted(got)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				want := jobs.Failed
				if c.want == nil {
					want = jobs.Completed
				}
				if j.State != want || want == jobs.Failed && len(o.ran) > 0 {
					t.Errorf("is %s, and %d lines ran", j.State, len(o.ran))
				}
			})
		})
	}
}

func sorted(list []string) string {
	out := map[string]int{}
	for _, s := range list {
		out[s]++
	}
	return fmt.Sprint(out)
}

// A list of mistakes is bounded.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		d := o.start(jobs.Bounds{})
		j := o.until(o.batch(d, "acme", strings.Repeat("{\n", 500), time.Hour).ID, ended)
		if len(j.Problems) != jobs.MaxProblems || j.Dropped != 400 {
			t.Errorf("%d are told and %d are not", len(j.Problems), j.Dropped)
		}
	})
}

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		d := o.desk(jobs.Bounds{TenantJobs: 1})
		file := o.put(d, "acme", chatLines(1))
		who := sluice.Principal{Tenant: "acme", Key: "k"}
		for _, c := range []struct {
			name string
			n    jobs.NewJob
			kind sluice.Kind
			what string
		}{
			{"another tenant's file", jobs.NewJob{Caller: sluice.Principal{Tenant: "globex"}, Input: file}, sluice.KindNotFound, "file_id"},
			{"a window", jobs.NewJob{Caller: who, Input: file, Window: time.Second}, sluice.KindInvalid, "completion_window"},
			{"metadata", jobs.NewJob{Caller: who, Input: file, Metadata: map[string]string{"k": strings.Repeat("v", 513)}}, sluice.KindInvalid, "metadata.k"},
			{"headers", jobs.NewJob{Caller: who, Input: file, Terms: jobs.Terms{Header: map[string][]string{"X-A": {strings.Repeat("v", 20_000)}}}}, sluice.KindInvalid, "header"},
		} {
			_, err := d.Submit(t.Context(), c.n)
			if e := sluice.AsError(err); e.Kind != c.kind || e.Param != c.what {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		n := jobs.NewJob{Caller: who, Input: file, Op: wire.Chat, Endpoint: "/v1/chat/completions", Terms: jobs.Terms{Header: map[string][]string{"Authorization": {"Bearer s3cret"}, "Anthropic-Beta": {"x"}}}}
		j, err := d.Submit(t.Context(), n)
		o.must(err)
		if got := o.job(j.ID).Terms.Header; len(got) != 1 || got["Anthropic-Beta"] == nil {
			t.Errorf("kept the headers %v", got)
		}
		if _, err := d.Submit(t.Context(), n); sluice.AsError(err).Kind != sluice.KindRateLimited {
			t.Errorf("a job beyond the bound is %v", err)
		}
		if err := d.DeleteFile(t.Context(), "acme", file); sluice.AsError(err).Kind != sluice.KindConflict {
			t.Errorf("its input is deleted: %v", err)
		}
	})
}

// env is a size, from the environment.
func env(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: write a whole number from 1", name, v)
	}
	return n
}

// A large input is taken, checked, run and given back in little memory. With
// SLUICE_JOBS_LINES=50000 it is the largest that there may be: 200 MB.
func TestMemory(t *testing.T) {
	lines := env(t, "SLUICE_JOBS_LINES", 300)
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.took, o.unkept = 10*time.Millisecond, true
		d := o.start(jobs.Bounds{Lines: 64, PerTenant: 64})
		synctest.Wait()
		base := heap()
		most, samples := uint64(0), 0
		look := func() {
			most = max(most, heap())
			samples++
		}
		w, err := d.Create(t.Context(), jobs.NewFile{Tenant: "acme", Purpose: jobs.PurposeBatch})
		o.must(err)
		pad := strings.Repeat("all work and no play ", 4000/21)
		for i := range lines {
			o.must(w.Write(t.Context(), []byte(chatLine(fmt.Sprint("c", i), fmt.Sprint("t", i, " ", pad))+"\n")))
			if i%(1+lines/20) == 0 {
				look()
			}
		}
		f, err := w.Commit(t.Context())
		o.must(err)
		j, err := d.Submit(t.Context(), jobs.NewJob{
			Kind: jobs.OpenAIBatch, Caller: sluice.Principal{Tenant: "acme", Key: "k"}, Endpoint: "/v1/chat/completions", Op: wire.Chat, Input: f.ID, Window: 24 * time.Hour,
		})
		o.must(err)
		for !o.job(j.ID).State.Ended() {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			o.mu.Lock()
			clear(o.ran) // it is the test's own
			o.mu.Unlock()
			look()
		}
		done := o.job(j.ID)
		if done.State != jobs.Completed || done.Counts.Succeeded != lines {
			t.Errorf("is %s with %+v", done.State, done.Counts)
		}
		r, err := d.Open(t.Context(), "acme", done.Output)
		o.must(err)
		read := counter(0)
		o.must(r.Copy(t.Context(), &read))
		look()
		t.Logf("%d lines, %d bytes in, %d out: the heap grew from %d to %d KiB at most (%d samples)", lines, f.Bytes, read, base>>10, most>>10, samples)
		if grown := int64(most) - int64(base); grown > 48<<20 {
			t.Errorf("the heap grew by %d MiB", grown>>20)
		}
	})
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// heap is what is alive.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
