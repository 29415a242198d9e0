package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/schemas"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// generateContent is a request of Gemini, which its client puts together of these types.
type generateContent struct {
	Contents          []*genai.Content        `json:"contents" api:"required"`
	SystemInstruction *genai.Content          `json:"systemInstruction"`
	Tools             []*genai.Tool           `json:"tools"`
	ToolConfig        *genai.ToolConfig       `json:"toolConfig"`
	SafetySettings    []*genai.SafetySetting  `json:"safetySettings"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
	ServiceTier       genai.ServiceTier       `json:"serviceTier"`
}

// clientTypes are what the official clients read and write.
var clientTypes = map[string]reflect.Type{
	"chat request":             reflect.TypeFor[openai.ChatCompletionNewParams](),
	"chat answer":              reflect.TypeFor[openai.ChatCompletion](),
	"chat event":               reflect.TypeFor[openai.ChatCompletionChunk](),
	"responses request":        reflect.TypeFor[responses.ResponseNewParams](),
	"responses answer":         reflect.TypeFor[responses.Response](),
	"responses event":          reflect.TypeFor[responses.ResponseStreamEventUnion](),
	"messages request":         reflect.TypeFor[anthropic.MessageNewParams](),
	"messages answer":          reflect.TypeFor[anthropic.Message](),
	"messages event":           reflect.TypeFor[anthropic.MessageStreamEventUnion](),
	"generate_content request": reflect.TypeFor[generateContent](),
	"generate_content answer":  reflect.TypeFor[genai.GenerateContentResponse](),
	"generate_content event":   reflect.TypeFor[genai.GenerateContentResponse](),
}

// line is one of the corpus that internal/dialect makes.
type line struct {
	Op, Kind, From string
	Body           json.RawMessage
}

func corpus(t *testing.T) (out []line) {
	t.Helper()
	path := os.Getenv("SLUICE_DIALECT_CORPUS")
	if path == "" {
		t.Fatal("SLUICE_DIALECT_CORPUS is not set: run this through test/sdk/sdk_test.go")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	if in.Err() != nil || len(out) < 1000 {
		t.Fatalf("%d bodies, %v", len(out), in.Err())
	}
	return out
}

func decoded(body []byte) any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%v in %s", err, body)) // it was written by an encoder
	}
	return v
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTranslatedBodies holds every body that the translation makes to the types of the
// official client of its dialect, unknown members refused.
func TestTranslatedBodies(t *testing.T) {
	seen, wrong := map[string]int{}, map[string]int{}
	for _, l := range corpus(t) {
		what := l.Op + " " + l.Kind
		seen[what]++
		v := spelledOut(what, l.Body)
		extend(v, what)
		err := fitsClient(what, v)
		if typ, ok := clientTypes[what]; ok && err == nil {
			err = json.Unmarshal(encoded(t, v), reflect.New(typ).Interface())
		}
		if err != nil {
			if wrong[what+err.Error()]++; wrong[what+err.Error()] == 1 {
				t.Errorf("%s of %s: %v\n%s", what, l.From, err, l.Body)
			}
		}
	}
	for what := range clientTypes {
		if seen[what] == 0 {
			t.Errorf("no %s was made", what)
		}
	}
	if seen["converse request"] == 0 {
		t.Error("no converse request was made")
	}
	t.Log(seen)
}

// open are the members below which a dialect takes whatever a caller writes.
var open = []string{
	"parameters", "schema", "input", "input_schema", "args", "response", "metadata", "json", "additionalModelRequestFields", "requestMetadata", "parametersJsonSchema",
	"responseJsonSchema",
}

// TestUnknownMembersAreFound: a member that nobody has heard of, put into any object of
// any body, is found, or the check above would check nothing.
func TestUnknownMembersAreFound(t *testing.T) {
	done := map[string]int{}
	for _, l := range corpus(t) {
		what := l.Op + " " + l.Kind
		if done[what]++; done[what] > 60 {
			continue
		}
		v := spelledOut(what, l.Body)
		extend(v, what)
		everyObject(v, "", func(o map[string]any, path string) {
			o["x_unknown"] = true
			defer delete(o, "x_unknown")
			if err := fitsClient(what, v); err == nil {
				t.Errorf("%s: not found in %s of %s", what, path, l.Body)
			}
		})
	}
}

// openAt are the paths at which OpenAI's client takes any object: tools by their names.
var openAt = []string{".tool_choice.tools", ".tool_choice.allowed_tools.tools"}

// everyObject visits the objects of a value, but for those that are open.
func everyObject(v any, path string, f func(o map[string]any, path string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			everyObject(x, path, f)
		}
	case map[string]any:
		f(v, path)
		for name, x := range v {
			if !slices.Contains(open, name) && !slices.Contains(openAt, path+"."+name) {
				everyObject(x, path+"."+name, f)
			}
		}
	}
}

// fitsClient holds a value to what the client of its dialect reads or writes.
func fitsClient(what string, v any) error {
	if typ, ok := clientTypes[what]; ok {
		return fits(typ, v, "")
	}
	return fitsShape(schemas.ConverseRequest, v, "")
}

// extensions are members that a dialect has beyond its official client's types, by the
// path behind which they stand. Everything else that those types do not have is wrong.
var extensions = map[string][]string{
	// The client's methods, not its parameters, say that the answer is streamed. What
	// models reason has no place in OpenAI's own chat: this is where engines have it.
	"chat request":      {"stream", "messages.reasoning_content", "messages.reasoning_details"},
	"chat answer":       {"choices.stop_reason", "choices.message.reasoning_content", "choices.message.reasoning_details"},
	"chat event":        {"choices.stop_reason", "choices.delta.reasoning_content", "choices.delta.reasoning_details"},
	"responses request": {"stream"},
	// The client's types are of a later version than the one that the gateway speaks.
	"messages request": {"stream", "temperature", "top_p", "top_k"},
	// The service has them, and the Node client.
	"responses answer": {"store"},
	"responses event":  {"response.store", "name"},
	// They move into the path when the call is addressed.
	"converse request": {"model", "stream"},
}

// unneeded are members that a client's types need and its service does not.
var unneeded = map[string][]string{
	// Items that are sent to a service which keeps none have no ids there.
	"responses.ResponseReasoningItemParam": {"id"},
	"responses.ResponseOutputMessageParam": {"id", "status"},
	"responses.Response":                   {"access_programs"}, // of a preview
}

// unsigned stands where Gemini wants a signature that there is none of. It is not in the
// base 64 that the client's types have signatures in.
const unsigned = "skip_thought_signature_validator"

// spelledOut is a body without short forms that the client's types do not have: in
// messages a text for a list of one.
func spelledOut(what string, body []byte) any {
	if what == "generate_content request" {
		body = bytes.ReplaceAll(body, []byte(unsigned), []byte("AAAA"))
	}
	v := decoded(body)
	if o, ok := v.(map[string]any); ok && what == "messages request" {
		listed(o, "system")
		messages, _ := o["messages"].([]any)
		for _, m := range messages {
			listed(m, "content")
			blocks, _ := m.(map[string]any)["content"].([]any)
			for _, b := range blocks {
				listed(b, "content")
			}
		}
	}
	return v
}

func listed(v any, name string) {
	if o, ok := v.(map[string]any); ok {
		if text, short := o[name].(string); short {
			o[name] = []any{map[string]any{"type": "text", "text": text}}
		}
	}
}

// extend takes out of a body what its dialect has beyond the types of its client.
func extend(v any, what string) {
	o, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, path := range extensions[what] {
		if name, rest, deeper := strings.Cut(path, "."); !deeper {
			delete(o, name)
		} else {
			takeOut(o[name], rest)
		}
	}
}

func takeOut(v any, path string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			takeOut(x, path)
		}
	case map[string]any:
		name, rest, deeper := strings.Cut(path, ".")
		if deeper {
			takeOut(v[name], rest)
			return
		}
		delete(v, name)
	}
}
