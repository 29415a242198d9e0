package batch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/jobs"
)

// A file is what was uploaded, and gone when it is deleted.
func TestFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	content := chat("a", "hi")
	kind, body := form(part{"file", "in.jsonl", content}, part{"expires_after[anchor]", "", "created_at"}, part{"expires_after[seconds]", "", "3600"}, part{"purpose", "", "batch"})
	f := as[file](t, r.do(acme, "POST", "/v1/files", body, "Content-Type", kind), 200)
	if f.Object != "file" || f.Name != "in.jsonl" || f.Purpose != "batch" || f.Bytes != int64(len(content)) || f.Expires == nil || *f.Expires-f.Created != 3600 || f.Status != "processed" {
		t.Errorf("got %+v", f)
	}
	at := "/v1/files/" + string(f.ID)
	if g := as[file](t, r.do(acme, "GET", at, nil), 200); g.ID != f.ID || g.Bytes != f.Bytes {
		t.Errorf("got %+v", g)
	}
	if g := r.do(acme, "GET", at+"/content", nil); g.body != content || g.header.Get("Content-Length") != fmt.Sprint(len(content)) {
		t.Errorf("the content is %q, %v", g.body, g.header)
	}
	second := r.upload(acme, content)
	page := as[list[file]](t, r.do(acme, "GET", "/v1/files?limit=1&purpose=batch", nil), 200)
	if len(page.Data) != 1 || page.Data[0].ID != second.ID || !page.More || *page.Last != string(second.ID) {
		t.Errorf("the newest first: got %+v", page)
	}
	page = as[list[file]](t, r.do(acme, "GET", "/v1/files?after="+string(second.ID), nil), 200)
	if len(page.Data) != 1 || page.Data[0].ID != f.ID || page.More {
		t.Errorf("the page after: got %+v", page)
	}
	if page = as[list[file]](t, r.do(acme, "GET", "/v1/files?order=asc", nil), 200); len(page.Data) != 2 || page.Data[0].ID != f.ID {
		t.Errorf("the oldest first: got %+v", page)
	}
	if g := r.do(acme, "DELETE", at, nil); g.status != 200 || !strings.Contains(g.body, `"deleted":true`) {
		t.Errorf("got %+v", g)
	}
	if g := r.do(acme, "GET", at, nil); g.status != 404 {
		t.Errorf("deleted: got %+v", g)
	}
}

// What is wrong with an upload is told by its field, and nothing of it is left.
func TestUploadIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{FileBytes: 1000})
	ok, file := part{"purpose", "", "batch"}, part{"file", "in.jsonl", "{}"}
	for _, tt := range []struct {
		name  string
		parts []part
		want  string
	}{
		{"no file", []part{ok}, "file is missing"},
		{"no purpose", []part{file}, "purpose is missing"},
		{"empty", []part{ok, {"file", "in.jsonl", ""}}, "file is empty"},
		{"no name", []part{ok, {"file", "", "{}"}}, "file has no usable name"},
		{"a name that is too long", []part{ok, {"file", strings.Repeat("x", 300), "{}"}}, "file has no usable name"},
		{"another purpose", []part{{"purpose", "", "vision"}, file}, `purpose is \"vision\"`},
		{"twice", []part{ok, file, file}, "file is given twice"},
		{"unknown field", []part{ok, file, {"colour", "", "red"}}, "colour is no field"},
		{"a field too large", []part{{"purpose", "", strings.Repeat("x", 5000)}}, "purpose has more than"},
		{"an expiry of another anchor", []part{ok, file, {"expires_after[anchor]", "", "now"}, {"expires_after[seconds]", "", "3600"}}, "expires_after.anchor"},
		{"an expiry too short", []part{ok, file, {"expires_after", "", `{"anchor":"created_at","seconds":60}`}}, "expires_after.seconds is 60"},
		{"an expiry that is none", []part{ok, file, {"expires_after[seconds]", "", "soon"}}, `expires_after.seconds is \"soon\"`},
		{"too large", []part{ok, {"file", "in.jsonl", strings.Repeat("x", 1001)}}, "larger than 1000 bytes"},
	} {
		kind, body := form(tt.parts...)
		if g := r.do(acme, "POST", "/v1/files", body, "Content-Type", kind); g.status != 400 && g.status != 413 || !strings.Contains(g.body, tt.want) {
			t.Errorf("%s: got %d %s, want %q", tt.name, g.status, g.body, tt.want)
		}
	}
	kind, body := form(ok, file)
	for name, g := range map[string]got{
		"no form":         r.do(acme, "POST", "/v1/files", strings.NewReader("{}"), "Content-Type", "application/json"),
		"cut short":       r.do(acme, "POST", "/v1/files", strings.NewReader(body.String()[:body.Len()-20]), "Content-Type", kind),
		"another parting": r.do(acme, "POST", "/v1/files", body, "Content-Type", "multipart/form-data; boundary=x"),
	} {
		if g.status != 400 || !strings.Contains(g.body, "form") {
			t.Errorf("%s: got %d %s", name, g.status, g.body)
		}
	}
	if page := as[list[any]](t, r.do(acme, "GET", "/v1/files", nil), 200); len(page.Data) != 0 {
		t.Errorf("left over: %+v", page)
	}
}

