package wire

import (
	"bytes"
	"encoding/json"

	"sluice"
)

// Shorten ends a stream before its backend does: the events that tell the client
// that its answer reached the output bound, with the terminal marker. last is the
// event before them. In the OpenAI dialect usage is told if the client asked for it.
// Nothing is forwarded after it.
func (t *Tap) Shorten(last Event, u sluice.Usage, withUsage bool) []byte {
	t.done = true
	return append(t.by.shorten(t, last, u, withUsage), t.by.marker...)
}

// DeliveredBytes is how many bytes of text Delivered counts.
func (t *Tap) DeliveredBytes() (n int64) {
	for i := range t.counters {
		n += t.counters[i].Bytes()
	}
	return n
}

// shortenChunks are the chunks of an OpenAI stream that end its choice, alike to the
// one before.
func (t *Tap) shortenChunks(last Event, u sluice.Usage, withUsage bool) []byte {
	t.finish = "length"
	var head struct {
		ID      json.RawMessage `json:"id,omitempty"`
		Object  json.RawMessage `json:"object,omitempty"`
		Created json.RawMessage `json:"created,omitempty"`
		Model   json.RawMessage `json:"model,omitempty"`
		Print   json.RawMessage `json:"system_fingerprint,omitempty"`
	}
	var index struct {
		Choices []struct{ Index int64 }
	}
	_ = json.Unmarshal(last.Data, &head) // it has been read already; what does not parse is left out
	_ = json.Unmarshal(last.Data, &index)
	choice := map[string]any{"index": int64(0), "finish_reason": "length", "delta": struct{}{}}
	if len(index.Choices) > 0 {
		choice["index"] = index.Choices[0].Index
	}
	if t.op == Completions {
		delete(choice, "delta")
		choice["text"] = ""
	}
	write := func(out []byte, choices []any, usage any) []byte {
		b, err := json.Marshal(struct {
			Choices any `json:"choices"`
			Usage   any `json:"usage,omitempty"`
		}{choices, usage})
		h, herr := json.Marshal(head)
		if err != nil || herr != nil {
			return out
		}
		if h = bytes.TrimSuffix(h, []byte("}")); len(h) > 1 {
			h = append(h, ',')
		}
		return AppendEvent(out, "", append(h, b[1:]...))
	}
	out := write(nil, []any{choice}, nil)
	if !withUsage {
		return out
	}
	in, produced := int64(u.InputTotal()), int64(u.OutputTotal())
	return write(out, []any{}, map[string]int64{"prompt_tokens": in, "completion_tokens": produced, "total_tokens": in + produced})
}

// shortenMessage are the events of an Anthropic stream that close the block that is
// open and the message.
func (t *Tap) shortenMessage(last Event, u sluice.Usage, _ bool) (out []byte) {
	t.finish = "max_tokens"
	var e struct {
		Type  string
		Index int64
	}
	if json.Unmarshal(last.Data, &e) == nil && (e.Type == "content_block_delta" || e.Type == "content_block_start") {
		out = appendJSONEvent(out, "content_block_stop", map[string]any{"type": "content_block_stop", "index": e.Index})
	}
	return appendJSONEvent(out, "message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": "max_tokens", "stop_sequence": nil},
		"usage": map[string]int64{"output_tokens": int64(u.OutputTotal())},
	})
}

func appendJSONEvent(out []byte, name string, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return out
	}
	return AppendEvent(out, name, b)
}
