package wire

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
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
		{"container in an object", Messages, `{"model":"m","max_tokens":1,"messages":[],"container":{"skills":[{"skill_id":"x","type":"anthropic"}],"id":"c1"}}`, []route.State{{Kind: route.StateContainer, ID: "c1"}}},
		{"a new container with skills", Messages, `{"model":"m","max_tokens":1,"messages":[],"container":{"skills":[]}}`, nil},
		{"each once, in order", Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"b"}},{"type":"container_upload","file_id":"a"},{"type":"document","source":{"type":"file","file_id":"b"}}]}]}`, []route.State{file("b"), file("a")}},
		{"two in one part", Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file_id":"a","file":{"file_id":"b"}}]}]}`, []route.State{file("b"), file("a")}},
		{"what a tool has written is no reference", Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"bash_code_execution_tool_result","tool_use_id":"t","content":{"type":"bash_code_execution_result","content":[{"file_id":"a","type":"bash_code_execution_output"}]}}]}]}`, nil},
		{"but in no other dialect", Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"code_execution_output","file_id":"a"}]}]}`, []route.State{file("a")}},
		{"audio of a turn", Chat, `{"model":"m","messages":[{"role":"assistant","audio":{"id":"a"}},{"role":"assistant","audio":null}]}`, []route.State{{Kind: route.StateAudio, ID: "a"}}},
		{"Gemini's files, by their address", GenerateContent, `{"contents":[{"parts":[{"fileData":{"fileUri":"https://example.com/x.pdf","mimeType":"application/pdf"}},{"file_data":{"file_uri":"https://generativelanguage.googleapis.com/v1beta/files/a"}},{"fileData":{"fileUri":"gs://bucket/b"}}]}],"cachedContent":"cachedContents/c"}`, []route.State{
			file("files/a"), file("gs://bucket/b"), {Kind: route.StateCache, ID: "cachedcontents/c"},
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

// What stands in tools that the provider runs, and in items, is read whatever the tool is
// called and however its members are spelled; schemas of functions are not.
func TestScanRefsInTools(t *testing.T) {
	responses := func(tool string) string { return `{"model":"m","input":"x","tools":[` + tool + `]}` }
	item := func(item string) string { return `{"model":"m","input":[` + item + `]}` }
	claude := func(more string) string { return `{"model":"m","max_tokens":1,"messages":[],` + more + `}` }
	schema := `"parameters":{"type":"object","properties":{"container":{"type":"string"},"file_id":{"type":"string"},"file_ids":7},"default":{"container":"no"}}`
	for _, tt := range []struct {
		op         Operation
		body, want string // "kind id", or "! param" of a refusal
	}{
		{Responses, responses(`{"type":"code_interpreter","container":"cntr_1"}`), "container cntr_1"},
		{Responses, responses(`{"type":"code_interpreter","cont\u0061iner":"cntr_\u0031"}`), "container cntr_1"},
		{Responses, responses(`{"container":{"type":"auto","file_ids":["a","b"]},"type":"code_interpreter"}`), "file a, file b"},
		{Responses, responses(`{"type":"code_interpreter","container":{"type":"auto"}}`), ""},
		{Responses, responses(`{"type":"shell","environment":{"type":"container_reference","container_id":"c"}}`), "container c"},
		{Responses, responses(`{"type":"shell","environment":{"type":"container_auto","skills":[{"type":"skill_reference","skill_id":"skill_1"},{"skill_id":"openai-docs","type":"skill_reference"}]}}`), "skill skill_1"},
		{Responses, responses(`{"type":"file_search","vector_store_ids":["vs_1"],"filters":{"type":"eq","key":"file_id","value":"x"}}`), "store vs_1"},
		{Responses, responses(`{"type":"image_generation","input_image_mask":{"file_id":"f"}}`), "file f"},
		{Responses, responses(`{"type":"unheard_of","deep":[{"er":{"datasetIds":["d"],"Container_ID":"c","headers":{"X-Id":"h"}}}]}`), "resource d, container c"},
		{Responses, responses(`{"type":"mcp","server_label":"s","connector_id":"connector_gmail","headers":{"user_id":"u"}}`), ""},
		{Responses, responses(`{"type":"function","name":"f",` + schema + `}`), ""},
		{Responses, responses(`{"type":"custom","name":"f","container":{"file_ids":["no"]}}`), ""},
		{Responses, responses(`{"type":"namespace","name":"n","tools":[{"type":"function","name":"f",` + schema + `},{"type":"code_interpreter","container":"c"}]}`), "container c"},
		{Responses, responses(`{"type":"x","tools":[{"type":"y","tools":[{"type":"function","container":"c"}]}]}`), "container c"},
		{Responses, responses(`{"type":"code_interpreter","container":["c"]}`), "! container"},
		{Responses, responses(`{"type":"code_interpreter","container":7}`), "! container"},
		{Responses, responses(`{"type":"x","container_id":{"id":"c"}}`), "! container_id"},
		{Responses, responses(`{"type":"x","file_ids":[["a"]]}`), "! file_ids"},
		{Responses, responses(`{"type":"x","file_id":"a/../b"}`), "! file_id"},
		{Responses, responses(`{"type":"x","file_id":" a"}`), "! file_id"},
		{Responses, item(`{"type":"code_interpreter_call","id":"ci","code":"container_id","container_id":"c"}`), "container c"},
		{Responses, item(`{"type":"input_file","file_id":"f"}`), "file f"},
		{Responses, item(`{"type":"shell_call","environment":{"container_id":"c"}}`), "container c"},
		{Responses, item(`{"type":"tool_search_output","tools":[{"type":"function",` + schema + `},{"type":"file_search","vector_store_ids":["v"]}]}`), "store v"},
		{Responses, item(`{"role":"user","content":[{"type":"input_image","file_id":["f"]}]}`), "! file_id"},
		{Responses, item(`{"type":"function_call_output","call_id":"c","output":"{\"file_id\":\"no\"}"}`), ""},
		{Responses, `{"model":"m","prompt":{"id":"pmpt_1","version":"2","variables":{"file_id":"text","doc":{"type":"input_file","file_id":"f"}}}}`, "prompt pmpt_1, file f"},
		{Responses, `{"model":"m","input":"x","previous_response_id":["r"]}`, "! previous_response_id"},
		{Responses, `{"model":"m","input":"x","conversation":3}`, "! conversation"},
		{Chat, `{"model":"m","messages":[],"previous_response_id":"r"}`, "response r"},
		{Chat, `{"model":"m","messages":[],"extra_body":{"google":{"cached_content":"c"}}}`, "cache c"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":"x","attachments":[{"file_id":"f","tools":[]}]}],"tool_resources":{"file_search":{"vector_store_ids":["v"]}}}`, "file f, store v"},
		{Chat, `{"model":"m","messages":[],"metadata":{"file_id":"no"},"tools":[{"type":"function","function":{"name":"f",` + schema + `}}]}`, ""},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"GS:\/\/B/x"}}]}]}`, "file gs://b/x"},
		{Messages, claude(`"container":{"skills":[{"type":"custom","skill_id":"s","version":"1"},{"skill_id":"pptx","type":"anthropic"}]}`), "skill s"},
		{Messages, claude(`"container":{"skills":[{"type":"custom","skill_id":["s"]}]}`), "! skill_id"},
		{Messages, claude(`"container":7`), "! container"},
		{Messages, claude(`"tools":[{"name":"f","input_schema":{"properties":{"container":"no"}}},{"type":"code_execution_20300101","name":"c","container_id":"c"}]`), "container c"},
		{GenerateContent, `{"contents":[],"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/S","https://generativelanguage.googleapis.com/v1beta/fileSearchStores/S"]}}]}`, "store filesearchstores/S"},
		{GenerateContent, `{"contents":[],"tools":[{"file_search":{"file_search_store_names":["fileSearchStores/S"]},"functionDeclarations":[{"name":"f",` + schema + `}]}]}`, "store filesearchstores/S"},
		{GenerateContent, `{"contents":[],"tools":[{"retrieval":{"vertexRagStore":{"ragResources":[{"ragCorpus":"projects/p/x","ragFileIds":["1"]}]},"vertexAiSearch":{"engine":"projects/p/e"}}}]}`, "store projects/p/x, file 1, resource projects/p/e"},
		{GenerateContent, `{"contents":[{"parts":[{"fileData":{"fileUri":["files/x"]}}]}]}`, "! fileUri"},
	} {
		if got := refsOf(tt.op, tt.body); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.body, got, tt.want)
		}
	}
}

// refsOf is what a request refers to, or the parameter for which it is refused.
func refsOf(op Operation, body string) string {
	h, err := ScanIn(op, []byte(body), InPath{Model: "m"})
	if err != nil {
		return "! " + sluice.AsError(err).Param
	}
	var all []string
	for _, s := range h.Refs {
		all = append(all, s.Kind.String()+" "+s.ID)
	}
	return strings.Join(all, ", ")
}

// An address has one name, however it is written; what is no plain address of the web is
// none.
func TestFileName(t *testing.T) {
	for uri, want := range map[string]string{
		"https://generativelanguage.googleapis.com/v1beta/files/x":              "files/x",
		"HTTPS://GenerativeLanguage.GoogleAPIs.com/v1/files/x?alt=media":        "files/x",
		"http://generativelanguage.googleapis.com:443/v1beta/files/x#a":         "files/x",
		"https://generativelanguage.googleapis.com./v1beta//files/../files/%78": "files/x",
		"https://generativelanguage.googleapis.com/v1beta/files/x:download":     "files/x",
		"https://user@generativelanguage.googleapis.com/v1beta/files/x":         "!",
		" https://generativelanguage.googleapis.com/v1beta/files/x":             "!",
		"https://generativelanguage.googleapis.com\\v1beta/files/x":             "!",
		"https://generativelanguage\u3002googleapis.com/v1beta/files/x":         "!",
		"https:generativelanguage.googleapis.com/v1beta/files/x":                "!",
		"//generativelanguage.googleapis.com/v1beta/files/x":                    "!",
		"files/x": "files/x", "Files/X": "files/x", "/v1beta/files/x": "files/x", "/upload/v1/files/x": "files/x", "files%2Fx": "files/x", "files%252Fx": "!",
		"gs://bucket/O/x": "gs://bucket/O/x", "GS://Bucket/O/x#12": "gs://bucket/O/x", "gs://b@bucket/x": "!", "gs://bucket/x?alt=media": "!",
		"s3://bucket/x": "s3://bucket/x", "file:///etc/passwd": "!", "ftp://x/y": "!", "data:text/plain,x": "!", "https://": "!", "": "!",
		"https://storage.googleapis.com/bucket/O/x":                              "gs://bucket/O/x",
		"https://bucket.storage.googleapis.com/O/x":                              "gs://bucket/O/x",
		"https://storage.cloud.google.com/bucket/O/x":                            "gs://bucket/O/x",
		"https://www.googleapis.com/storage/v1/b/bucket/o/O%2Fx?alt=media":       "gs://bucket/O/x",
		"https://storage.googleapis.com/download/storage/v1/b/bucket/o/O%2Fx":    "gs://bucket/O/x",
		"https://firebasestorage.googleapis.com/v0/b/bucket/o/O%2Fx?alt=media":   "gs://bucket/O/x",
		"https://example.com/x.pdf?a=b":                                          "",
		"https://www.youtube.com/watch?v=x":                                      "",
		"https://generativelanguage.googleapis.com.example.com/v1beta/files/x":   "",
		"https://us-central1-aiplatform.googleapis.com/v1/projects/p/datasets/D": "projects/p/datasets/D",
	} {
		got, w := fileName(uri)
		if w == noFile {
			got = "!"
		}
		if got != want || (w == publicFile) != (want == "") {
			t.Errorf("%q: got %q, %d, want %q", uri, got, w, want)
		}
		if again, w := fileName(got); w == keptFile && again != got {
			t.Errorf("%q: its name %q is called %q", uri, got, again)
		}
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
		{"containers of a response", Responses, TapOptions{}, `{"id":"r","store":false,"output":[{"type":"code_interpreter_call","container_id":"c1"},{"type":"shell_call","environment":{"type":"container_reference","container_id":"c2"}}],"status":"completed"}`, []route.State{container, {Kind: route.StateContainer, ID: "c2"}}},
		{"items of a response", Responses, TapOptions{}, `{"id":"r","output":[{"id":"rs_1","type":"reasoning"},{"type":"message","id":"msg_1","content":[{"id":"no"}]},{"type":"x","id":null}],"status":"completed"}`, []route.State{{Kind: route.StateResponse, ID: "r"}, {Kind: route.StateItem, ID: "rs_1"}, {Kind: route.StateItem, ID: "msg_1"}}},
		{"items of one that is not stored", Responses, TapOptions{}, `{"id":"r","output":[{"id":"rs_1","type":"reasoning"}],"store":false,"status":"completed"}`, nil},
		{"a response that is fetched", ResponseGet, TapOptions{}, `{"id":"r","output":[{"id":"msg_1","type":"message"}],"status":"completed"}`, []route.State{{Kind: route.StateResponse, ID: "r"}, {Kind: route.StateItem, ID: "msg_1"}}},
		{"what a response answers to", ResponseItems, TapOptions{}, `{"data":[{"id":"msg_1","type":"message"}]}`, nil}, // which the client may have named itself
		{"a file of Gemini's", GenerateContent, TapOptions{}, `{"candidates":[{"content":{"parts":[{"fileData":{"fileUri":"https://GENERATIVELANGUAGE.googleapis.com/v1/files/a"}},{"fileData":{"fileUri":"https://example.com/a"}}]},"finishReason":"STOP"}]}`, []route.State{{Kind: route.StateFile, ID: "files/a"}}},
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

// Items of a stream are known as they begin, unless the response is not stored; they are
// bounded, and leave room for all else.
func TestTapItems(t *testing.T) {
	event := func(tap *Tap, data string) {
		if s := tap.Event(Event{Raw: []byte("data: " + data + "\n\n"), Data: []byte(data), dataAt: 6}); s.Err != nil {
			t.Fatal(s.Err)
		}
	}
	for _, store := range []bool{true, false} {
		tap := NewTap(Responses, TapOptions{})
		event(tap, fmt.Sprintf(`{"type":"response.created","response":{"id":"r","store":%v,"status":"in_progress"}}`, store))
		for i := range 2 * maxItems {
			event(tap, fmt.Sprintf(`{"type":"response.output_item.added","item":{"id":"msg_%d","type":"message"}}`, i))
			if want := min(i+1, maxItems) + 1; store && len(tap.State()) != want || !store && len(tap.State()) > 0 {
				t.Fatalf("stored %v, %d items: %d ids", store, i+1, len(tap.State()))
			}
		}
		event(tap, `{"type":"response.output_item.added","item":{"id":"ci_1","type":"code_interpreter_call","container_id":"c1"}}`)
		last := tap.State()[len(tap.State())-1]
		if last != (route.State{Kind: route.StateContainer, ID: "c1"}) {
			t.Errorf("stored %v: last is %v", store, last)
		}
		event(tap, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`)
		if !store && len(tap.State()) != 1 {
			t.Errorf("not stored: %v", tap.State())
		}
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
