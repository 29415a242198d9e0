package hook

// responsesItem is the texts of an item, of a request or an answer.
var responsesItem = []string{
	"content", "content[].text", "content[].refusal", "content[].transcript", "content[].logprobs:empty", "summary[].text",
	"arguments:json", "input", "code", "output", "output[].text", "error", "queries[]",
	"action.**", "operation.**", "outputs.**", "results.**",
}

// responsesRow is OpenAI's Responses. Its events tell a text in parts, then whole when it
// has ended, with its part, with its item, and with the response.
var responsesRow = Row{
	Request: append(beneath("input[]", responsesItem), "input", "instructions", "tools[].description", "prompt.variables.**"),
	Answer:  beneath("output[]", responsesItem),
	Stream: []Delta{
		responsesDelta("output_text", "", `"content_index":$1,"logprobs":[],`),
		responsesDelta("refusal", "", `"content_index":$1,`),
		responsesDelta("reasoning_text", "", `"content_index":$1,`),
		responsesDelta("reasoning_summary_text", "", `"summary_index":$2,`),
		responsesDelta("function_call_arguments", ":json", ""),
		responsesDelta("mcp_call_arguments", ":json", ""),
		responsesDelta("custom_tool_call_input", "", ""),
		responsesDelta("code_interpreter_call_code", "", ""),
		{Path: "delta?type=response.audio.transcript.delta", Event: "response.audio.transcript.delta", Alone: `"type":"response.audio.transcript.delta","delta":$text`},
	},
	Whole: append(append([]string{
		"text", "refusal", "arguments:json", "input", "code?type=response.code_interpreter_call_code.done", "logprobs:empty",
		"part.text", "part.refusal", "part.transcript", "part.logprobs:empty",
	}, beneath("item", responsesItem)...), beneath("response.output[]", responsesItem)...),
	Ends: []string{
		"type=response.output_text.done", "type=response.refusal.done", "type=response.reasoning_text.done", "type=response.reasoning_summary_text.done",
		"type=response.function_call_arguments.done", "type=response.mcp_call_arguments.done", "type=response.custom_tool_call_input.done",
		"type=response.code_interpreter_call_code.done", "type=response.audio.transcript.done", "type=response.content_part.done", "type=response.output_item.done",
		"type=response.completed", "type=response.incomplete", "type=response.failed", "type=response.cancelled", "type=error",
	},
	Index:  []string{"output_index", "content_index", "summary_index"},
	With:   []string{"item_id"},
	Number: "sequence_number",
	Again:  true,
}

// responsesDelta is the events of one kind of text.
func responsesDelta(kind, how, index string) Delta {
	event := "response." + kind + ".delta"
	return Delta{Path: "delta?type=" + event + how, Event: event, Alone: `"type":"` + event + `","output_index":$0,` + index + `"delta":$text`}
}
