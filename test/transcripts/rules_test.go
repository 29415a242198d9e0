package transcripts

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice"
	"sluice/internal/wire"
)

// judge holds an answer to what is true of every answer, whoever gave it.
func judge(t *testing.T, tr *transcript, res *result) {
	t.Helper()
	for _, text := range []string{res.client, res.outcome()} {
		if strings.Contains(text, "secret-of-") || strings.Contains(text, clientKey) {
			t.Errorf("a secret shows in %s", text)
		}
	}
	finals := 0
	for i := range res.entries {
		e := &res.entries[i]
		if e.Final {
			finals++
		}
		if e.CostHigh < e.Cost {
			t.Errorf("attempt %d cost %v, at most %v", e.Attempt, e.Cost, e.CostHigh)
		}
		if served := e.Outcome == sluice.Completed && e.Operation != wire.CountTokens.String(); served && e.Usage.Source == sluice.UsageNone {
			t.Errorf("attempt %d completed and is settled at nothing", e.Attempt)
		}
	}
	if finals != 1 && res.status != 401 && res.status != 404 && len(res.entries) > 0 {
		t.Errorf("%d final entries", finals)
	}
	if !utf8.Valid(res.body) {
		t.Error("the client got bytes that are no UTF-8")
	}
	switch {
	case strings.HasPrefix(res.kind, "text/event-stream"):
		judgeStream(t, tr, res)
	case res.aborted:
		t.Error("an answer in one piece was aborted")
	}
}

// judgeStream holds a stream to what client libraries need of one.
func judgeStream(t *testing.T, tr *transcript, res *result) {
	t.Helper()
	messages := strings.HasPrefix(tr.files["request"], "POST /v1/messages")
	events := wire.NewEvents(bytes.NewReader(res.body), 8<<20)
	failed, ended := false, false
	for {
		ev, err := events.Next()
		if ev.Unterminated {
			t.Errorf("the last event has no blank line: %q", ev.Raw)
		}
		if err != nil {
			break
		}
		if len(ev.Data) == 0 {
			continue
		}
		if ended {
			t.Errorf("an event follows the end: %q", ev.Raw)
		}
		if messages && len(ev.Name) == 0 {
			t.Errorf("an event of messages has no name: %q", ev.Raw)
		}
		var v map[string]json.RawMessage
		if string(ev.Data) == "[DONE]" {
			ended = true
			continue
		}
		if err := json.Unmarshal(ev.Data, &v); err != nil {
			t.Errorf("an event is no JSON object: %q", ev.Raw)
			continue
		}
		if e, ok := v["error"]; ok && string(e) == "null" {
			t.Errorf("an event has a null error: %q", ev.Raw)
		}
		failed = failed || len(v["error"]) > 0
		ended = ended || string(ev.Name) == "message_stop" || terminal(v["type"])
	}
	if failed != res.aborted {
		t.Errorf("it has an error: %v; it was aborted: %v", failed, res.aborted)
	}
}

// terminal reports the types that end a stream which no marker does.
func terminal(kind json.RawMessage) bool {
	switch string(kind) {
	case `"response.completed"`, `"response.incomplete"`, `"response.failed"`:
		return true
	}
	return false
}
