package batch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/jobs"
)

func message(id, text string) string {
	return fmt.Sprintf(`{"custom_id":%q, "params":{"model":"m","max_tokens":5,"messages":[{"role":"user","content":%q}]}}`, id, text)
}

func messages(requests ...string) *strings.Reader {
	return strings.NewReader("{\n \"requests\": [" + strings.Join(requests, ",\n") + "]\n}\n")
}

func TestMessageBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	made := as[messageBatch](t, r.do(acme, "POST", "/v1/messages/batches", messages(message("a", "hi"), message("b", "fail"), `{"custom_id":"c","params":{"model":"m"}}`)), 200)
	if made.Type != "message_batch" || made.Status != "in_progress" || made.Counts != (messageCounts{Processing: 3}) || made.Results != nil || made.Ended != nil {
		t.Errorf("made %+v", made)
	}
	created, _ := time.Parse(time.RFC3339, *made.Created)
	if expires, err := time.Parse(time.RFC3339, *made.Expires); err != nil || expires.Sub(created) != 24*time.Hour {
		t.Errorf("from %s to %s, %v", *made.Created, *made.Expires, err)
	}
	at := "/v1/messages/batches/" + string(made.ID)
	if g := r.do(acme, "DELETE", at, nil); g.status != 400 && g.status != 200 {
		t.Errorf("deleted while it runs: %+v", g)
	}
	b := r.endedMessages(at)
	if b.Counts != (messageCounts{Succeeded: 1, Errored: 2}) || b.Ended == nil || b.Results == nil || *b.Results != at+"/results" || b.Archived != nil {
		t.Errorf("ended as %+v", b)
	}
	g := r.do(acme, "GET", at+"/results", nil)
	for _, want := range []string{`{"custom_id":"a","result":{"type":"succeeded","message":{"id":"x"`, `{"custom_id":"b","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error"`, `{"custom_id":"c","result":{"type":"errored"`} {
		if !strings.Contains(g.body, want) {
			t.Errorf("the results have no %s: %s", want, g.body)
		}
	}
	if strings.Count(g.body, "\n") != 3 || g.header.Get("Content-Type") != "application/x-jsonl" {
		t.Errorf("results %v %q", g.header, g.body)
	}
	second := as[messageBatch](t, r.do(acme, "POST", "/v1/messages/batches", messages(message("a", "hi"))), 200)
	type page struct {
		Data  []messageBatch
		More  bool   `json:"has_more"`
		First string `json:"first_id"`
		Last  string `json:"last_id"`
	}
	if p := as[page](t, r.do(acme, "GET", "/v1/messages/batches?limit=1", nil), 200); len(p.Data) != 1 || p.Data[0].ID != second.ID || !p.More || p.Last != string(second.ID) || p.First != p.Last {
		t.Errorf("list %+v", p)
	}
	if p := as[page](t, r.do(acme, "GET", "/v1/messages/batches?after_id="+string(second.ID), nil), 200); len(p.Data) != 1 || p.Data[0].ID != made.ID {
		t.Errorf("the page after %+v", p)
	}
	if p := as[page](t, r.do(acme, "GET", "/v1/messages/batches?before_id="+string(made.ID), nil), 200); len(p.Data) != 1 || p.Data[0].ID != second.ID {
		t.Errorf("the page before %+v", p)
	}
	if g := r.do(acme, "DELETE", at, nil); g.status != 200 || !strings.Contains(g.body, `"message_batch_deleted"`) {
		t.Errorf("deleted: %+v", g)
	}
	if g := r.do(acme, "GET", at+"/results", nil); g.status != 404 {
		t.Errorf("gone: %+v", g)
	}
	r.endedMessages("/v1/messages/batches/" + string(second.ID))
}

func (r *rig) endedMessages(at string) (b messageBatch) {
	r.t.Helper()
	r.until("it ends", func() bool {
		b = as[messageBatch](r.t, r.do(acme, "GET", at, nil), 200)
		return b.Status == "ended"
	})
	return b
}

func TestMessageBatchIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{CancelGrace: 100 * time.Millisecond})
	made := as[messageBatch](t, r.do(acme, "POST", "/v1/messages/batches", messages(message("a", "wait"), message("b", "wait"))), 200)
	at := "/v1/messages/batches/" + string(made.ID)
	if g := r.do(acme, "GET", at+"/results", nil); g.status != 400 || !strings.Contains(g.body, "no results yet") {
		t.Errorf("results before its end: %+v", g)
	}
	if g := r.do(acme, "DELETE", at, nil); g.status != 400 || !strings.Contains(g.body, "invalid_request_error") {
		t.Errorf("deleted while it runs: %+v", g)
	}
	if b := as[messageBatch](t, r.do(acme, "POST", at+"/cancel", nil), 200); b.Status != "canceling" || b.Cancelled == nil || b.Counts.Processing != 2 {
		t.Errorf("got %+v", b)
	}
	if b := r.endedMessages(at); b.Counts != (messageCounts{Canceled: 2}) {
		t.Errorf("ended as %+v", b)
	}
	if out := r.do(acme, "GET", at+"/results", nil).body; strings.Count(out, `"result":{"type":"canceled"}`) != 2 {
		t.Errorf("results %s", out)
	}
	if g := r.do(acme, "POST", at+"/cancel", nil); g.status != 400 {
		t.Errorf("cancelled after its end: %+v", g)
	}
}

// A body that is wrong in any way is refused, where it is wrong, and nothing of it is left.
func TestMessageBatchIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{LineBytes: 3000, JobLines: 3})
	one := message("a", "hi")
	for _, tt := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"empty", ``, 400, "no JSON"},
		{"no JSON", `nonsense`, 400, "no JSON"},
		{"a list", `[]`, 400, "no JSON object with requests"},
		{"no requests", `{}`, 400, "requests is empty"},
		{"none", `{"requests":[]}`, 400, "requests is empty"},
		{"no list", `{"requests":{}}`, 400, "requests is no list"},
		{"unknown field", `{"batch":1}`, 400, "batch is no field"},
		{"cut short", `{"requests":[` + one, 400, "is no JSON"},
		{"broken in one", `{"requests":[` + one + `,{"custom_id":"b",}]}`, 400, "requests.1"},
		{"a name twice", `{"requests":[{"custom_id":"b","custom_id":"c","params":{}}]}`, 400, "requests.0"},
		{"the list twice", `{"requests":[` + one + `],"requests":[` + one + `]}`, 400, "is no JSON"},
		{"behind it", `{"requests":[` + one + `]} {}`, 400, "no JSON object with requests, and nothing else"},
		{"no object", `{"requests":[1]}`, 400, "requests.0"},
		{"no custom id", `{"requests":[` + one + `,{"params":{}}]}`, 400, "requests.1.custom_id"},
		{"the same custom id", `{"requests":[` + one + `,` + one + `]}`, 400, "requests.1.custom_id"},
		{"no params", `{"requests":[{"custom_id":"b"}]}`, 400, "requests.0.params"},
		{"too large a request", `{"requests":[` + message("b", strings.Repeat("x", 4000)) + `]}`, 400, "more than 3000 bytes"},
	} {
		if g := r.do(acme, "POST", "/v1/messages/batches", strings.NewReader(tt.body)); g.status != tt.status || !strings.Contains(g.body, tt.want) || !strings.Contains(g.body, `"type":"error"`) {
			t.Errorf("%s: got %d %s, want %d %q", tt.name, g.status, g.body, tt.status, tt.want)
		}
	}
	if g := r.do(acme, "GET", "/v1/messages/batches", nil); !strings.Contains(g.body, `"data":[]`) || !strings.Contains(g.body, `"first_id":null`) {
		t.Errorf("left over: %s", g.body)
	}
	if page := as[list[any]](t, r.do(acme, "GET", "/v1/files", nil), 200); len(page.Data) != 0 {
		t.Errorf("left over: %+v", page)
	}
}