// A batch goes from its file to its answers and its errors, and says so on the way.
func TestBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	f := r.upload(acme, chat("a", "hi")+chat("b", "fail")+chat("c", "hi"))
	made := as[batch](t, r.do(acme, "POST", "/v1/batches", create(f.ID, `,"metadata":{"k":"v"},"output_expires_after":{"anchor":"created_at","seconds":7200}`)), 200)
	if made.Object != "batch" || made.Window != "24h" || made.Input != f.ID || made.Metadata["k"] != "v" || *made.Expires-made.Created != 86400 || made.Output != nil || made.Errors != nil {
		t.Errorf("made %+v", made)
	}
	b := r.finished(acme, made.ID)
	if b.Status != jobs.Completed || b.Counts != (counts{3, 2, 1}) || b.Completed == nil || b.InProgress == nil || b.Finalizing == nil || b.Failed != nil || b.Cancelled != nil || b.Model == nil || *b.Model != "m" {
		t.Errorf("ended as %+v", b)
	}
	if u := b.Usage; u == nil || u.Input != 14 || u.Output != 8 || u.InputDetails.Cached != 4 || u.OutputDetails.Reasoning != 2 || u.Total != 22 {
		t.Errorf("usage %+v", u)
	}
	out := r.do(acme, "GET", "/v1/files/"+*b.Output+"/content", nil).body
	if strings.Count(out, "\n") != 2 || !strings.Contains(out, `"custom_id":"a"`) || !strings.Contains(out, `"status_code":200`) || strings.Contains(out, `"custom_id":"b"`) {
		t.Errorf("output %s", out)
	}
	bad := r.do(acme, "GET", "/v1/files/"+*b.ErrorFile+"/content", nil).body
	if strings.Count(bad, "\n") != 1 || !strings.Contains(bad, `"custom_id":"b"`) || !strings.Contains(bad, `"status_code":400`) || !strings.Contains(bad, "messages are wrong") {
		t.Errorf("errors %s", bad)
	}
	if o := as[file](t, r.do(acme, "GET", "/v1/files/"+*b.Output, nil), 200); o.Purpose != "batch_output" || o.Expires == nil || *o.Expires-*b.Completed > 7201 {
		t.Errorf("output file %+v", o)
	}
	next := as[batch](t, r.do(acme, "POST", "/v1/batches", create(f.ID, "")), 200)
	page := as[list[batch]](t, r.do(acme, "GET", "/v1/batches?limit=1", nil), 200)
	if len(page.Data) != 1 || page.Data[0].ID != next.ID || !page.More {
		t.Errorf("list %+v", page)
	}
	if page = as[list[batch]](t, r.do(acme, "GET", "/v1/batches?after="+*page.Last, nil), 200); len(page.Data) != 1 || page.Data[0].ID != made.ID {
		t.Errorf("the page after %+v", page)
	}
	r.finished(acme, next.ID)
	if g := r.do(acme, "POST", "/v1/batches/"+string(next.ID)+"/cancel", nil); g.status != 409 {
		t.Errorf("cancelled after its end: %+v", g)
	}
}

