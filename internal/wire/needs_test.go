package wire

import (
	"strings"
	"testing"
)

// What each member of a request makes it need, in both dialects.
func TestNeeds(t *testing.T) {
	const (
		chat     = `{"model":"m","messages":[],%}`
		messages = `{"model":"m","max_tokens":5,"messages":[],%}`
	)
	for _, tt := range []struct {
		op         Operation
		body, want string
	}{
		{Chat, `"stream":false`, ""},
		{Chat, `"stream":true`, "stream"},
		{Chat, `"n":1`, ""},
		{Chat, `"n":2`, "n"},
		{Completions, `"prompt":"a","best_of":2`, "n"},
		{Completions, `"prompt":["a","b"]`, ""},

		{Chat, `"tools":[]`, ""},
		{Chat, `"tools":[{"type":"function","function":{"name":"f"}}]`, "tools"},
		{Chat, `"functions":[{"name":"f"}]`, "tools"},
		{Chat, `"tools":[{"type":"function"}],"parallel_tool_calls":null`, "tools"},
		{Chat, `"tools":[{"type":"function"}],"parallel_tool_calls":false`, "tools"},
		{Chat, `"parallel_tool_calls":true,"tools":[{"type":"function"}]`, "tools parallel_tools"},
		{Chat, `"parallel_tool_calls":true`, ""},
		{Chat, `"tools":[{"type":"web_search"}]`, "server_tools"},
		{Chat, `"web_search_options":{}`, "server_tools"},
		{Messages, `"tools":[{"name":"f","input_schema":{}}]`, "tools"},
		{Messages, `"tools":[{"type":"bash_20250124","name":"bash"}]`, "tools"},
		{Messages, `"tools":[{"type":"web_search_20250305","name":"w"}]`, "server_tools"},
		{Messages, `"mcp_servers":[]`, ""},
		{Messages, `"mcp_servers":[{"url":"https://x"}]`, "server_tools"},

		{Chat, `"response_format":null`, ""},
		{Chat, `"response_format":{"type":"text"}`, ""},
		{Chat, `"response_format":{"type":"json_object"}`, "json_object"},
		{Chat, `"response_format":{"json_schema":{"schema":{"type":"json_object"}},"type":"json_schema"}`, "json_schema"},
		{Chat, `"guided_regex":"a+"`, "json_schema"},
		{Chat, `"guided_json":null`, ""},
		{Messages, `"output_config":{"format":{"type":"json_schema","schema":{}}}`, "json_schema"},
		{Messages, `"output_config":{"effort":"low"}`, "reasoning"},
		{Messages, `"output_format":{"type":"json_schema"}`, "json_schema"},

		{Chat, `"reasoning_effort":"high"`, "reasoning"},
		{Chat, `"reasoning_effort":"none"`, ""},
		{Chat, `"reasoning_effort":null`, ""},
		{Messages, `"thinking":{"type":"enabled","budget_tokens":2048}`, "reasoning"},
		{Messages, `"thinking":{"type":"adaptive"}`, "reasoning"},
		{Messages, `"thinking":{"type":"disabled"}`, ""},

		{Chat, `"logprobs":false`, ""},
		{Chat, `"logprobs":true,"top_logprobs":3`, "logprobs"},
		{Completions, `"prompt":"a","logprobs":3`, "logprobs"},

		{Chat, `"temperature":1,"top_p":1.0,"presence_penalty":0,"frequency_penalty":0.00,"repetition_penalty":1.0,"top_k":-1,"min_p":0,"seed":null,"logit_bias":{ },"stop":null`, ""},
		{Chat, `"temperature":0`, "temperature"},
		{Chat, `"temperature":1.01`, "temperature"},
		{Chat, `"temperature":10`, "temperature"},
		{Chat, `"temperature":1e0`, "temperature"},
		{Chat, `"temperature":null`, ""},
		{Chat, `"top_p":0.9,"top_k":40,"min_p":0.05`, "top_p top_k min_p"},
		{Chat, `"presence_penalty":0.1,"frequency_penalty":-1,"repetition_penalty":1.1`, "presence_penalty frequency_penalty repetition_penalty"},
		{Chat, `"seed":0,"logit_bias":{"5":1},"stop":["a"]`, "seed logit_bias stop"},
		{Chat, `"stop":[]`, ""},
		{Chat, `"stop":"x"`, "stop"},
		{Messages, `"temperature":0.5,"top_k":1,"stop_sequences":["a"]`, "temperature top_k stop"},
		{Messages, `"stop_sequences":[]`, ""},

		{Chat, `"modalities":["text"]`, ""},
		{Chat, `"modalities":["text","audio"]`, "audio_output"},
		{Chat, `"audio":{"voice":"a"}`, "audio_output"},
		{Chat, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]`, "image media_url"},
		{Chat, `"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]`, "audio"},
		{Chat, `"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]`, "file"},
		{Chat, `"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x/y.mp4"}}]}]`, "video media_url"},
		{Messages, `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]`, "image"},
		{Messages, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}]}]`, "file media_url"},
		{Messages, `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}]}]`, "image media_url"},

		{Messages, `"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`, "cache"},
		{Messages, `"system":[{"type":"text","text":"a","cache_control":null}]`, ""},
		{Messages, `"tools":[{"name":"f","cache_control":{"type":"ephemeral"},"input_schema":{}}]`, "tools cache"},
		{Messages, `"tools":[{"name":"f","cache_control":null,"input_schema":{"cache_control":1}}]`, "tools"},
		{Messages, `"cache_control":{"type":"ephemeral"}`, "cache"},
		{CountTokens, `"stop":"not of this operation"`, "count_tokens"},
	} {
		body := strings.Replace(chat, "%", tt.body, 1)
		switch {
		case strings.HasPrefix(tt.body, `"messages"`):
			body = `{"model":"m","max_tokens":5,` + tt.body + `}`
		case tt.op == Messages:
			body = strings.Replace(messages, "%", tt.body, 1)
		}
		if got := strings.Join(mustScan(t, tt.op, body).Needs.Names(), " "); got != tt.want {
			t.Errorf("%s of %s: got needs %q, want %q", tt.body, tt.op, got, tt.want)
		}
	}
}

// What a backend would read from its own disk is refused, however it is spelt.
func TestMediaAddresses(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://x/y.png": true, "HTTP://x/y.png": true, "gs://bucket/y.png": true, "data:image/png;base64,aGk=": true, `https:\/\/x\/y.png`: true,
		"file:///etc/passwd": false, "FILE:///etc/passwd": false, `\u0066ile:///etc/passwd`: false, "/etc/passwd": false, "y.png": false, "": false, "ftp://x/y": false, " file:///x": false,
	} {
		for _, body := range []string{
			`{"type":"image_url","image_url":{"url":"` + url + `"}}`, `{"type":"image_url","image_url":"` + url + `"}`, `{"type":"video_url","video_url":{"url":"` + url + `"}}`,
		} {
			_, err := Scan(Chat, []byte(`{"model":"m","messages":[{"role":"user","content":[`+body+`]}]}`))
			if (err == nil) != ok {
				t.Errorf("%s: %v", body, err)
			}
		}
	}
}
