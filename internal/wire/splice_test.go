package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

func TestSplice(t *testing.T) {
	for _, tt := range []struct {
		name, body, want string
		op               Operation
		edit             Edit
	}{
		{"nothing", `{ "model" : "a" }`, `{ "model" : "a" }`, Chat, Edit{}},
		{"same model", `{"model":"\u0061"}`, `{"model":"\u0061"}`, Chat, Edit{Model: "a"}},
		{"model", `{"x":1, "model" : "a", "y":1e-5}`, `{"x":1, "model" : "b/c\"", "y":1e-5}`, Chat, Edit{Model: `b/c"`}},
		{"usage inserted", `{"model":"a","stream":true}`, `{"model":"a","stream_options":{"include_usage":true},"stream":true}`, Chat, Edit{IncludeUsage: true}},
		{"usage not streamed", `{"model":"a"}`, `{"model":"a"}`, Chat, Edit{IncludeUsage: true, ContinuousUsage: true}},
		{"usage asked", `{"model":"a","stream":true,"stream_options":{"include_usage":true}}`, `{"model":"a","stream":true,"stream_options":{"include_usage":true}}`, Chat, Edit{IncludeUsage: true}},
		{"usage false", `{"model":"a","stream":true,"stream_options":{"include_usage": false , "x":1}}`, `{"model":"a","stream":true,"stream_options":{"include_usage": true , "x":1}}`, Chat, Edit{IncludeUsage: true}},
		{"usage null", `{"stream_options":null,"model":"a","stream":true}`, `{"stream_options":{"include_usage":true},"model":"a","stream":true}`, Chat, Edit{IncludeUsage: true}},
		{"usage empty", `{"stream_options":{ },"model":"a","stream":true}`, `{"stream_options":{"include_usage":true },"model":"a","stream":true}`, Chat, Edit{IncludeUsage: true}},
		{"usage added", `{"stream_options":{"include_obfuscation":false},"model":"a","stream":true}`, `{"stream_options":{"include_usage":true,"include_obfuscation":false},"model":"a","stream":true}`, Completions, Edit{IncludeUsage: true}},
		{"continuous", `{"stream_options":{"include_usage":true},"model":"a","stream":true}`, `{"stream_options":{"continuous_usage_stats":true,"include_usage":true},"model":"a","stream":true}`, Chat, Edit{IncludeUsage: true, ContinuousUsage: true}},
		{"both", `{"model":"a","stream":true}`, `{"model":"a","stream_options":{"include_usage":true,"continuous_usage_stats":true},"stream":true}`, Chat, Edit{IncludeUsage: true, ContinuousUsage: true}},
		{"bound lowered", `{"model":"a","max_tokens":500}`, `{"model":"a","max_tokens":99}`, Chat, Edit{MaxOutput: 99}},
		{"bound not raised", `{"model":"a","max_tokens":50}`, `{"model":"a","max_tokens":50}`, Chat, Edit{MaxOutput: 99}},
		{"bound lowered in its field", `{"model":"a","max_completion_tokens":500}`, `{"model":"a","max_completion_tokens":99}`, Chat, Edit{MaxOutput: 99}},
		{"both bounds lowered", `{"max_tokens":700,"model":"a","max_completion_tokens":50}`, `{"max_tokens":99,"model":"a","max_completion_tokens":50}`, Chat, Edit{MaxOutput: 99}},
		{"bound inserted", `{"model":"a"}`, `{"model":"a","max_completion_tokens":99}`, Chat, Edit{MaxOutput: 99}},
		{"bound for null", `{"max_completion_tokens":null,"model":"a"}`, `{"max_completion_tokens":99,"model":"a"}`, Chat, Edit{MaxOutput: 99}},
		{"bound of completions", `{"model":"a"}`, `{"model":"a","max_tokens":99}`, Completions, Edit{MaxOutput: 99}},
		{"bound of embeddings", `{"model":"a"}`, `{"model":"a"}`, Embeddings, Edit{MaxOutput: 99}},
		{"bound of messages", `{"max_tokens":500,"model":"a"}`, `{"max_tokens":99,"model":"b"}`, Messages, Edit{Model: "b", MaxOutput: 99}},
		{"zero bound stays", `{"max_tokens":0,"model":"a"}`, `{"max_tokens":0,"model":"b"}`, Messages, Edit{Model: "b"}},
		{"zero bound replaced", `{"max_tokens":0,"model":"a"}`, `{"max_tokens":1,"model":"a"}`, Messages, Edit{MaxOutput: 1}},
		{"zero bound of a score", `{"max_tokens":0,"echo":true,"model":"a"}`, `{"max_tokens":1,"echo":true,"model":"a"}`, Completions, Edit{MaxOutput: 1, LegacyMaxTokens: true}},
		{"legacy", `{"model":"a","max_completion_tokens":50}`, `{"model":"a","max_tokens":50,"max_completion_tokens":50}`, Chat, Edit{LegacyMaxTokens: true}},
		{"legacy inserted", `{"model":"a"}`, `{"model":"a","max_tokens":9}`, Chat, Edit{MaxOutput: 9, LegacyMaxTokens: true}},
		{"legacy both", `{"model":"a","max_completion_tokens":50,"max_tokens":null}`, `{"model":"a","max_completion_tokens":9,"max_tokens":9}`, Chat, Edit{MaxOutput: 9, LegacyMaxTokens: true}},
		{"salt", `{"model":"a"}`, `{"model":"a","cache_salt":"s"}`, Chat, Edit{CacheSalt: "s"}},
		{"salt for null", `{"cache_salt": null ,"model":"a"}`, `{"cache_salt": "s" ,"model":"a"}`, Chat, Edit{CacheSalt: "s"}},
		{"no model, first", `{ "model" : "a" , "x":1 }`, `{ "x":1 }`, Chat, Edit{Model: "b", NoModel: true}},
		{"no model, between", `{"x":1, "model":"a", "y":2}`, `{"x":1, "y":2}`, Chat, Edit{NoModel: true}},
		{"no model, last", `{"x":1 , "model":"a" }`, `{"x":1  }`, Chat, Edit{NoModel: true}},
		{"no model, alone", `{"model":"a"}`, `{}`, Chat, Edit{NoModel: true}},
		{"no model, alone, more", `{"model":"a"}`, `{"max_completion_tokens":9}`, Chat, Edit{NoModel: true, MaxOutput: 9}},
		{"no model, more", `{"model":"a","stream":true}`, `{"stream_options":{"include_usage":true},"max_completion_tokens":9,"stream":true}`, Chat, Edit{NoModel: true, IncludeUsage: true, MaxOutput: 9}},
		{"no model, last, more", `{"stream":true,"model":"a"}`, `{"max_completion_tokens":9,"stream":true}`, Chat, Edit{NoModel: true, MaxOutput: 9}},
		{"no model nor stream", `{"model":"a","stream":true}`, `{}`, Chat, Edit{NoModel: true, NoStream: true}},
		{"no stream nor model", `{"stream":true,"model":"a"}`, `{}`, Chat, Edit{NoModel: true, NoStream: true}},
		{"no stream nor model, last", `{"x":1,"stream":true,"model":"a"}`, `{"x":1}`, Chat, Edit{NoModel: true, NoStream: true}},
		{"no model nor stream, first", `{"model":"a","stream":true,"x":1}`, `{"x":1}`, Chat, Edit{NoModel: true, NoStream: true}},
		{"no model nor stream, apart", `{"model":"a","x":1,"stream":true}`, `{"x":1}`, Chat, Edit{NoModel: true, NoStream: true}},
		{"no stream", `{"x":1,"stream":true,"model":"a"}`, `{"x":1,"model":"b"}`, Chat, Edit{Model: "b", NoStream: true}},
		{"version", `{"model":"a","max_tokens":5}`, `{"anthropic_version":"v","max_tokens":5}`, Messages, Edit{NoModel: true, Version: "v"}},
		{"version beside the model", `{"model":"a"}`, `{"model":"b","anthropic_version":"v"}`, CountTokens, Edit{Model: "b", Version: "v"}},
		{"version named", `{"anthropic_version":"x","model":"a","max_tokens":5}`, `{"anthropic_version":"v","max_tokens":5}`, Messages, Edit{NoModel: true, Version: "v"}},
		{"betas", `{"model":"a","max_tokens":5,"stream":true}`, `{"anthropic_version":"v","anthropic_beta":["x","y"],"max_tokens":5}`, Messages, Edit{NoModel: true, NoStream: true, Version: "v", Betas: []string{"x", "y"}}},
		{"betas named", `{"model":"a","anthropic_beta":["z"],"max_tokens":5}`, `{"anthropic_beta":["z"],"max_tokens":5}`, Messages, Edit{NoModel: true, Betas: []string{"x"}}},
		{"all", `{"model":"a","stream":true}`, `{"model":"b","stream_options":{"include_usage":true},"max_completion_tokens":9,"stream":true}`, Chat, Edit{Model: "b", IncludeUsage: true, MaxOutput: 9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := mustScan(t, tt.op, tt.body)
			got := h.Splice([]byte(tt.body), tt.edit)
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if cap(got) != len(got) && cap(got) > len(got)+64 {
				t.Errorf("got capacity %d for %d bytes", cap(got), len(got))
			}
		})
	}
}