// A file that is wrong in any way fails the batch and says where.
func TestWrongLinesAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{LineBytes: 2000, JobLines: 20})
	good := chat("good", "hi")
	cases := []struct {
		name, content string
		line          int
		code, param   string
	}{
		{"no JSON", good + "nonsense\n", 2, "invalid_json_line", ""},
		{"a list", good + "[]\n", 2, "invalid_json_line", ""},
		{"cut short, at the end", good + `{"custom_id":"b"`, 2, "invalid_json_line", ""},
		{"behind blank lines", "\n\r\n" + good + "nonsense\n", 4, "invalid_json_line", ""},
		{"no custom id", strings.Replace(good, `"custom_id":"good",`, "", 1), 1, "missing_required_parameter", "custom_id"},
		{"the same custom id", good + chat("b", "hi") + good, 3, "duplicate_custom_id", "custom_id"},
		{"another method", good + strings.Replace(chat("b", "x"), "POST", "GET", 1), 2, "invalid_method", "method"},
		{"another endpoint", good + strings.Replace(chat("b", "x"), "/v1/chat/completions", "/v1/embeddings", 1), 2, "invalid_url", "url"},
		{"no body", `{"custom_id":"a","method":"POST","url":"/v1/chat/completions"}` + "\n", 1, "missing_required_parameter", "body"},
		{"another model", good + strings.Replace(chat("b", "x"), `"model":"m"`, `"model":"n"`, 1), 2, "model_not_found", "body.model"},
		{"a stream", good + strings.Replace(chat("b", "x"), `"model":"m"`, `"model":"m","stream":true`, 1), 2, "invalid_request", "body.stream"},
		{"a name twice", good + strings.Replace(chat("b", "x"), `"model":"m"`, `"model":"m","model":"m"`, 1), 2, "invalid_json_line", ""},
		{"too large", good + chat("b", strings.Repeat("x", 2000)), 2, "request_too_large", ""},
		{"blank", "\n\n", 0, "empty_file", ""},
	}
	made := make([]batch, len(cases))
	for i, tt := range cases {
		made[i] = as[batch](t, r.do(acme, "POST", "/v1/batches", create(r.upload(acme, tt.content).ID, "")), 200)
	}
	for i, tt := range cases {
		b := r.finished(acme, made[i].ID)
		if b.Status != jobs.Failed || b.Failed == nil || b.Errors == nil || len(b.Errors.Data) != 1 {
			t.Errorf("%s: got %s, %+v", tt.name, b.Status, b.Errors)
			continue
		}
		p := b.Errors.Data[0]
		line, param := 0, ""
		if p.Line != nil {
			line = *p.Line
		}
		if p.Param != nil {
			param = *p.Param
		}
		if line != tt.line || p.Code != tt.code || param != tt.param || p.Message == "" {
			t.Errorf("%s: got line %d, %s, %q: %s; want %d, %s, %q", tt.name, line, p.Code, param, p.Message, tt.line, tt.code, tt.param)
		}
	}
	var many strings.Builder
	for i := range 21 {
		many.WriteString(chat(fmt.Sprint(i), "x"))
	}
	last := as[batch](t, r.do(acme, "POST", "/v1/batches", create(r.upload(acme, many.String()).ID, "")), 200)
	if b := r.finished(acme, last.ID); b.Errors == nil || b.Errors.Data[0].Code != "too_many_tasks" || *b.Errors.Data[0].Line != 21 {
		t.Errorf("too many lines: %+v", b.Errors)
	}
}

// What is wrong with the asking is told at once.
func TestBatchIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	f := string(r.upload(acme, chat("a", "hi")).ID)
	for _, tt := range []struct{ name, body, want string }{
		{"no JSON", `nonsense`, "is no JSON"},
		{"cut short", `{"endpoint":`, "is no JSON"},
		{"behind it", `{} {}`, "is no JSON"},
		{"a list", `[]`, "no JSON object as this operation takes it"},
		{"unknown field", `{"colour":1}`, "colour is no field"},
		{"another case", `{"Endpoint":"/v1/chat/completions"}`, "Endpoint is no field"},
		{"a name twice", `{"endpoint":"/v1/responses","endpoint":"/v1/responses"}`, "is no JSON"},
		{"a number", `{"endpoint":5}`, "endpoint is a number"},
		{"another endpoint", `{"endpoint":"/v1/videos"}`, `endpoint is \"/v1/videos\"`},
		{"another window", `{"endpoint":"/v1/chat/completions","completion_window":"soon"}`, "completion_window is"},
		{"a window too long", `{"endpoint":"/v1/chat/completions","completion_window":"99d","input_file_id":"` + f + `"}`, "completion_window is"},
		{"metadata too many", `{"endpoint":"/v1/chat/completions","completion_window":"24h","input_file_id":"` + f + `","metadata":{"":""}}`, "metadata has"},
	} {
		if g := r.do(acme, "POST", "/v1/batches", strings.NewReader(tt.body)); g.status != 400 || !strings.Contains(g.body, tt.want) {
			t.Errorf("%s: got %d %s, want %q", tt.name, g.status, g.body, tt.want)
		}
	}
	for path, want := range map[string]string{
		"/v1/batches?limit=0": "limit is", "/v1/batches?limit=101": "limit is", "/v1/batches?befor=x": "befor is no parameter", "/v1/batches?after=%00": "after is no id",
		"/v1/batches?after=a&after=b": "after is given twice", "/v1/files?order=up": "order is", "/v1/files?purpose=vision": "purpose is", "/v1/messages/batches?limit=1001": "limit is",
		"/v1/messages/batches?after_id=a&before_id=b": "and before_id are both given",
	} {
		if g := r.do(acme, "GET", path, nil); g.status != 400 || !strings.Contains(g.body, want) {
			t.Errorf("%s: got %d %s, want %q", path, g.status, g.body, want)
		}
	}
}

