package sdk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/shared"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// refused is an error as a client gets it: a line of the corpus that internal/wire makes.
type refused struct {
	Dialect, Kind string
	Status        int
	Header        map[string]string
	Body          json.RawMessage
}

func refusals(t *testing.T) (out []refused) {
	t.Helper()
	f, err := os.Open(os.Getenv("SLUICE_ERROR_CORPUS"))
	if err != nil {
		t.Fatalf("%v: run this through test/sdk/sdk_test.go", err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var r refused
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if len(out) < 1000 {
		t.Fatalf("%d errors", len(out))
	}
	return out
}

// inError is the error of a body.
type inError struct {
	Error struct {
		Message, Type string
		Code, Param   json.RawMessage // a number in Gemini's
		Status        string
	}
	RequestID string `json:"request_id"`
}

// said is a text as a client has it that takes null for none.
func said(v json.RawMessage) (s string) {
	_ = json.Unmarshal(v, &s) // what is no text would not be what the client has
	return s
}

// TestErrorBodies holds every error to the official client's type: members that this does
// not know are refused, but for the gateway's own.
func TestErrorBodies(t *testing.T) {
	types := map[string]reflect.Type{
		"openai answer":         reflect.TypeFor[openaiRefusal](),
		"openai event":          reflect.TypeFor[openaiRefusal](),
		"openai response event": reflect.TypeFor[responses.ResponseErrorEvent](),
		"anthropic answer":      reflect.TypeFor[anthropicRefusal](),
		"anthropic event":       reflect.TypeFor[anthropicRefusal](),
		"gemini answer":         reflect.TypeFor[geminiRefusal](),
		"gemini event":          reflect.TypeFor[geminiRefusal](),
	}
	seen, wrong := map[string]int{}, map[string]bool{}
	for _, r := range refusals(t) {
		what := r.Dialect + " " + r.Kind
		seen[what]++
		v := decoded(r.Body).(map[string]any)
		delete(v, "sluice")
		if e, ok := v["error"].(map[string]any); ok {
			delete(e, "sluice")
			for _, name := range []string{"code", "param"} { // null is what the dialect says where there is none
				if v, has := e[name]; has && v == nil && r.Dialect == "openai" {
					e[name] = ""
				}
			}
			if what == "openai response event" { // for libraries that look there
				delete(v, "error")
			}
		}
		err := fits(types[what], v, "")
		if e, ok := v["error"].(map[string]any); ok && err == nil && r.Dialect == "anthropic" {
			err = anthropicKnows(e["type"].(string))
		}
		if err != nil && !wrong[what+err.Error()] {
			wrong[what+err.Error()] = true
			t.Errorf("%s: %v\n%s", what, err, r.Body)
		}
	}
	for what := range types {
		if seen[what] == 0 {
			t.Errorf("no %s was made", what)
		}
	}
}

// The clients' types of a body with an error.
type (
	openaiRefusal struct {
		Error openaiObject `json:"error" api:"required"`
	}
	// openaiObject is openai.Error but for its members that are not of the body.
	openaiObject struct {
		Code    string `json:"code" api:"required"`
		Message string `json:"message" api:"required"`
		Param   string `json:"param" api:"required"`
		Type    string `json:"type" api:"required"`
	}
	anthropicRefusal struct {
		Error     anthropicObject `json:"error" api:"required"`
		RequestID string          `json:"request_id" api:"required"`
		Type      string          `json:"type" api:"required"`
	}
	anthropicObject struct {
		Message string `json:"message" api:"required"`
		Type    string `json:"type" api:"required"`
	}
	geminiRefusal struct {
		Error genai.APIError `json:"error" api:"required"`
	}
)

// TestErrorTypesAreTheirs sees that what is written out above is what the clients have.
func TestErrorTypesAreTheirs(t *testing.T) {
	for mine, theirs := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[openaiObject]():     reflect.TypeFor[openai.Error](),
		reflect.TypeFor[anthropicRefusal](): reflect.TypeFor[shared.ErrorResponse](),
		reflect.TypeFor[anthropicObject]():  reflect.TypeFor[shared.ErrorObjectUnion](),
	} {
		want := map[string]bool{}
		for i := range theirs.NumField() {
			if tag := theirs.Field(i).Tag.Get("json"); tag != "" && tag != "-" {
				want[tag] = true
			}
		}
		for i := range mine.NumField() {
			if tag := mine.Field(i).Tag.Get("json"); !want[tag] {
				t.Errorf("%v has no %s", theirs, tag)
			}
		}
		if len(want) != mine.NumField() {
			t.Errorf("%v has %v, and here are %d", theirs, want, mine.NumField())
		}
	}
}

// anthropicKnows reports a type of error that the client has no word for. One is of the
// API's own documentation and not among its client's.
func anthropicKnows(word string) error {
	switch shared.ErrorType(word) {
	case shared.ErrorTypeInvalidRequestError, shared.ErrorTypeAuthenticationError, shared.ErrorTypeBillingError, shared.ErrorTypePermissionError,
		shared.ErrorTypeNotFoundError, shared.ErrorTypeRateLimitError, shared.ErrorTypeTimeoutError, shared.ErrorTypeAPIError, shared.ErrorTypeOverloadedError,
		shared.ErrorTypeConflictError, "request_too_large":
		return nil
	}
	return fmt.Errorf("error.type is %q, which the client does not know", word)
}

// TestErrorsReachTheirClients has the clients themselves read every answer, once for each
// body that differs in status and type.
func TestErrorsReachTheirClients(t *testing.T) {
	var answer refused
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range answer.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body)
	}))
	defer server.Close()
	oa := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
	an := anthropic.NewClient(anthropicoption.WithBaseURL(server.URL), anthropicoption.WithAPIKey("k"), anthropicoption.WithMaxRetries(0))
	ge, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{}
	for _, answer = range refusals(t) {
		var want inError
		if err := json.Unmarshal(answer.Body, &want); err != nil {
			t.Fatal(err)
		}
		e := &want.Error
		id := fmt.Sprint(answer.Dialect, answer.Status, e.Type, e.Status, string(e.Code), string(e.Param))
		if answer.Kind != "answer" || done[id] {
			continue
		}
		done[id] = true
		var got string
		switch answer.Dialect {
		case "openai":
			_, err := oa.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}})
			if x, ok := errors.AsType[*openai.Error](err); ok && x.StatusCode == answer.Status && x.Message == e.Message && x.Type == e.Type && x.Code == said(e.Code) && x.Param == said(e.Param) {
				continue
			}
			got = fmt.Sprintf("%T %v", err, err)
		case "anthropic":
			_, err := an.Messages.New(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 1, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("x"))}})
			if x, ok := errors.AsType[*anthropic.Error](err); ok && x.StatusCode == answer.Status && x.Message == e.Message && string(x.Type()) == e.Type && x.RequestID == "req_1" {
				continue
			}
			got = fmt.Sprintf("%T %v", err, err)
		case "gemini":
			_, err := ge.Models.GenerateContent(t.Context(), "m", genai.Text("x"), nil)
			if x, ok := errors.AsType[genai.APIError](err); ok && x.Code == answer.Status && x.Message == e.Message && x.Status == e.Status && len(x.Details) > 0 {
				continue
			}
			got = fmt.Sprintf("%T %v", err, err)
		}
		t.Errorf("%s %d %s: the client has %s", answer.Dialect, answer.Status, answer.Body, got)
	}
	if len(done) < 100 {
		t.Errorf("only %d answers were read", len(done))
	}
}
