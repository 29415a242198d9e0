package hook

import (
	"fmt"
	"strings"

	"sluice/internal/wire"
)

// Row says which values of an operation's documents are texts. To have hooks look into
// a further operation is to add its row.
//
// A path is as [node.compile] reads it. Behind a colon stands how the value is treated:
// json for a text that is a JSON document itself, fixed for one that a signature covers,
// cut for what repeats a text in another form.
type Row struct {
	Request []string
	Answer  []string // of an answer in one piece

	// Of a stream:
	Stream   []Delta
	Whole    []string // texts that an event repeats whole, which are redacted as such
	Ends     []string // what ends the texts of its index: any value but null, or PATH=VALUE
	Index    []string // members that tell texts of one path apart
	Envelope []string // members of an event that one made of it has too
	With     []string // members of the last event of a text that one made of that has too
	Number   string   // member that counts events; empty where nothing does
	Again    bool     // Whole repeats what came in parts: services have decided, or are asked
}

// Delta is a text that a stream brings in parts.
type Delta struct {
	Path  string
	Event string // name of the event that carries a part by itself, empty for none
	// Alone is such an event's members beside the envelope's: $0 and $1 are the
	// index, $text the part. Deltas with the same Alone and Event are one text.
	Alone string
	Early bool // it ends where another text of its outermost index begins
}

// rows is by operation. The zero row is that of an operation into which no hook can
// look: a request that a hook is to look into is refused there.
var rows = [wire.NumOperations]Row{
	wire.Chat:        chatRow,
	wire.Completions: completionsRow,
	wire.Embeddings:  {Request: []string{"input", "input[]"}},
	wire.Messages:    messagesRow,
	wire.CountTokens: {Request: messagesRow.Request},

	wire.ImageGenerations: {Request: []string{"prompt"}, Answer: []string{"data[].revised_prompt"}},
	wire.Speech:           {Request: []string{"input", "instructions"}},
	wire.Moderations:      {Request: []string{"input", "input[]", "input[].text"}},
	wire.Rerank:           {Request: []string{"query", "documents[]", "documents[].text"}, Answer: []string{"results[].document", "results[].document.text"}},

	wire.Responses:      responsesRow,
	wire.ResponseGet:    responsesRow,
	wire.ResponseCancel: responsesRow,
	wire.ResponseItems:  {Answer: beneath("data[]", responsesItem)},

	wire.GenerateContent: geminiRow,
	wire.CountContent:    {Request: append(beneath("generateContentRequest", geminiRow.Request), geminiRow.Request...)},
}

// beneath is paths below a member.
func beneath(member string, paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, member+"."+p)
	}
	return out
}