// A batch that is cancelled ends as that, with every line told.
func TestBatchIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{CancelGrace: 100 * time.Millisecond})
	f := r.upload(acme, chat("a", "hi")+chat("b", "wait")+chat("c", "wait"))
	made := as[batch](t, r.do(acme, "POST", "/v1/batches", create(f.ID, "")), 200)
	r.until("a line runs", func() bool {
		return as[batch](t, r.do(acme, "GET", "/v1/batches/"+string(made.ID), nil), 200).Counts.Completed == 1
	})
	if b := as[batch](t, r.do(acme, "POST", "/v1/batches/"+string(made.ID)+"/cancel", nil), 200); b.Status != jobs.Cancelling || b.Cancelling == nil {
		t.Errorf("got %+v", b)
	}
	b := r.finished(acme, made.ID)
	if b.Status != jobs.Cancelled || b.Cancelled == nil || b.Counts != (counts{3, 1, 2}) || b.Output == nil {
		t.Errorf("ended as %+v", b)
	}
	if bad := r.do(acme, "GET", "/v1/files/"+*b.ErrorFile+"/content", nil).body; strings.Count(bad, `"batch_cancelled"`) != 2 {
		t.Errorf("errors %s", bad)
	}
}

// cC3, as its client sees it: of a hundred lines ten fail, two workers are at them, and each
// line is in one of the two files, once.
func TestCase_cC3_EachLineIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{Lines: 7})
	r.second()
	var lines strings.Builder
	for i := range 100 {
		text := "hi"
		if i%10 == 3 {
			text = "fail"
		}
		lines.WriteString(chat(fmt.Sprintf("line-%03d", i), text))
	}
	made := as[batch](t, r.do(acme, "POST", "/v1/batches", create(r.upload(acme, lines.String()).ID, "")), 200)
	b := r.finished(acme, made.ID)
	if b.Status != jobs.Completed || b.Counts != (counts{100, 90, 10}) || b.Usage.Total != 90*11 || b.Sluice.Cost != (90*1000*sluice.Nano(1)).String() {
		t.Errorf("ended as %+v", b)
	}
	out := r.do(acme, "GET", "/v1/files/"+*b.Output+"/content", nil).body
	bad := r.do(acme, "GET", "/v1/files/"+*b.ErrorFile+"/content", nil).body
	for i := range 100 {
		id := fmt.Sprintf(`"custom_id":"line-%03d"`, i)
		want := [2]int{1, 0}
		if i%10 == 3 {
			want = [2]int{0, 1}
		}
		if got := [2]int{strings.Count(out, id), strings.Count(bad, id)}; got != want {
			t.Errorf("%s: in the files %v times, want %v", id, got, want)
		}
	}
}

// A batch is no step of a run: what names one is refused before anything is kept.
func TestBatchIsOfNoRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	in := r.upload(acme, chat("a", "hi"))
	for _, name := range []string{"Sluice-Run", "Sluice-Run-Limits"} {
		if g := r.do(acme, "POST", "/v1/batches", create(in.ID, ""), name, "x"); g.status != 400 || !strings.Contains(g.body, strings.ToLower(name)) {
			t.Errorf("%s: got %+v", name, g)
		}
		if g := r.do(acme, "POST", "/v1/messages/batches", strings.NewReader(`{"requests":[]}`), name, "x"); g.status != 400 || !strings.Contains(g.body, strings.ToLower(name)) {
			t.Errorf("%s: got %+v", name, g)
		}
	}
	if page := as[list[any]](t, r.do(acme, "GET", "/v1/batches", nil), 200); len(page.Data) != 0 {
		t.Errorf("left over: %+v", page)
	}
}

// Who sees the first mistakes is told how many more there are.
func TestFurtherMistakesAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	in := r.upload(acme, strings.Repeat("{\n", jobs.MaxProblems+7))
	b := r.finished(acme, as[batch](t, r.do(acme, "POST", "/v1/batches", create(in.ID, "")), 200).ID)
	if b.Errors == nil || len(b.Errors.Data) != jobs.MaxProblems || b.Errors.More != 7 {
		t.Errorf("got %+v", b.Errors)
	}
}
