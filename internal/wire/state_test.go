package wire

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/route"
)

func TestScanRefs(t *testing.T) {
	file := func(id string) route.State { return route.State{Kind: route.StateFile, ID: id} }
	for _, tt := range []struct {
		name string
		op   Operation
		body string
		want []route.State
	}{
		{"none", Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"file_id container"}],"container":null}`, nil},
		{"container", Messages, `{"model":"m","max_tokens":1,"messages":[],"container":"c\u0031"}`, []route.State{{Kind: route.StateContainer, ID: "c1"}}},
		{"container in an object", Messages, `{"model":"m","max_tokens":1,"messages":[],"container":{"skills":[{"skill_id":"x"}],"id":"c1"}}`, []route.State{{Kind: route.StateContainer, ID: "c1"}}},
		{"a new container with skills", Messages, `{"model":"m","max_tokens":1,"messages":[],"container":{"skills":[]}}`, nil},
		{"each once, in order", Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"b"}},{"type":"container_upload","file_id":"a"},{"type":"document","source":{"type":"file","file_id":"b"}}]}]}`, []route.State{file("b"), file("a")}},
		{"two in one part", Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file_id":"a","file":{"file_id":"b"}}]}]}`, []route.State{file("b"), file("a")}},
		{"what a tool has written is no reference", Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"bash_code_execution_tool_result","tool_use_id":"t","content":{"type":"bash_code_execution_result","content":[{"file_id":"a","type":"bash_code_execution_output"}]}}]}]}`, nil},
		{"but in no other dialect", Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"code_execution_output","file_id":"a"}]}]}`, []route.State{file("a")}},
		{"audio of a turn", Chat, `{"model":"m","messages":[{"role":"assistant","audio":{"id":"a"}},{"role":"assistant","audio":null}]}`, []route.State{{Kind: route.StateAudio, ID: "a"}}},
		{"Gemini's files, by their address", GenerateContent, `{"contents":[{"parts":[{"fileData":{"fileUri":"https://example.com/x.pdf","mimeType":"application/pdf"}},{"file_data":{"file_uri":"https://generativelanguage.googleapis.com/v1beta/files/a"}},{"fileData":{"fileUri":"gs://bucket/b"}}]}],"cachedContent":"cachedContents/c"}`, []route.State{
			file("https://generativelanguage.googleapis.com/v1beta/files/a"), file("gs://bucket/b"), {Kind: route.StateCache, ID: "cachedContents/c"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := InPath{}
			if tt.op.Dialect() == Gemini {
				at.Model = "m"
			}
			h, err := ScanIn(tt.op, []byte(tt.body), at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, h.Refs); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(tt.want) > 0 && tt.want[0].Kind == route.StateContainer && !h.Unbounded {
				t.Error("what is in a container is taken to be bounded")
			}
		})
	}
}

// References are bounded, however they are spread.
func TestScanRefsBounded(t *testing.T) {
	part := func(i int) string {
		return fmt.Sprintf(`{"type":"image","source":{"type":"file","file_id":"f%d"}}`, i)
	}
	scan := func(n, different int) error {
		var parts []string
		for i := range n {
			parts = append(parts, part(i%different))
		}
		_, err := Scan(Messages, []byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[`+strings.Join(parts, ",")+`]}]}`))
		return err
	}
	if err := scan(1000, maxRefs); err != nil {
		t.Error(err)
	}
	if scan(maxRefs+1, maxRefs+1) == nil || scan(maxMention+1, 1) == nil {
		t.Error("there is no bound")
	}
	if _, err := Scan(Messages, []byte(`{"model":"m","max_tokens":1,"messages":[],"container":"`+strings.Repeat("x", maxStateID+1)+`"}`)); err == nil {
		t.Error("an id may be of any length")
	}
}

// What an answer says that is kept is found in a stream and in one piece, once, and only
// where the provider itself says so.
func TestTapState(t *testing.T) {
	container := route.State{Kind: route.StateContainer, ID: "c1"}
	output := `{"type":"code_execution_tool_result","tool_use_id":"t","content":{"type":"code_execution_result","stdout":"{\"file_id\":\"said\"}","file_id":"no","content":[{"type":"code_execution_output","file_id":"f1"},{"file_id":"f1","type":"code_execution_output"},{"type":"text","file_id":"no"}]}}`
	for _, tt := range []struct {
		name string
		op   Operation
		o    TapOptions
		body string
		want []route.State
	}{
		{
			"anthropic", Messages,
			TapOptions{},
			`{"id":"msg","type":"message","container":{"expires_at":"2026-01-01T00:00:00Z","id":"c1"},"content":[` + output + `,{"type":"tool_use","name":"x","input":{"container":{"id":"no"},"file_id":"no"}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
			[]route.State{container, {Kind: route.StateFile, ID: "f1"}},
		},
		{"anthropic, none", Messages, TapOptions{}, `{"id":"msg","type":"message","container":null,"content":[],"stop_reason":"end_turn"}`, nil},
		{"stored", Chat, TapOptions{Stored: true}, `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"content":"x","audio":{"id":"a1","data":"","transcript":"t"}},"finish_reason":"stop"}]}`, []route.State{{Kind: route.StateResponse, ID: "chatcmpl-1"}, {Kind: route.StateAudio, ID: "a1"}}},
		{"not stored", Chat, TapOptions{}, `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"content":"x","tool_calls":[{"id":"no"}]},"finish_reason":"stop"}]}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tap := NewTap(tt.op, tt.o)
			if _, err := tap.Body([]byte(tt.body)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tap.State()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	stream := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"container\":null,\"usage\":{\"input_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":" + output + "}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"container\":{\"id\":\"c1\",\"expires_at\":\"x\"}},\"usage\":{\"output_tokens\":1}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	tap, events := NewTap(Messages, TapOptions{}), NewEvents(strings.NewReader(stream), 0)
	var at []int
	for {
		e, err := events.Next()
		if err == io.EOF {
			break
		}
		if s := tap.Event(e); s.Err != nil {
			t.Fatal(s.Err)
		}
		at = append(at, len(tap.State()))
	}
	if !slices.Equal(at, []int{0, 1, 2, 2}) || tap.State()[1] != container {
		t.Errorf("after each event %v: %v", at, tap.State())
	}
}

// Whether an answer is kept by its id is said by store, whose default is the operation's.
func TestScanStore(t *testing.T) {
	for body, want := range map[string]bool{`"store":true`: true, `"store":false`: false, `"store":null`: false, `"n":1`: false} {
		h, err := Scan(Chat, []byte(`{"model":"m","messages":[],`+body+`}`))
		if err != nil || h.Store != want {
			t.Errorf("chat, %s: %v, %v", body, h, err)
		}
	}
}
