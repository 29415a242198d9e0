package dialect

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sluice/internal/wire"
)

// tells is a request of one dialect that asks for one feature, by the path that a
// loss of it has.
type tells struct {
	path   string
	body   string
	header http.Header
}

const (
	chat  = `{"model":"m","messages":[{"role":"user","content":"x"}]`
	asked = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]`
	after = `{"role":"user","content":"y"}]}`
)

// openaiTells has a request for each field that clients of the dialect have.
var openaiTells = map[Feature]tells{
	FeatureText:         {"", chat + `}`, nil},
	FeatureInstructions: {"", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"user","content":"x"}]}`, nil},
	FeatureWithin:       {"messages[1]", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"system","content":"s"},` + after, nil},
	FeatureNoTurn:       {"messages", `{"model":"m","messages":[{"role":"system","content":"s"}]}`, nil},
	FeaturePrefill:      {"messages[1]", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a"}]}`, nil},
	FeatureEmptyText:    {"", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"x"}]}]}`, nil},
	FeatureName:         {"messages[0].name", `{"model":"m","messages":[{"role":"user","name":"n","content":"x"}]}`, nil},
	FeatureImage:        {"", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"auto"}}]}]}`, nil},
	FeatureImageKind:    {"messages[0].content[0].image_url.url", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,AAAA"}}]}]}`, nil},
	FeatureImageURL:     {"messages[0].content[0].image_url.url", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a/b.png"}}]}]}`, nil},
	FeatureImageDetail:  {"messages[0].content[0].image_url.detail", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]}]}`, nil},
	FeatureDocument:     {"", `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}]}]}`, nil},
	FeatureFile:         {"messages[0].content[0].file.file_id", `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`, nil},
	FeatureAudioInput:   {"messages[0].content[0]", `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, nil},
	FeatureAudioOther:   {"messages[0].content[0].input_audio", `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"flac"}}]}]}`, nil},
	FeatureSearchResult: {"messages[0].content[0]", `{"model":"m","messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://a/b"}}]}]}`, nil},
	FeatureCall:         {"", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c 1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c 1","content":"r"}]}`, nil},
	FeatureArguments:    {"messages[1].tool_calls[0].function.arguments", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]}`, nil},
	FeatureResult:       {"", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"},{"role":"tool","tool_call_id":"d","content":[{"type":"text","text":"r"}]}]}`, nil},
	FeatureOrphan:       {"messages[1].tool_call_id", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c","content":"r"}]}`, nil},
	FeatureForeign:      {"messages[1].reasoning_details", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","data":"gemini:c2ln","index":0}],"content":"a"},` + after, nil},
	FeatureReasoning:    {"messages[1].reasoning_content", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"t","content":"a"},` + after, nil},
	FeatureSigned:       {"messages[1].reasoning_details", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"anthropic:s","index":0},{"type":"reasoning.encrypted","data":"ZA==","format":"anthropic-claude-v1","index":1}],"content":"a"},` + after, nil},
	FeatureOpenAISealed: {"messages[1].reasoning_details", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","data":"rs_1:gAAAAABo","index":0}],"content":"a"},` + after, nil},
	FeatureRefusalText:  {"messages[1].refusal", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","refusal":"no"},` + after, nil},
	FeatureSpoken:       {"messages[1].audio", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","audio":{"id":"a"},"content":"a"},` + after, nil},
	FeatureAnnotations:  {"messages[1].annotations", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","annotations":[{"type":"url_citation"}],"content":"a"},` + after, nil},
	FeatureTools:        {"", chat + `,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}},{"type":"function","function":{"name":"g"}}]}`, nil},
	FeatureCustomTool:   {"tools[0]", chat + `,"tools":[{"type":"custom","custom":{"name":"f"}}]}`, nil},
	FeatureServerTool:   {"tools[0]", chat + `,"tools":[{"type":"web_search"}]}`, nil},
	FeatureFunctions:    {"functions", chat + `,"functions":[{"name":"f"}]}`, nil},
	FeatureChoice:       {"", chat + `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`, nil},
	FeatureUndeclared:   {"", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"},{"role":"tool","tool_call_id":"d","content":"r"}]}`, nil},
	FeatureChoiceless:   {"tool_choice", chat + `,"tool_choice":"required"}`, nil},
	FeatureNoCalls:      {"tool_choice", chat + `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"}`, nil},
	FeatureAllowedTools: {"tool_choice", chat + `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}}`, nil},
	FeatureSerial:       {"", chat + `,"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false}`, nil},
	FeatureMaxOutput:    {"", chat + `,"max_completion_tokens":9,"max_tokens":7}`, nil},
	FeatureTemperature:  {"", chat + `,"temperature":0.5}`, nil},
	FeatureHot:          {"temperature", chat + `,"temperature":1.5}`, nil},
	FeatureTopP:         {"", chat + `,"top_p":0.5}`, nil},
	FeatureTopK:         {"", chat + `,"top_k":5}`, nil},
	FeatureSeed:         {"seed", chat + `,"seed":5}`, nil},
	FeaturePenalty:      {"presence_penalty", chat + `,"presence_penalty":0.5,"frequency_penalty":0}`, nil},
	FeatureLogitBias:    {"logit_bias", chat + `,"logit_bias":{"1":-100}}`, nil},
	FeatureSampling:     {"min_p", chat + `,"min_p":0.1}`, nil},
	FeatureStop:         {"", chat + `,"stop":["a","b"]}`, nil},
	FeatureStops:        {"stop", chat + `,"stop":["a","b","c","d","e","f"]}`, nil},
	FeatureBlankStop:    {"stop[1]", chat + `,"stop":["a","\n"]}`, nil},
	FeatureChoices:      {"n", chat + `,"n":2}`, nil},
	FeatureManyChoices:  {"n", chat + `,"n":9}`, nil},
	FeatureLogprobs:     {"logprobs", chat + `,"logprobs":true}`, nil},
	FeatureSchema:       {"", chat + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}}`, nil},
	FeatureObject:       {"response_format", chat + `,"response_format":{"type":"json_object"}}`, nil},
	FeatureFormatNote:   {"response_format.json_schema.description", chat + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","schema":{"type":"object"}}}}`, nil},
	FeatureGrammar:      {"guided_regex", chat + `,"guided_regex":"a+"}`, nil},
	FeatureEffort:       {"", chat + `,"reasoning_effort":"high"}`, nil},
	FeatureMinimal:      {"reasoning_effort", chat + `,"reasoning_effort":"minimal"}`, nil},
	FeatureNoThinking:   {"", chat + `,"reasoning_effort":"none"}`, nil},
	FeatureVerbosity:    {"verbosity", chat + `,"verbosity":"low"}`, nil},
	FeaturePrediction:   {"prediction", chat + `,"prediction":{"type":"content","content":"x"}}`, nil},
	FeatureAudio:        {"modalities", chat + `,"modalities":["text","audio"]}`, nil},
	FeatureUser:         {"", chat + `,"safety_identifier":"u"}`, nil},
	FeatureSecondUser:   {"user", chat + `,"safety_identifier":"u","user":"v"}`, nil},
	FeatureMetadata:     {"metadata", chat + `,"metadata":{"a":"b"}}`, nil},
	FeatureCache:        {"messages[0].content[0].prompt_cache_breakpoint", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit"}}]}]}`, nil},
	FeatureCacheKey:     {"prompt_cache_key", chat + `,"prompt_cache_key":"k"}`, nil},
	FeatureStandard:     {"", chat + `,"service_tier":"default"}`, nil},
	FeatureTier:         {"service_tier", chat + `,"service_tier":"priority"}`, nil},
	FeatureWebSearch:    {"web_search_options", chat + `,"web_search_options":{}}`, nil},
	FeatureModeration:   {"moderation", chat + `,"moderation":{"model":"m"}}`, nil},
	FeatureStore:        {"store", chat + `,"store":true}`, nil},
	FeatureObfuscation:  {"stream_options.include_obfuscation", chat + `,"stream":true,"stream_options":{"include_obfuscation":true}}`, nil},
	FeatureBeta:         {"openai-beta:x?v1", chat + `}`, http.Header{"Openai-Beta": {"x=v1"}}},
	FeatureUnknown:      {"new_thing", chat + `,"new_thing":1}`, nil},
}

// anthropicTells is the same for the other dialect.
var anthropicTells = map[Feature]tells{
	FeatureText:            {"", asked + `}`, nil},
	FeatureInstructions:    {"", asked + `,"system":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, nil},
	FeatureWithin:          {"", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"system","content":"s"},` + after, nil},
	FeaturePrefill:         {"messages[1]", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a"}]}`, nil},
	FeatureImage:           {"", turn(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`), nil},
	FeatureImageKind:       {"messages[0].content[0].source", turn(`{"type":"image","source":{"type":"base64","media_type":"image/heic","data":"AAAA"}}`), nil},
	FeatureImageURL:        {"messages[0].content[0].source.url", turn(`{"type":"image","source":{"type":"url","url":"https://a/b.png"}}`), nil},
	FeatureDocument:        {"", turn(`{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`), nil},
	FeatureDocumentText:    {"messages[0].content[0]", turn(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`), nil},
	FeatureDocumentURL:     {"messages[0].content[0].source.url", turn(`{"type":"document","source":{"type":"url","url":"https://a/b.pdf"}}`), nil},
	FeatureDocumentContext: {"messages[0].content[0].context", turn(`{"type":"document","context":"c","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`), nil},
	FeatureCitations:       {"messages[0].content[0].citations", turn(`{"type":"document","citations":{"enabled":true},"source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`), nil},
	FeatureFile:            {"messages[0].content[0].source", turn(`{"type":"image","source":{"type":"file","file_id":"f"}}`), nil},
	FeatureSearchResult:    {"messages[0].content[0]", turn(`{"type":"search_result","title":"t","source":"s","content":[]}`), nil},
	FeatureCall:            {"", called(`{"type":"tool_use","id":"c","name":"f","input":{"a":1}}`, `{"type":"tool_result","tool_use_id":"c","content":"r"}`), nil},
	FeatureResult:          {"", called(`{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"tool_use","id":"d","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"c","content":"r"},{"type":"tool_result","tool_use_id":"d"},{"type":"text","text":"and?"}`), nil},
	FeatureResultMedia:     {"messages[2].content[0].content[1]", called(`{"type":"tool_use","id":"c","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`), nil},
	FeatureResultError:     {"messages[2].content[0].is_error", called(`{"type":"tool_use","id":"c","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"r"}`), nil},
	FeatureResultOrder:     {"messages[2].content[1]", called(`{"type":"tool_use","id":"c","name":"f","input":{}}`, `{"type":"text","text":"first"},{"type":"tool_result","tool_use_id":"c","content":"r"}`), nil},
	FeatureOrphan:          {"messages[0].content[0].tool_use_id", turn(`{"type":"tool_result","tool_use_id":"c","content":"r"}`), nil},
	FeatureForeign:         {"messages[1].content[0]", called(`{"type":"redacted_thinking","data":"gemini:c2ln"},{"type":"text","text":"a"}`, `{"type":"text","text":"y"}`), nil},
	FeatureOpenAISealed:    {"messages[1].content[0]", called(`{"type":"thinking","thinking":"t","signature":"rs_1:gAAAAABo"},{"type":"text","text":"a"}`, `{"type":"text","text":"y"}`), nil},
	FeatureReasoning:       {"messages[1].content[0]", called(`{"type":"thinking","thinking":"t","signature":""},{"type":"text","text":"a"}`, `{"type":"text","text":"y"}`), nil},
	FeatureSigned:          {"messages[1].content[0]", called(`{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"}`, `{"type":"text","text":"y"}`), nil},
	FeatureMixedAnswer:     {"messages[1].content[1]", called(`{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"text","text":"a"}`, `{"type":"tool_result","tool_use_id":"c","content":"r"}`), nil},
	FeatureTools:           {"", asked + `,"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true},{"type":"custom","name":"g","input_schema":{"type":"object"}}]}`, nil},
	FeatureToolName:        {"tools[0].name", asked + `,"tools":[{"name":"` + strings.Repeat("f", 65) + `","input_schema":{"type":"object"}}]}`, nil},
	FeatureServerTool:      {"tools[0]", asked + `,"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, nil},
	FeatureToolExamples:    {"tools[0].input_examples", asked + `,"tools":[{"name":"f","input_schema":{"type":"object"},"input_examples":[{"a":1}]}]}`, nil},
	FeatureEager:           {"", asked + `,"tools":[{"name":"f","input_schema":{"type":"object"},"eager_input_streaming":true}]}`, nil},
	FeatureBetaField:       {"", asked + `}`, http.Header{"Anthropic-Beta": {"pdfs-2024-09-25, prompt-caching-2024-07-31", "fine-grained-tool-streaming-2025-05-14"}}},
	FeatureDeferred:        {"tools[0].defer_loading", asked + `,"tools":[{"name":"f","input_schema":{"type":"object"},"defer_loading":true}]}`, nil},
	FeatureChoice:          {"", asked + `,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"}}`, nil},
	FeatureUndeclared:      {"", called(`{"type":"tool_use","id":"c","name":"f","input":{"a":1}}`, `{"type":"tool_result","tool_use_id":"c","content":"r"}`), nil},
	FeatureChoiceless:      {"tool_choice", asked + `,"tool_choice":{"type":"any"}}`, nil},
	FeatureNoCalls:         {"tool_choice", asked + `,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}}`, nil},
	FeatureSerial:          {"", asked + `,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`, nil},
	FeatureMaxOutput:       {"", asked + `}`, nil},
	FeatureWarm:            {"max_tokens", `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"x"}]}`, nil},
	FeatureTemperature:     {"", asked + `,"temperature":0.5}`, nil},
	FeatureTopP:            {"", asked + `,"top_p":0.5}`, nil},
	FeatureTopK:            {"top_k", asked + `,"top_k":5}`, nil},
	FeatureStop:            {"", asked + `,"stop_sequences":["a","b"]}`, nil},
	FeatureStops:           {"stop_sequences", asked + `,"stop_sequences":["a","b","c","d","e","f"]}`, nil},
	FeatureSchema:          {"", asked + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}`, nil},
	FeatureNotStrict:       {"output_config.format", asked + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}}}`, nil},
	FeatureFormats:         {"output_format", asked + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},"output_format":{"type":"json_schema","schema":{"type":"object","properties":{}}}}`, nil},
	FeatureEffortOff:       {"output_config.effort", asked + `,"thinking":{"type":"disabled"},"output_config":{"effort":"high"}}`, nil},
	FeatureEffort:          {"", asked + `,"output_config":{"effort":"high"}}`, nil},
	FeatureNoThinking:      {"", asked + `,"thinking":{"type":"disabled"}}`, nil},
	FeatureAdaptive:        {"", asked + `,"thinking":{"type":"adaptive"}}`, nil},
	FeatureBudget:          {"thinking.budget_tokens", asked + `,"thinking":{"type":"enabled","budget_tokens":5000}}`, nil},
	FeatureDisplay:         {"thinking.display", asked + `,"thinking":{"type":"adaptive","display":"omitted"}}`, nil},
	FeatureUser:            {"", asked + `,"metadata":{"user_id":"u"}}`, nil},
	FeatureCache:           {"cache_control", asked + `,"cache_control":{"type":"ephemeral"}}`, nil},
	FeatureMark:            {"system[0].cache_control", asked + `,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`, nil},
	FeatureStandard:        {"", asked + `,"service_tier":"standard_only"}`, nil},
	FeatureTier:            {"speed", asked + `,"speed":"fast"}`, nil},
	FeatureGeo:             {"inference_geo", asked + `,"inference_geo":"us"}`, nil},
	FeatureContainer:       {"mcp_servers", asked + `,"mcp_servers":[{"type":"url","url":"https://a"}]}`, nil},
	FeatureContext:         {"context_management", asked + `,"context_management":{"edits":[]}}`, nil},
	FeatureDiagnostics:     {"diagnostics", asked + `,"diagnostics":{"previous_message_id":"m"}}`, nil},
	FeatureBeta:            {"anthropic-beta:context-1m-2025-08-07", asked + `}`, http.Header{"Anthropic-Beta": {"pdfs-2024-09-25,context-1m-2025-08-07"}}},
	FeatureUnknown:         {"messages[0].content[0].new_thing", turn(`{"type":"text","text":"x","new_thing":1}`), nil},
}

func turn(blocks string) string {
	return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + blocks + `]}]}`
}

func called(answer, then string) string {
	return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + answer + `]},{"role":"user","content":[` + then + `]}]}`
}

// translate puts a body into the older of the other dialects; a loss is told and not
// refused.
// got is what the URLs of images and documents in requests have led to.
var got = map[string]Media{"https://a/b.png": {Type: "image/png", Data: "AAAA"}, "https://a/b.pdf": {Type: "application/pdf", Data: "BBBB"}}

func translate(t testing.TB, op wire.Operation, body string, header http.Header, warn bool) *Translation {
	t.Helper()
	to := wire.Chat
	if op == wire.Chat {
		to = wire.Messages
	}
	return translateInto(t, op, to, body, header, warn)
}

func translateInto(t testing.TB, op, to wire.Operation, body string, header http.Header, warn bool) *Translation {
	t.Helper()
	h, err := scan(op, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return Translate(h, []byte(body), header, to, Options{Warn: warn, MaxOutput: 100, Media: got})
}

// Every field that a dialect's clients have meets the fate that the table of every
// other gives it, at its path, under both policies; what the table keeps is told of in
// no way.
func TestEveryFieldMeetsItsFate(t *testing.T) {
	for _, p := range pairs() {
		from, to := p.client.codec, p.backend.codec
		for _, f := range from.fields {
			eg, ok := p.client.examples[f.feature]
			if !ok {
				t.Errorf("%s: %s has no example here", from.op, f.feature)
				continue
			}
			want := to.carriage(from, f.feature)
			warned := translateInto(t, from.op, to.op, eg.body, eg.header, true)
			strict := translateInto(t, from.op, to.op, eg.body, eg.header, false)
			if (warned.Err != nil) != (want.fate == Refused) || (strict.Err != nil) != (want.fate != Kept) {
				t.Errorf("%v, %s: warn gives %v, strict %v, and the table says %v", p, f.feature, warned.Err, strict.Err, want.fate)
			}
			var got Loss
			if w := warned.Report.Worst(); w != nil {
				got = *w
			}
			wrong := got.Path != eg.path && (eg.path != "" || got.Path == "")
			if got.Fate != want.fate || want.fate != Kept && wrong || len(warned.Report) > 1 && f.feature != FeatureSecondUser { // of which the first may be lost too
				t.Errorf("%v, %s: got %+v, want %v at %q", p, f.feature, warned.Report, want.fate, eg.path)
			}
			if strict.Err != nil && (strict.Err.Param != got.Path || strict.Err.Hint == "") {
				t.Errorf("%v, %s: refused with %v", p, f.feature, strict.Err)
			}
		}
		for _, f := range slices.Sorted(maps.Keys(p.client.examples)) {
			if !slices.ContainsFunc(from.fields, func(x field) bool { return x.feature == f }) {
				t.Errorf("%s: no field is %s", from.op, f)
			}
		}
	}
}

// Nothing that changes cost, safety, determinism or structure is merely told of.
func TestWhatMattersIsRefused(t *testing.T) {
	for _, f := range []Feature{
		FeatureSeed, FeatureChoices, FeatureManyChoices, FeatureLogprobs, FeatureLogitBias, FeaturePenalty, FeatureSampling, FeatureHot, FeatureObject, FeatureGrammar,
		FeatureCustomTool, FeatureServerTool, FeatureAllowedTools, FeatureBlankStop, FeatureTier, FeatureGeo, FeatureStore, FeatureModeration,
		FeatureWebSearch, FeatureAudio, FeatureAudioInput, FeatureAudioOther, FeatureFile, FeatureCitations, FeaturePrefill, FeatureContainer, FeatureContext, FeatureWarm, FeatureUnknown,
	} {
		for _, c := range codecs {
			if got := c.carriage(&codec{}, f); got.fate != Refused && got.fate != Kept {
				t.Errorf("%s: %s is %v", c.dialect, f, got.fate)
			}
		}
	}
}

// Requests whose members ask for nothing: they have the value that leaving them out
// means, or are null.
var (
	openaiNothing = []string{
		chat + `,"n":1,"seed":null,"logprobs":false,"presence_penalty":0,"frequency_penalty":0.0,"logit_bias":{},"store":false,"modalities":["text"],"verbosity":"medium","metadata":{},"new_thing":null,"service_tier":"auto","response_format":{"type":"text"},"stream_options":null,"tools":null,"tool_choice":null,"stop":null,"user":""}`,
		chat + `,"modalities" : [ "text" ], "logit_bias" : { } }`,
	}
	anthropicNothing = []string{
		turn(`{"type":"document","citations" : { "enabled" : false },"source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`),
		asked + `,"service_tier":"auto","speed":"standard","thinking":null,"tool_choice":null,"mcp_servers":[],"new_thing":null,"system":""}`,
	}
)

