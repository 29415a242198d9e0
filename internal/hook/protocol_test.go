package hook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"sluice"
	"sluice/internal/egress"
	"sluice/internal/hook"
	"sluice/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	at, sum, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Sluice-Signature"), "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte(os.Getenv("MODERATION_SECRET")))
	fmt.Fprintf(mac, "%s.%s", at, body)
	if err != nil || !hmac.Equal([]byte(sum), []byte(hex.EncodeToString(mac.Sum(nil)))) {
		http.Error(w, "not signed", http.StatusForbidden)
		return
	}
	var call struct{ Texts []struct{ Text string } }
	if err := json.Unmarshal(body, &call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, t := range call.Texts {
		if strings.Contains(t.Text, "the launch code") {
			io.WriteString(w, `{"verdict":"refuse","why":"launch-code","message":"we do not talk about that"}`)
			return
		}
	}
	io.WriteString(w, `{"verdict":"allow"}`)
}

// The service of the documentation is the one above, and does what it says: over a real
// connection, with the right secret and a wrong one.
func TestExampleService(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile("protocol_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```go\n")
	code, _, _ := strings.Cut(rest, "```")
	if code == "" || !strings.Contains(string(here), code) {
		t.Errorf("the service in docs/operations/hooks.md is not the one that is tested here")
	}
	t.Setenv("MODERATION_SECRET", "whsec")
	srv := httptest.NewServer(http.HandlerFunc(check))
	defer srv.Close()
	x := hook.New(hook.Options{Dialer: egress.New(egress.Options{})})
	defer x.Close()
	x.Use([]hook.Spec{
		{Name: "moderation", URL: srv.URL, Secret: sluice.NewSecret("whsec"), At: 1 << hook.AtRequest},
		{Name: "forged", URL: srv.URL, Secret: sluice.NewSecret("guess"), At: 1 << hook.AtRequest},
	})
	for _, tt := range []struct {
		hook, text string
		reason     sluice.Reason
		why        string
	}{
		{"moderation", "hello", sluice.ReasonNone, ""},
		{"moderation", "what is the launch code?", sluice.HookRefused, "launch-code"},
		{"forged", "hello", sluice.HookFailed, "status"},
	} {
		run := x.Begin(hook.Subject{ID: "req_1", Tenant: "acme", Op: wire.Chat}, []string{tt.hook})
		_, err := run.Request(t.Context(), []byte(`{"model":"m","messages":[{"role":"user","content":"`+tt.text+`"}]}`))
		got := sluice.ReasonNone
		if err != nil {
			got = sluice.AsError(err).Reason
		}
		if d := run.Decisions(); got != tt.reason || len(d) != 1 || d[0].Why != tt.why {
			t.Errorf("%s of %q: %v, %+v", tt.hook, tt.text, err, d)
		}
	}
}

// The calls and answers of the documentation are those of the protocol.
func TestDocumentedMessages(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(doc), "```json\n")
	if len(blocks) != 3 {
		t.Fatalf("%d messages", len(blocks)-1)
	}
	for i, to := range []any{&hook.Question{}, &hook.Answer{}} {
		text, _, _ := strings.Cut(blocks[i+1], "```")
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(to); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, name := range hook.KindNames() {
		if !strings.Contains(string(doc), "| `"+name+"` |") {
			t.Errorf("kind %s is not in the table", name)
		}
	}
}

// A bounded caller: an answer that is too long, one that is no verdict, a redirect, nobody
// there, a private address by a public name.
func TestCallsThatBringNoVerdict(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			io.WriteString(w, `{"verdict":"allow"`+strings.Repeat(" ", 1<<20)+`}`)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/version":
			io.WriteString(w, `{"verdict":"allow","version":2}`)
		case "/word":
			io.WriteString(w, `{"verdict":"allow","why":"I am Bob"}`)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"verdict"`)
		default:
			io.WriteString(w, `{"verdict":"allow"}`)
		}
	}))
	defer srv.Close()
	x := hook.New(hook.Options{Dialer: egress.New(egress.Options{})})
	defer x.Close()
	for _, tt := range []struct {
		path, why string
		max       int64
	}{
		{srv.URL + "/ok", "", 0},
		{srv.URL + "/ok", "too_large", 64},
		{srv.URL + "/long", "too_large", 1 << 12},
		{srv.URL + "/moved", "status", 0},
		{srv.URL + "/version", "malformed", 0},
		{srv.URL + "/word", "malformed", 0},
		{srv.URL + "/cut", "connect", 0},
		{"http://127.0.0.1:1/", "connect", 0},
		{"http://169.254.169.254/", "connect", 0},
	} {
		x.Use([]hook.Spec{{Name: "h", URL: tt.path, Secret: sluice.NewSecret("s"), At: 1 << hook.AtRequest, MaxBody: tt.max}})
		run := x.Begin(hook.Subject{ID: "req_1", Op: wire.Chat}, []string{"h"})
		_, err := run.Request(t.Context(), []byte(`{"model":"m","messages":[{"role":"user","content":"secret words"}]}`))
		if d := run.Decisions(); len(d) != 1 || d[0].Why != tt.why || (err == nil) != (tt.why == "") {
			t.Errorf("%s: %v, %+v, want %q", tt.path, err, d, tt.why)
		}
		if err != nil && strings.Contains(err.Error(), "secret words") {
			t.Errorf("the text is in %v", err)
		}
	}
}