var chatRow = Row{
	Request: []string{
		"messages[].content", "messages[].content[].text", "messages[].content[].refusal", "messages[].refusal",
		"messages[].reasoning_content", "messages[].reasoning",
		"messages[].tool_calls[].function.arguments:json", "messages[].tool_calls[].custom.input", "messages[].function_call.arguments:json",
		"tools[].function.description", "functions[].description", "prediction.content", "prediction.content[].text", "documents.**",
	},
	Answer: []string{
		"choices[].message.content", "choices[].message.content[].text", "choices[].message.refusal",
		"choices[].message.reasoning_content", "choices[].message.reasoning", "choices[].message.reasoning_details[].text", "choices[].message.reasoning_details[].summary",
		"choices[].message.tool_calls[].function.arguments:json", "choices[].message.tool_calls[].custom.input",
		"choices[].message.function_call.arguments:json", "choices[].message.audio.transcript", "choices[].logprobs:cut",
	},
	Stream: []Delta{
		{Path: "choices[].delta.reasoning_content", Alone: `"choices":[{"index":$0,"delta":{"reasoning_content":$text},"finish_reason":null}]`, Early: true},
		{Path: "choices[].delta.reasoning", Alone: `"choices":[{"index":$0,"delta":{"reasoning":$text},"finish_reason":null}]`, Early: true},
		{Path: "choices[].delta.content", Alone: `"choices":[{"index":$0,"delta":{"content":$text},"finish_reason":null}]`},
		{Path: "choices[].delta.refusal", Alone: `"choices":[{"index":$0,"delta":{"refusal":$text},"finish_reason":null}]`},
		{Path: "choices[].delta.tool_calls[].function.arguments:json", Alone: `"choices":[{"index":$0,"delta":{"tool_calls":[{"index":$1,"function":{"arguments":$text}}]},"finish_reason":null}]`},
		{Path: "choices[].delta.tool_calls[].custom.input", Alone: `"choices":[{"index":$0,"delta":{"tool_calls":[{"index":$1,"custom":{"input":$text}}]},"finish_reason":null}]`},
		{Path: "choices[].delta.function_call.arguments:json", Alone: `"choices":[{"index":$0,"delta":{"function_call":{"arguments":$text}},"finish_reason":null}]`},
		{Path: "choices[].delta.audio.transcript", Alone: `"choices":[{"index":$0,"delta":{"audio":{"transcript":$text}},"finish_reason":null}]`},
	},
	Whole:    []string{"choices[].delta.reasoning_details:cut", "choices[].logprobs:cut"},
	Ends:     []string{"choices[].finish_reason"},
	Index:    []string{"index"},
	Envelope: []string{"id", "object", "created", "model", "system_fingerprint"},
}

var completionsRow = Row{
	Request: []string{"prompt", "prompt[]", "suffix"},
	Answer:  []string{"choices[].text", "choices[].logprobs:cut"},
	Stream: []Delta{
		{Path: "choices[].text", Alone: `"choices":[{"index":$0,"text":$text,"logprobs":null,"finish_reason":null}]`},
	},
	Whole:    []string{"choices[].logprobs:cut"},
	Ends:     []string{"choices[].finish_reason"},
	Index:    []string{"index"},
	Envelope: []string{"id", "object", "created", "model", "system_fingerprint"},
}

var messagesRow = Row{
	Request: []string{
		"system", "system[].text", "messages[].content", "messages[].content[].text", "messages[].content[].thinking:fixed",
		"messages[].content[].input.**", "messages[].content[].content", "messages[].content[].content[].text",
		"messages[].content[].source{type=text}.data", "messages[].content[].source.content", "messages[].content[].source.content[].text",
		"messages[].content[].content[].source{type=text}.data", "messages[].content[].title", "messages[].content[].context", "tools[].description",
	},
	Answer: []string{"content[].text", "content[].thinking", "content[].input.**", "content[].citations[].cited_text"},
	Stream: []Delta{
		{Path: "delta.text", Event: "content_block_delta", Alone: `"type":"content_block_delta","index":$0,"delta":{"type":"text_delta","text":$text}`},
		{Path: "content_block.text", Event: "content_block_delta", Alone: `"type":"content_block_delta","index":$0,"delta":{"type":"text_delta","text":$text}`},
		{Path: "delta.thinking", Event: "content_block_delta", Alone: `"type":"content_block_delta","index":$0,"delta":{"type":"thinking_delta","thinking":$text}`},
		{Path: "delta.partial_json:json", Event: "content_block_delta", Alone: `"type":"content_block_delta","index":$0,"delta":{"type":"input_json_delta","partial_json":$text}`},
	},
	Whole: []string{"delta.citation.cited_text", "content_block.input.**"},
	Ends:  []string{"type=content_block_stop", "type=message_delta", "type=message_stop"},
	Index: []string{"index"},
}

