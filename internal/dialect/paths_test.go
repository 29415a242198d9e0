package dialect

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/wire"
)

// What is told of a loss is where the client wrote it, whichever of its names it used.
func TestPathsAreTheClients(t *testing.T) {
	loose := `{"type":"object","properties":{"a":{}},"additionalProperties":false}`
	for _, tt := range []struct {
		op, to      wire.Operation
		body, model string
		want        string
	}{
		{wire.Chat, wire.GenerateContent, chat + `,"safety_identifier":"u"}`, "", "safety_identifier"},
		{wire.Chat, wire.GenerateContent, chat + `,"user":"u"}`, "", "user"},
		{wire.Responses, wire.GenerateContent, respond + `,"safety_identifier":"u"}`, "", "safety_identifier"},
		{wire.Messages, wire.GenerateContent, asked + `,"metadata":{"user_id":"u"}}`, "", "metadata.user_id"},
		{wire.Messages, wire.GenerateContent, asked + `,"thinking":{"type":"disabled"}}`, "gemini-3-pro", "thinking"},
		{wire.Chat, wire.GenerateContent, chat + `,"reasoning_effort":"none"}`, "gemini-3-pro", "reasoning_effort"},
		{wire.Messages, wire.Chat, asked + `,"output_format":{"type":"json_schema","schema":` + loose + `}}`, "", "output_format"},
		{wire.GenerateContent, wire.Chat, configured(`"responseMimeType":"application/json","responseJsonSchema":` + loose), "", "generationConfig.responseJsonSchema"},
		{wire.GenerateContent, wire.Chat, configured(`"responseMimeType":"application/json","_responseJsonSchema":` + loose), "", "generationConfig._responseJsonSchema"},
	} {
		h, err := scan(tt.op, []byte(tt.body))
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		tr := Translate(h, []byte(tt.body), nil, tt.to, Options{Warn: true, Model: tt.model})
		if tr.Err != nil || tr.Dropped() != tt.want {
			t.Errorf("%s: %v %q, want %q", tt.body, tr.Err, tr.Dropped(), tt.want)
		}
	}
}

// However much is lost, what is not listed is counted.
func TestWhatIsNotListedIsCounted(t *testing.T) {
	const n = 1001
	body := `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","name":"n","content":"x"},`, n-1) + `{"role":"user","name":"n","content":"x"}]}`
	got := translate(t, wire.Chat, body, nil, true).Dropped()
	listed := strings.Count(got, ".name")
	if !strings.HasSuffix(got, fmt.Sprintf(", and %d more", n-listed)) || listed < 40 {
		t.Errorf("%d are listed: %s", listed, got[max(0, len(got)-80):])
	}
}