// What a splice changes of the client's bounds is named, and nothing else.
func TestChanged(t *testing.T) {
	for _, tt := range []struct {
		body, want string
		op         Operation
		bound      sluice.Tokens
	}{
		{`{"model":"a"}`, "", Chat, 0},
		{`{"model":"a"}`, "max_completion_tokens=9", Chat, 9},
		{`{"model":"a","max_tokens":null}`, "max_completion_tokens=9", Chat, 9},
		{`{"model":"a"}`, "max_tokens=9", Completions, 9},
		{`{"model":"a"}`, "", Embeddings, 9},
		{`{"model":"a","max_tokens":9}`, "", Chat, 9},
		{`{"model":"a","max_tokens":10}`, "max_tokens=9", Chat, 9},
		{`{"model":"a","max_tokens":10,"max_completion_tokens":3}`, "max_tokens=9", Chat, 9},
		{`{"model":"a","max_tokens":10,"max_completion_tokens":11}`, "max_tokens=9, max_completion_tokens=9", Chat, 9},
		{`{"model":"a","max_tokens":0}`, "max_tokens=1", Messages, 1},
	} {
		h := mustScan(t, tt.op, tt.body)
		if got := h.Changed(Edit{MaxOutput: tt.bound}); got != tt.want {
			t.Errorf("%s to %d: got %q, want %q", tt.body, tt.bound, got, tt.want)
		}
	}
}