// geminiRow names members in both spellings that the dialect takes.
var geminiRow = Row{
	Request: []string{
		"contents[].parts[].text", "contents.parts[].text", "systemInstruction.parts[].text", "system_instruction.parts[].text",
		"contents[].parts[].functionCall.args.**", "contents[].parts[].function_call.args.**",
		"contents[].parts[].functionResponse.response.**", "contents[].parts[].function_response.response.**",
		"contents[].parts[].executableCode.code", "contents[].parts[].codeExecutionResult.output",
		"tools[].functionDeclarations[].description", "tools[].function_declarations[].description",
	},
	Answer: []string{
		"candidates[].content.parts[].text", "candidates[].content.parts[].functionCall.args.**",
		"candidates[].content.parts[].executableCode.code", "candidates[].content.parts[].codeExecutionResult.output", "candidates[].logprobsResult:cut",
	},
	Stream: []Delta{
		{Path: "candidates[].content.parts[].text", Alone: `"candidates":[{"content":{"parts":[{"text":$text}],"role":"model"},"index":$0}]`},
		{Path: "candidates[].content.parts[].text?thought=true", Alone: `"candidates":[{"content":{"parts":[{"text":$text,"thought":true}],"role":"model"},"index":$0}]`, Early: true},
	},
	Whole: []string{
		"candidates[].content.parts[].functionCall.args.**", "candidates[].content.parts[].executableCode.code",
		"candidates[].content.parts[].codeExecutionResult.output", "candidates[].logprobsResult:cut",
	},
	Ends:     []string{"candidates[].finishReason"},
	Index:    []string{"index"},
	Envelope: []string{"modelVersion", "responseId"},
}

// plan is a row made ready.
type plan struct {
	request, answer, stream *node
	deltas                  []Delta // by rule.flush
	index, envelope, with   []string
	number                  string
	again                   bool
}

// plans is rows made ready: data, as rows is.
var plans = func() (out [wire.NumOperations]*plan) {
	for op := range rows {
		if r := &rows[op]; len(r.Request) > 0 || wire.Operation(op).Stored() {
			out[op] = r.plan()
		}
	}
	return out
}()

// planOf is nil where no hook can look into an operation.
func planOf(op wire.Operation) *plan {
	if int(op) < len(plans) {
		return plans[op]
	}
	return nil
}

func (r *Row) plan() *plan {
	p := &plan{request: &node{}, answer: &node{}, stream: &node{}, index: r.Index, envelope: r.Envelope, with: r.With, number: r.Number, again: r.Again}
	for _, path := range r.Request {
		p.request.named(path, -1)
	}
	for _, path := range r.Answer {
		p.answer.named(path, -1)
	}
	for _, d := range r.Stream {
		p.stream.named(d.Path, p.flush(d))
	}
	for _, path := range r.Whole {
		p.stream.named(path, -1)
	}
	for _, path := range r.Ends {
		path, is, _ := strings.Cut(path, "=")
		p.stream.compile(path, ends(is))
	}
	return p
}

// flush is the place of a delta among those that differ.
func (p *plan) flush(d Delta) int {
	for i := range p.deltas {
		if p.deltas[i].Alone == d.Alone && p.deltas[i].Event == d.Event {
			return i
		}
	}
	p.deltas = append(p.deltas, d)
	return len(p.deltas) - 1
}

func (n *node) named(path string, flush int) {
	path, how, _ := strings.Cut(path, ":")
	r := &rule{flush: flush}
	switch how {
	case "":
	case "json":
		r.treat = asJSON
	case "fixed":
		r.treat = asFixed
	case "cut":
		r.treat = asCut
	case "empty":
		r.treat, r.empty = asCut, true
	default:
		panic(fmt.Sprintf("hook: %q is no treatment of %s", how, path))
	}
	n.compile(path, r)
}

// ends is the rule of what ends texts: the value that it is, or any but null.
func ends(is string) *rule {
	r := &rule{treat: asEnd, flush: -1}
	if is != "" {
		r.is = []string{is}
	}
	return r
}

// Reads reports whether hooks can look into an operation.
func Reads(op wire.Operation) bool { return planOf(op) != nil }