// A value that leaving it out means asks for nothing, and neither does null.
func TestNothingIsAsked(t *testing.T) {
	for _, p := range pairs() {
		if len(p.client.nothing) == 0 {
			t.Errorf("%v has no request here", p)
		}
		for _, body := range p.client.nothing {
			if tr := translateInto(t, p.client.codec.op, p.backend.codec.op, body, nil, false); tr.Err != nil || len(tr.Report) != 0 {
				t.Errorf("%v: %s: %v %v", p, body, tr.Err, tr.Report)
			}
		}
	}
}

// What is told of a request is bounded, and fit for a header and a log.
func TestReportIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[`)
	for range 500 {
		b.WriteString(`{"role":"user","name":"n","content":"x"},`)
	}
	b.WriteString(`{"role":"user","content":"x","a\"b\r\n,=é` + strings.Repeat("z", 200) + `":1}]}`)
	tr := translate(t, wire.Chat, b.String(), nil, true)
	if len(tr.Report) > maxLosses || len(tr.Report.Paths()) > maxHeader+32 {
		t.Errorf("%d losses are told, in %d bytes", len(tr.Report), len(tr.Report.Paths()))
	}
	if tr.Err == nil || !strings.HasPrefix(tr.Err.Param, "messages[500].a?b????") || len(tr.Err.Param) > 100 {
		t.Errorf("the unknown member is told as %v", tr.Err)
	}
	for _, c := range tr.Report.Paths() {
		if c < ' ' || c > '~' {
			t.Errorf("%q stands in a header", c)
		}
	}
}

// A request that has as many losses as it has room for costs no more than its size.
func TestLossesCostNoMoreThanTheirBytes(t *testing.T) {
	for _, message := range []string{
		`{"role":"user","content":"x","u":1},`,
		`{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"x","prompt_cache_breakpoint":{}}]},`,
		`{"role":"assistant","tool_calls":[{"id":"a b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a b","content":"r"},`,
	} {
		took := func(n int) float64 {
			body := []byte(`{"model":"m","messages":[` + strings.Repeat(message, n) + `{"role":"user","content":"x"}]}`)
			h, err := scan(wire.Chat, body)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			Translate(h, body, nil, wire.Messages, Options{Warn: true})
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
		}
		if few, many := took(500), took(10_000); many > 3*few {
			t.Errorf("%s: 10,000 of them allocate %.0f bytes for each of theirs, and 500 %.0f", message, many, few)
		}
	}
}
