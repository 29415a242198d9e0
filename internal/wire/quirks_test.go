package wire

import "testing"

// What Mistral is sent: only what it calls otherwise, refuses or wants shorter differs.
func TestQuirks(t *testing.T) {
	q := Quirks{
		Rename:   []Rename{{"max_completion_tokens", "max_tokens"}, {"seed", "random_seed"}},
		Drop:     []Dropped{{Name: "stream_options"}, {Name: "stream"}, {"service_tier", []string{`"default"`}}},
		Labels:   []string{"user", "safety_identifier"},
		ShortIDs: true, Reasoning: ReasoningPart,
	}
	for _, tt := range []struct{ name, body, want string }{
		{"nothing", `{"model":"m", "x" : [1,{"seed":1}]}`, ""},
		{"names", `{"model":"m","seed" : 7,"max_completion_tokens":9}`, `{"model":"m","random_seed" : 7,"max_tokens":9}`},
		{"both names", `{"max_completion_tokens":9,"model":"m","max_tokens":5}`, `{"model":"m","max_tokens":5}`},
		{"an escaped name", `{"model":"m","s\u0065ed":7}`, `{"model":"m","random_seed":7}`},
		{"the first", `{"stream_options":{},"model":"m"}`, `{"model":"m"}`},
		{"the last", `{"model":"m","stream_options":{}}`, `{"model":"m"}`},
		{"between", `{"model":"m","stream_options":{"include_usage":true},"x":1}`, `{"model":"m","x":1}`},
		{"neighbours at the end", `{"model":"m","stream":true,"stream_options":{}}`, `{"model":"m"}`},
		{"all", `{"stream":true,"stream_options":{}}`, `{}`},
		{
			"ids", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"call_1","function":{"name":"f","arguments":"{}"}},{"id":"D681PevKs"}]},{"role":"tool","tool_call_id":"call_1"},{"role":"tool","tool_call_id":"D681PevKs"}]}`,
			`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"` + string(hashed([]byte("call_1"))) + `","function":{"name":"f","arguments":"{}"}},{"id":"D681PevKs"}]},{"role":"tool","tool_call_id":"` + string(hashed([]byte("call_1"))) + `"},{"role":"tool","tool_call_id":"D681PevKs"}]}`,
		},
		{"an ordinary tier", `{"model":"m","service_tier":"default"}`, `{"model":"m"}`},
		{"a tier at a price, which it may refuse", `{"model":"m","service_tier":"priority"}`, ""},
		{"a label", `{"model":"m","user" : "u"}`, `{"model":"m","metadata":{"user":"u"}}`},
		{"labels", `{"user":"u","model":"m","safety_identifier":"s"}`, `{"metadata":{"user":"u","safety_identifier":"s"},"model":"m"}`},
		{"a label beside metadata", `{"model":"m","metadata":{"a":"b"},"user":"u"}`, `{"model":"m","metadata":{"user":"u","a":"b"}}`},
		{"a label of which metadata has one", `{"model":"m","metadata":{"user":"v"},"user":"u"}`, `{"model":"m","metadata":{"user":"v"}}`},
		{"a label and empty metadata", `{"metadata": { },"user":"u"}`, `{"metadata": {"user":"u"}}`},
		{"a label and no metadata", `{"user":"u","metadata":null}`, `{"metadata":{"user":"u"}}`},
		{"no label", `{"model":"m","user":null}`, `{"model":"m"}`},
		{
			"reasoning before a text", `{"messages":[{"role":"assistant","reasoning_content":"t\n","content":"a"}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t\n"}],"closed":true},{"type":"text","text":"a"}]}]}`,
		},
		{
			"reasoning before parts", `{"messages":[{"role":"assistant","content":[ {"type":"text","text":"a"} ],"reasoning":"t"}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}],"closed":true},{"type":"text","text":"a"}]}]}`,
		},
		{
			"reasoning before a call", `{"messages":[{"role":"assistant","reasoning_content":"t","reasoning":"t","content":null,"tool_calls":[{"id":"D681PevKs"}]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}],"closed":true}],"tool_calls":[{"id":"D681PevKs"}]}]}`,
		},
		{
			"reasoning alone", `{"messages":[{"role":"assistant","reasoning_content":"t","tool_calls":[]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}],"closed":true}],"tool_calls":[]}]}`,
		},
		{"no reasoning", `{"messages":[{"role":"assistant","reasoning_content":null,"content":"a","reasoning":""}]}`, `{"messages":[{"role":"assistant","content":"a"}]}`},
		{"an escaped id", `{"messages":[{"tool_call_id":"call\u005f1"}]}`, `{"messages":[{"tool_call_id":"` + string(hashed([]byte("call_1"))) + `"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.body
			}
			if got := string(q.Apply([]byte(tt.body))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := string(q.Apply([]byte(tt.want))); got != tt.want {
				t.Errorf("again: %s", got)
			}
		})
	}
}

// What others are sent: reasoning in the member that they take it back in, under one name.
func TestReasoningByItsOtherName(t *testing.T) {
	q := Quirks{Reasoning: ReasoningMember}
	for _, tt := range []struct{ body, want string }{
		{`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a"}]}`, ""},
		{`{"messages":[{"role":"assistant","reasoning_content":"t","content":"a"}]}`, `{"messages":[{"role":"assistant","reasoning":"t","content":"a"}]}`},
		{`{"messages":[{"role":"assistant","reasoning":"t","content":"a"}]}`, ""},
		{`{"messages":[{"role":"assistant","reasoning":"t","content":"a","reasoning_content":"t"}]}`, `{"messages":[{"role":"assistant","content":"a","reasoning":"t"}]}`},
		{`{"messages":"x"}`, ""},
	} {
		if tt.want == "" {
			tt.want = tt.body
		}
		if got := string(q.Apply([]byte(tt.body))); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
