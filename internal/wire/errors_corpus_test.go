package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"sluice"
)

// toldError is an error as a client gets it.
type toldError struct {
	Dialect Dialect           `json:"dialect"`
	Kind    string            `json:"kind"` // answer, or event of a stream
	Status  int               `json:"status,omitempty"`
	Header  map[string]string `json:"header,omitempty"`
	Body    json.RawMessage   `json:"body"`
}

// errorsOf are errors of every kind with every reason, bare and with all that an error can
// say.
func errorsOf() (out []*sluice.Error) {
	refusal := &sluice.Refusal{
		Scope: sluice.ScopeTenant, ID: "acme", Limit: sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: int64(sluice.Dollar)},
		Requested: 1, Used: 2, Held: 3, Reset: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
	}
	for kind := range sluice.Kind(sluice.NumKinds) {
		for reason := range sluice.Reason(sluice.NumReasons) {
			bare := &sluice.Error{Kind: kind, Reason: reason, Msg: "it is so"}
			full := &sluice.Error{Kind: kind, Reason: reason, Param: "messages[0].content", Msg: "is \"so\"\n<&>", Hint: "mend it", RetryAfter: 90 * time.Second, Refusal: refusal}
			out = append(out, bare, full)
		}
	}
	return out
}

// TestErrorCorpus makes an answer and an event of every error in every dialect, which
// must have a message for its reader and a status that is an error's. Where
// SLUICE_ERROR_CORPUS names a file they are written there, one a line: test/sdk holds
// them to the official clients' own types.
func TestErrorCorpus(t *testing.T) {
	var out bytes.Buffer
	write := json.NewEncoder(&out)
	n := 0
	tell := func(e toldError) {
		var o struct {
			Error struct{ Message string }
			Text  string `json:"message"`
		}
		if err := json.Unmarshal(e.Body, &o); err != nil || o.Error.Message == "" && o.Text == "" || e.Kind == "answer" && e.Status < 400 {
			t.Fatalf("%s %s: %d %s, %v", e.Dialect, e.Kind, e.Status, e.Body, err)
		}
		if err := write.Encode(e); err != nil {
			t.Fatal(err)
		}
		n++
	}
	for i, e := range errorsOf() {
		for _, d := range []Dialect{OpenAI, Anthropic, Gemini} {
			status, header, body := Error(d, e, "req_1", ErrorOptions{Budget402: i%4 == 1})
			told := toldError{Dialect: d, Kind: "answer", Status: status, Header: map[string]string{}, Body: body}
			for name := range header {
				told.Header[name] = header.Get(name)
			}
			tell(told)
			tell(toldError{Dialect: d, Kind: "event", Body: dataOf(t, ErrorEvent(d, e, "req_1"))})
		}
		tell(toldError{Dialect: OpenAI, Kind: "response event", Body: dataOf(t, ResponsesErrorEvent(e, "req_1", 7))})
	}
	if want := 2 * sluice.NumKinds * sluice.NumReasons * 7; n != want {
		t.Errorf("%d errors, want %d", n, want)
	}
	if path := os.Getenv("SLUICE_ERROR_CORPUS"); path != "" {
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// dataOf is the data of the one event that b is.
func dataOf(t *testing.T, b []byte) []byte {
	t.Helper()
	_, data, ok := bytes.Cut(b, []byte("data: "))
	data, rest, ended := bytes.Cut(data, []byte("\n\n"))
	if !ok || !ended || len(rest) > 0 {
		t.Fatalf("%q is not one event", b)
	}
	return data
}
