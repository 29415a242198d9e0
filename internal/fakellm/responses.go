package fakellm

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// responses speaks OpenAI's Responses.
type responses struct {
	s       *sink
	a       *ask
	id      string
	model   string
	created int64
	next    int // number of the next event
	items   []obj
	under   string // kind of the item that is under way; empty for none
	said    strings.Builder
	calls   map[int]int // index of the item of each call
}

func newResponses(s *sink, a *ask, id string) *responses {
	v := &responses{s: s, a: a, id: "resp_" + id, model: a.asked, created: time.Now().Unix(), calls: map[int]int{}}
	if a.b.Served != "" {
		v.model = a.b.Served
	}
	return v
}

func (v *responses) event(kind string, o obj) {
	o["type"], o["sequence_number"] = kind, v.next
	v.next++
	data := marshal(o)
	v.s.event(kind, data)
	whole, _ := o["response"].(obj)
	v.a.shelved.note(kind, data, whole)
}

// frame is the response as far as it has come.
func (v *responses) frame(status string) obj {
	output := v.items
	if output == nil {
		output = []obj{}
	}
	o := obj{
		"id": v.id, "object": "response", "created_at": v.created, "model": v.model, "status": status, "background": v.a.background,
		"error": nil, "incomplete_details": nil, "instructions": nil, "max_output_tokens": nil, "metadata": obj{}, "output": output,
		"parallel_tool_calls": true, "previous_response_id": nil, "store": !v.a.unstored, "temperature": 1, "tool_choice": "auto", "tools": []obj{},
		"top_p": 1, "truncation": "disabled", "usage": nil, "text": obj{"format": obj{"type": "text"}}, "reasoning": obj{"effort": nil, "summary": nil},
	}
	if v.a.b.Tier != "" {
		o["service_tier"] = v.a.b.Tier
	}
	return o
}

func (v *responses) open(tally) {
	if v.a.background { // that it was created has been told
		v.next = 2
	} else {
		v.event("response.created", obj{"response": v.frame("in_progress")})
	}
	v.event("response.in_progress", obj{"response": v.frame("in_progress")})
}

// at is the members by which an event names its item.
func (v *responses) at(i int, o obj) obj {
	o["output_index"], o["item_id"] = i, v.items[i]["id"]
	return o
}

// add begins an item.
func (v *responses) add(kind, prefix string, item obj) int {
	v.shut()
	item["id"], item["type"] = prefix+v.id+string(rune('a'+len(v.items)%26)), kind
	v.items = append(v.items, item)
	v.under = kind
	v.said.Reset()
	v.event("response.output_item.added", obj{"output_index": len(v.items) - 1, "item": item})
	return len(v.items) - 1
}

func (v *responses) text(_ int, s string, _ tally) {
	i := len(v.items) - 1
	if v.under != "message" {
		i = v.add("message", "msg_", obj{"role": "assistant", "status": "in_progress", "content": []obj{}})
		v.event("response.content_part.added", v.at(i, obj{"content_index": 0, "part": v.outputText("")}))
	}
	v.said.WriteString(s)
	v.event("response.output_text.delta", v.at(i, obj{"content_index": 0, "delta": s, "logprobs": listed(v.a.chances(s), false)}))
}

func (v *responses) outputText(s string) obj {
	return obj{"type": "output_text", "text": s, "annotations": []obj{}, "logprobs": listed(v.a.chances(s), true)}
}

func summaryText(s string) obj { return obj{"type": "summary_text", "text": s} }

func (v *responses) think(s string, _ tally) {
	if !v.a.model.ShowReasoning {
		return
	}
	i := len(v.items) - 1
	if v.under != "reasoning" {
		i = v.add("reasoning", "rs_", obj{"summary": []obj{}})
		v.event("response.reasoning_summary_part.added", v.at(i, obj{"summary_index": 0, "part": summaryText("")}))
	}
	v.said.WriteString(s)
	v.event("response.reasoning_summary_text.delta", v.at(i, obj{"summary_index": 0, "delta": s}))
}

func (v *responses) call(_, k int, c toolCall, _ tally) {
	v.calls[k] = v.add("function_call", "fc_", obj{"call_id": c.id, "name": c.name, "arguments": "", "status": "in_progress"})
}

func (v *responses) args(_, k int, fragment string, _ tally) {
	v.said.WriteString(fragment)
	v.event("response.function_call_arguments.delta", v.at(v.calls[k], obj{"delta": fragment}))
}

