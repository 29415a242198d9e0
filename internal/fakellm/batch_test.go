package fakellm

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"sluice/test/bubble"
)

// direct asks a server without a network.
func direct(t *testing.T, s *Server, method, path, kind, body string) (int, string) {
	t.Helper()
	w := &overheard{header: http.Header{}}
	r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("anthropic-version", "2023-06-01")
	r.RequestURI = path
	s.ServeHTTP(w, r)
	return w.status, w.body.String()
}

func field(t *testing.T, body, name string) string {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	s, _ := o[name].(string)
	return s
}

func form(t *testing.T, file string) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", "batch")
	part, err := w.CreateFormFile("file", "in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, file)
	w.Close()
	return w.FormDataContentType(), b.String()
}

// TestBatches takes a batch of each dialect to its end, its cancellation and its expiry.
func TestBatches(t *testing.T) {
	chat := func(id, model string) string {
		return `{"custom_id":"` + id + `","method":"POST","url":"/v1/chat/completions","body":{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}}` + "\n"
	}
	message := func(id, model string) string {
		return `{"custom_id":"` + id + `","params":{"model":"` + model + `","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}}`
	}
	const create = `{"endpoint":"/v1/chat/completions","completion_window":"24h","input_file_id":"`
	for _, tt := range []struct {
		name, fault  string
		cancel       bool
		status       string   // OpenAI's
		output, fail []string // in its files
		results      []string // Anthropic's
	}{
		{"served", "", false, "completed", []string{`"custom_id":"a"`, `"status_code":200`}, []string{`"custom_id":"b"`, `"status_code":503`}, []string{`"succeeded"`, `"errored"`, `"service_tier":"batch"`}},
		{"expires", "die-after=1", false, "expired", []string{`"custom_id":"a"`}, []string{`"code":"batch_expired"`}, []string{`"type":"expired"`}},
		{"cancelled", "hang-first", true, "cancelled", nil, []string{`"code":"batch_cancelled"`}, []string{`"type":"canceled"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s, err := New(Options{Instant: true, Script: &Script{Models: map[string][]Rule{"batch": {{Fault: tt.fault}}}}})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				kind, body := form(t, chat("a", "sim-small")+chat("b", "sim-small!status=503"))
				_, file := direct(t, s, "POST", "/v1/files", kind, body)
				_, made := direct(t, s, "POST", "/v1/batches", "application/json", create+field(t, file, "id")+`"}`)
				_, messages := direct(t, s, "POST", "/v1/messages/batches", "application/json", `{"requests":[`+message("a", "sim-small")+","+message("b", "sim-small!status=503")+`]}`)
				paths := []string{"/v1/batches/" + field(t, made, "id"), "/v1/messages/batches/" + field(t, messages, "id")}
				if tt.cancel {
					for _, p := range paths {
						direct(t, s, "POST", p+"/cancel", "", "")
					}
				}
				synctest.Wait()
				_, done := direct(t, s, "GET", paths[0], "", "")
				if got := field(t, done, "status"); got != tt.status {
					t.Errorf("the batch is %s, want %s: %s", got, tt.status, done)
				}
				for name, want := range map[string][]string{"output_file_id": tt.output, "error_file_id": tt.fail} {
					_, text := direct(t, s, "GET", "/v1/files/"+field(t, done, name)+"/content", "", "")
					for _, w := range want {
						if !strings.Contains(text, w) {
							t.Errorf("%s has no %s: %s", name, w, text)
						}
					}
				}
				_, results := direct(t, s, "GET", paths[1]+"/results", "", "")
				for _, w := range tt.results {
					if !strings.Contains(results, w) {
						t.Errorf("the results have no %s: %s", w, results)
					}
				}
				if strings.Count(results, "\n") != 2 {
					t.Errorf("want two results, got %s", results)
				}
			})
		})
	}
}

// TestBatchIsRefused when its file is another's or wrong, or by the script.
func TestBatchIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, err := New(Options{Instant: true, Script: &Script{Models: map[string][]Rule{"batch": {{Fault: "status=429", Count: 1}}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		kind, body := form(t, "{}\nnonsense\n")
		_, file := direct(t, s, "POST", "/v1/files", kind, body)
		create := `{"endpoint":"/v1/chat/completions","completion_window":"24h","input_file_id":"` + field(t, file, "id") + `"}`
		if status, _ := direct(t, s, "POST", "/v1/batches", "", create); status != 429 {
			t.Errorf("got %d, want the script's 429", status)
		}
		if status, _ := direct(t, s, "POST", "/v1/batches", "", strings.Replace(create, "file-", "file-0", 1)); status != 400 {
			t.Errorf("a file that is not there: got %d, want 400", status)
		}
		_, made := direct(t, s, "POST", "/v1/batches", "", create)
		synctest.Wait()
		if _, done := direct(t, s, "GET", "/v1/batches/"+field(t, made, "id"), "", ""); field(t, done, "status") != "failed" || !strings.Contains(done, `"line":2`) {
			t.Errorf("a wrong file gave %s", done)
		}
	})
}