// FuzzSplice: whatever was scanned can be spliced; the result scans to what was
// asked for, every other member keeps its value, and the body stays as it was.
func FuzzSplice(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":{"include_usage":false},"max_tokens":100}`,
		`{"stream_options": {} ,"stream":true,"max_completion_tokens":null,"max_tokens":7,"model":"m","x":[1]}`, `{"model":"m","prompt":"x","n":2}`,
	} {
		f.Add(uint8(Chat), []byte(s), "other", int64(50), uint8(7))
		f.Add(uint8(Completions), []byte(s), "", int64(5), uint8(3))
		f.Add(uint8(Messages), []byte(s), "\x00\xff\"", int64(1), uint8(0))
	}
	f.Fuzz(func(t *testing.T, o uint8, body []byte, model string, bound int64, flags uint8) {
		op := Operation(o) % Models
		h, err := Scan(op, body)
		if err != nil || len(model) > MaxModelName/3 {
			return
		}
		e := Edit{Model: model, IncludeUsage: flags&1 != 0, ContinuousUsage: flags&2 != 0, LegacyMaxTokens: flags&4 != 0, MaxOutput: sluice.Tokens(max(bound, 0))}
		before := bytes.Clone(body)
		out := h.Splice(body, e)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		got, err := Scan(op, out)
		if err != nil {
			t.Fatalf("%s became %s: %v", body, out, err)
		}
		if model != "" && got.Model != string([]rune(model)) {
			t.Fatalf("got model %q, want %q", got.Model, model)
		}
		if e.MaxOutput > 0 && op.Generates() && got.MaxOutput > e.MaxOutput {
			t.Fatalf("got bound %d, want at most %d in %s", got.MaxOutput, e.MaxOutput, out)
		}
		if e.IncludeUsage && h.Stream && op.Streams() && op.Dialect() == OpenAI && !got.IncludeUsage {
			t.Fatalf("usage is not asked for in %s", out)
		}
		if diff := cmp.Diff(others(t, out), others(t, body)); diff != "" {
			t.Fatalf("%s became %s: %s", body, out, diff)
		}
	})
}

// others are the members that a splice may not touch, byte for byte.
func others(t *testing.T, body []byte) map[string]string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range m {
		switch k {
		case "model", "stream_options", "max_tokens", "max_completion_tokens":
		default:
			out[k] = string(v)
		}
	}
	return out
}