// shut ends the item that is under way.
func (v *responses) shut() {
	if v.under == "" {
		return
	}
	i, s := len(v.items)-1, v.said.String()
	item := v.items[i]
	switch v.under {
	case "message":
		item["content"], item["status"] = []obj{v.outputText(s)}, "completed"
		v.event("response.output_text.done", v.at(i, obj{"content_index": 0, "text": s, "logprobs": listed(v.a.chances(s), false)}))
		v.event("response.content_part.done", v.at(i, obj{"content_index": 0, "part": v.outputText(s)}))
	case "reasoning":
		item["summary"], item["encrypted_content"] = []obj{summaryText(s)}, "ZmFrZWxsbQ=="
		v.event("response.reasoning_summary_text.done", v.at(i, obj{"summary_index": 0, "text": s}))
		v.event("response.reasoning_summary_part.done", v.at(i, obj{"summary_index": 0, "part": summaryText(s)}))
	case "function_call":
		item["arguments"], item["status"] = s, "completed"
		v.event("response.function_call_arguments.done", v.at(i, obj{"arguments": s, "name": item["name"]}))
	}
	v.under = ""
	v.event("response.output_item.done", obj{"output_index": i, "item": item})
}

// ended is the response with why it ended and what it took.
func (v *responses) ended(reason string, t tally) obj {
	o := v.frame("completed")
	if reason == "length" {
		o["status"], o["incomplete_details"] = "incomplete", obj{"reason": "max_output_tokens"}
	}
	if v.a.b.Usage != "none" {
		o["usage"] = v.usage(t)
	}
	return o
}

func (v *responses) finish(reason string, t tally) {
	v.shut()
	if v.a.b.NoFinish || v.a.b.NoDone {
		return
	}
	if v.a.b.Usage == "falling" {
		t = t.half()
	}
	o := v.ended(reason, t)
	v.event("response."+o["status"].(string), obj{"response": o})
}

// usage follows the dialect: input_tokens include what was cached.
func (v *responses) usage(t tally) obj {
	t = t.told(v.a.b.Usage)
	return obj{
		"input_tokens": t.input, "output_tokens": t.output, "total_tokens": t.input + t.output,
		"input_tokens_details":  obj{"cached_tokens": t.cached, "cache_write_tokens": t.written},
		"output_tokens_details": obj{"reasoning_tokens": t.reasoning},
	}
}

func (v *responses) fail(kind, msg string) {
	if v.a.background {
		o := v.frame("failed")
		o["error"] = obj{"code": kind, "message": msg}
		v.event("response.failed", obj{"response": o})
		return
	}
	v.event("error", obj{"code": kind, "message": msg, "param": nil})
}

func (v *responses) whole(contents []content, reason string, t tally) any {
	c := contents[0]
	add := func(kind, prefix string, item obj) {
		item["id"], item["type"] = prefix+v.id+string(rune('a'+len(v.items)%26)), kind
		v.items = append(v.items, item)
	}
	if c.thought != "" && v.a.model.ShowReasoning {
		add("reasoning", "rs_", obj{"summary": []obj{summaryText(c.thought)}, "encrypted_content": "ZmFrZWxsbQ=="})
	}
	if c.text != "" {
		add("message", "msg_", obj{"role": "assistant", "status": "completed", "content": []obj{v.outputText(c.text)}})
	}
	for _, k := range c.calls {
		add("function_call", "fc_", obj{"call_id": k.id, "name": k.name, "arguments": k.args, "status": "completed"})
	}
	o := v.ended(reason, t)
	v.a.shelved.whole(o)
	return o
}

// items takes a Responses body's own members to where the others are: its items as
// messages, its bound, its format.
func (in *body) items() {
	if in.MaxOutput != nil {
		in.MaxCompletion = in.MaxOutput
	}
	in.System = in.Instructions
	in.StreamOptions = nil
	raw := bytes.TrimSpace(in.Input)
	in.Input = nil
	if len(raw) > 0 && raw[0] == '"' {
		in.Messages = []message{{Role: "user", Content: raw}}
		return
	}
	var items []struct {
		message
		Type      string          `json:"type"`
		Output    json.RawMessage `json:"output"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(raw, &items) != nil {
		return
	}
	for _, x := range items {
		switch x.Type {
		case "function_call_output":
			in.Messages = append(in.Messages, message{Role: "tool", Content: x.Output})
		case "function_call":
			in.Messages = append(in.Messages, message{Role: "assistant", ToolCalls: x.Arguments})
		case "message", "":
			in.Messages = append(in.Messages, x.message)
		}
	}
}

var _ voice = (*responses)(nil)
