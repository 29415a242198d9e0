package wire

import "testing"

// What Mistral is sent: only what it calls otherwise, refuses or wants shorter differs.
func TestQuirks(t *testing.T) {
	q := Quirks{
		Rename:   []Rename{{"max_completion_tokens", "max_tokens"}, {"seed", "random_seed"}},
		Drop:     []string{"stream_options", "stream"},
		ShortIDs: true,
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
