package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/hook"
	"sluice/internal/route"
	"sluice/internal/stateful"
)

// hidesHi is a service that takes "hi" out of answers, and refuses requests that say "no".
func hidesHi(q *hook.Question) string {
	for i, text := range q.Texts {
		switch at := strings.Index(text.Text, "hi"); {
		case q.Stage == "request" && strings.Contains(text.Text, "no"):
			return `{"verdict":"refuse","why":"no"}`
		case q.Stage != "request" && at >= 0 && !text.Fixed:
			return fmt.Sprintf(`{"verdict":"redact","edits":[{"text":%d,"start":%d,"end":%d,"with":"[x]"}]}`, i, at, at+2)
		}
	}
	return `{"verdict":"allow"}`
}

// Hooks look into requests of the Responses operation, their answers and streams, and into
// stored ones that are fetched: what they redact is so wherever an event tells it again, and
// the events are numbered one by one, errors too. A stream that goes on behind an event is
// looked into from its beginning.
func TestHookResponses(t *testing.T) {
	g := &guardian{say: hidesHi}
	service := hook.Spec{Name: "svc", URL: "http://hook/check", Secret: sluice.NewSecret(hookSecret), AllowPrivate: true, At: hook.Stages(1<<hook.AtRequest) | hook.AnswerStages, Deadline: time.Second}
	up := &witness{Handler: responder{}}
	var state *stateful.Keeper
	s := keeping(setup{
		places: []place{{handler: up}}, inspect: []hook.Spec{{Name: "pii", Redact: hook.AllKinds, At: hook.Stages(1<<hook.AtRequest) | hook.AnswerStages}, service},
		policy: sluice.Policy{Hooks: []string{"pii", "svc"}}, asked: g,
	}, &rows{}, &state, nil)
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		body := `{"model":"m","input":[{"role":"user","content":"I am bob@example.com"}]`
		got := r.do(ask{path: responsesAt, body: body + "}"})
		if got.status != 200 || strings.Contains(got.body, `"hi"`) || !strings.Contains(got.body, `"text":"[x]"`) {
			t.Errorf("got %d %s", got.status, got.body)
		}
		if sent := up.all[0].body; !strings.Contains(sent, "[redacted:email]") {
			t.Errorf("sent %s", sent)
		}
		streamed := r.do(ask{path: responsesAt, body: body + `,"stream":true}`})
		check := func(what, stream string, first int) {
			t.Helper()
			if strings.Contains(stream, `"hi"`) || strings.Count(stream, `[x]`) < 3 {
				t.Errorf("%s: %s", what, stream)
			}
			n := first
			for line := range strings.SplitSeq(stream, "\n") {
				data, ok := strings.CutPrefix(line, "data: ")
				if !ok {
					continue
				}
				var e struct {
					Number *int `json:"sequence_number"`
				}
				if err := json.Unmarshal([]byte(data), &e); err != nil || e.Number == nil || *e.Number != n {
					t.Errorf("%s: event %d: %v %s", what, n, err, data)
				}
				n++
			}
		}
		check("stream", streamed.body, 0)
		if q := r.do(ask{method: "GET", path: responsesAt + "/resp_1"}); q.status != 200 || strings.Contains(q.body, `"hi"`) {
			t.Errorf("fetched: %d %s", q.status, q.body)
		}
		again := r.do(ask{method: "GET", path: responsesAt + "/resp_1?stream=true&starting_after=3"})
		check("from event 3", again.body, 4)
		if !strings.HasSuffix(streamed.body, again.body) {
			t.Errorf("from event 3: %s\nof %s", again.body, streamed.body)
		}
		calls := len(up.all)
		refused := r.do(ask{path: responsesAt, body: `{"model":"m","input":"no"}`})
		if refused.status != 400 || refused.header.Get("Sluice-Reason") != "hook_refused" || len(up.all) != calls {
			t.Errorf("refused: %d %s", refused.status, refused.body)
		}
	})
	s.places = []place{{handler: responder{end: "error"}}}
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		got := r.do(ask{path: responsesAt, body: `{"model":"m","input":"x","stream":true}`})
		wantCut(t, got)
		if !strings.Contains(got.body, `"sequence_number":5,"error"`) || strings.Contains(got.body, `"hi"`) { // the provider's own error was event 4
			t.Errorf("an error: %s", got.body)
		}
	})
	s.places = []place{{handler: talk{chunks: 1, text: "hi", usage: usage(3, 1)}, lacks: route.NeedResponses}}
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		got := r.do(ask{path: responsesAt, body: `{"model":"m","input":"x","stream":true}`})
		if got.status != 200 || strings.Contains(got.body, `"hi"`) || strings.Count(got.body, `[x]`) < 3 {
			t.Errorf("translated: %d %s", got.status, got.body)
		}
	})
}
