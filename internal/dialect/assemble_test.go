package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"sluice/internal/wire"
)

// fataler is what a test and a property have in common.
type fataler interface{ Fatalf(string, ...any) }

// message is a message as its clients see it when it is whole.
type message struct {
	ID, Model string
	Content   []obj
	Stop      string
	Sequence  any
	Usage     obj
}

func decode(t fataler, b []byte, v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
}

func assembledMessage(t fataler, whole []byte) message {
	var in struct {
		ID, Model  string
		Content    []obj
		StopReason string `json:"stop_reason"`
		Sequence   any    `json:"stop_sequence"`
		Usage      obj
	}
	decode(t, whole, &in)
	for _, c := range in.Content {
		if input, ok := c["input"]; ok {
			c["input"] = string(compact(input))
		}
	}
	return message{in.ID, in.Model, merged(in.Content), in.StopReason, in.Sequence, in.Usage}
}

// merged is content whose neighbouring texts are one: where one block ends and the
// next begins is not kept.
func merged(content []obj) (out []obj) {
	for _, c := range content {
		if n := len(out); n > 0 && c["type"] == "text" && out[n-1]["type"] == "text" {
			out[n-1]["text"] = out[n-1]["text"].(string) + c["text"].(string)
			continue
		}
		out = append(out, c)
	}
	return out
}

// assembleMessage puts a message's events together as the official clients do:
// blocks by index, fragments by concatenation.
func assembleMessage(t fataler, stream []byte) (m message) {
	input := map[string]*string{}
	open := map[string]bool{}
	for _, data := range eventsOf(t, stream) {
		var e struct {
			Type    string
			Index   json.Number
			Message struct{ ID, Model string }
			Block   obj `json:"content_block"`
			Delta   obj
			Usage   obj
		}
		decode(t, data, &e)
		at, _ := e.Index.Int64()
		switch e.Type {
		case "message_start":
			m.ID, m.Model = e.Message.ID, e.Message.Model
		case "content_block_start":
			if int(at) != len(m.Content) || len(open) > 0 {
				t.Fatalf("block %d begins after %d, with %v open", at, len(m.Content), open)
			}
			m.Content = append(m.Content, e.Block)
			input[e.Index.String()], open[e.Index.String()] = new(string), true
		case "content_block_delta":
			if !open[e.Index.String()] {
				t.Fatalf("a part of block %d, which is not open", at)
			}
			b := m.Content[at]
			for from, to := range map[string]string{"text": "text", "thinking": "thinking", "signature": "signature"} {
				if s, ok := e.Delta[from].(string); ok {
					b[to] = b[to].(string) + s
				}
			}
			if s, ok := e.Delta["partial_json"].(string); ok {
				*input[e.Index.String()] += s
			}
		case "content_block_stop":
			if !open[e.Index.String()] {
				t.Fatalf("block %d ends twice", at)
			}
			delete(open, e.Index.String())
			if m.Content[at]["type"] == "tool_use" {
				if *input[e.Index.String()] == "" {
					*input[e.Index.String()] = "{}"
				}
				var v any
				if s := *input[e.Index.String()]; !object(s) {
					whole, ok := wholeOf(s)
					if !ok {
						t.Fatalf("the input %s is no beginning of an object", s)
					}
					*input[e.Index.String()] = whole
				}
				decode(t, []byte(*input[e.Index.String()]), &v)
				m.Content[at]["input"] = string(compact(v))
			}
		case "message_delta":
			m.Stop, _ = e.Delta["stop_reason"].(string)
			m.Sequence, m.Usage = e.Delta["stop_sequence"], e.Usage
		case "message_stop":
			if len(open) > 0 {
				t.Fatalf("the message ends with open blocks: %v", open)
			}
		}
	}
	m.Content = merged(m.Content)
	return m
}

// completion is a chat completion as its clients see it when it is whole.
type completion struct {
	ID, Model          string
	Created            json.Number
	Content, Reasoning string
	Refusal            string
	Details            []obj
	Calls              []obj
	Finish             string
	StopReason         any
	Usage              obj
	Logprobs           []any
}

func assembledCompletion(t fataler, whole []byte) completion {
	var in struct {
		ID, Model string
		Created   json.Number
		Choices   []struct {
			Message struct {
				Content   string
				Refusal   string
				Reasoning string `json:"reasoning_content"`
				Details   []obj  `json:"reasoning_details"`
				Calls     []obj  `json:"tool_calls"`
			}
			Finish     string `json:"finish_reason"`
			StopReason any    `json:"stop_reason"`
			Logprobs   struct{ Content []any }
		}
		Usage obj
	}
	decode(t, whole, &in)
	c := in.Choices[0]
	return completion{in.ID, in.Model, in.Created, c.Message.Content, c.Message.Reasoning, c.Message.Refusal, c.Message.Details, c.Message.Calls, c.Finish, c.StopReason, in.Usage, c.Logprobs.Content}
}

// assembleCompletion puts chunks together as the official clients do: strings by
// concatenation, tool calls by index.
func assembleCompletion(t fataler, stream []byte) (c completion) {
	for _, data := range eventsOf(t, stream) {
		if string(data) == "[DONE]" {
			continue
		}
		var e struct {
			ID, Model string
			Created   json.Number
			Choices   []struct {
				Delta struct {
					Content   string
					Refusal   string
					Reasoning string `json:"reasoning_content"`
					Details   []obj  `json:"reasoning_details"`
					Calls     []struct {
						Index    int
						ID, Type string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish     *string `json:"finish_reason"`
				StopReason any     `json:"stop_reason"`
				Logprobs   struct{ Content []any }
			}
			Usage obj
		}
		decode(t, data, &e)
		c.ID, c.Model, c.Created = e.ID, e.Model, e.Created
		if e.Usage != nil {
			c.Usage = e.Usage
		}
		for _, x := range e.Choices {
			c.Content += x.Delta.Content
			c.Logprobs = append(c.Logprobs, x.Logprobs.Content...)
			c.Refusal += x.Delta.Refusal
			c.Reasoning += x.Delta.Reasoning
			c.Details = append(c.Details, x.Delta.Details...)
			for _, k := range x.Delta.Calls {
				if k.Index == len(c.Calls) {
					c.Calls = append(c.Calls, obj{"id": k.ID, "type": k.Type, "function": obj{"name": k.Function.Name, "arguments": ""}})
				}
				f := c.Calls[k.Index]["function"].(obj)
				f["arguments"] = f["arguments"].(string) + k.Function.Arguments
			}
			if x.Finish != nil {
				c.Finish, c.StopReason = *x.Finish, x.StopReason
			}
		}
	}
	for _, k := range c.Calls { // of maps made here and maps that were decoded
		k["function"] = map[string]any(k["function"].(obj))
	}
	return c
}

func eventsOf(t fataler, stream []byte) (out [][]byte) {
	events := wire.NewEvents(bytes.NewReader(stream), 0)
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in %s", err, stream)
		}
		if len(ev.Data) > 0 {
			out = append(out, bytes.Clone(ev.Data))
		}
	}
}
