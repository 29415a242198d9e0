package fakellm

import (
	"time"
)

// openai speaks chat completions and the older completions.
type openai struct {
	s       *sink
	a       *ask
	id      string
	model   string
	created int64
}

func newOpenAI(s *sink, a *ask, id string) *openai {
	v := &openai{s: s, a: a, id: "chatcmpl-" + id, model: a.asked, created: time.Now().Unix()}
	if a.surface == surfaceCompletions {
		v.id = "cmpl-" + id
	}
	if a.b.Served != "" {
		v.model = a.b.Served
	}
	return v
}

func (v *openai) legacy() bool { return v.a.surface == surfaceCompletions }

func (v *openai) frame(object string, choices []obj) obj {
	o := obj{"id": v.id, "object": object, "created": v.created, "model": v.model, "choices": choices}
	if v.a.b.Tier != "" {
		o["service_tier"] = v.a.b.Tier
	}
	if !v.legacy() {
		o["system_fingerprint"] = "fp_fakellm"
	}
	return o
}

// chunk sends one chunk; other chunks than the usage one carry a null usage when
// usage was asked for, or the figures so far where they are wanted in each.
func (v *openai) chunk(choices []obj, t tally) {
	object := "chat.completion.chunk"
	if v.legacy() {
		object = "text_completion"
	}
	o := v.frame(object, choices)
	switch {
	case v.a.b.Usage == "every" || v.a.continuous && v.a.b.Usage == "":
		o["usage"] = v.usage(t)
	case v.a.usage && v.a.b.Usage != "none":
		o["usage"] = nil
	}
	v.s.event("", marshal(o))
}

func (v *openai) delta(choice int, d obj, t tally) {
	c := obj{"index": choice, "delta": d, "logprobs": nil, "finish_reason": nil}
	v.chunk([]obj{c}, t)
}

func (v *openai) open(t tally) {
	if v.legacy() {
		return
	}
	for i := range v.a.choices {
		v.delta(i, obj{"role": "assistant", "content": "", "refusal": nil}, t)
	}
}

func (v *openai) text(choice int, s string, t tally) {
	if v.legacy() {
		v.chunk([]obj{{"index": choice, "text": s, "logprobs": nil, "finish_reason": nil}}, t)
		return
	}
	v.chunk([]obj{{"index": choice, "delta": obj{"content": s}, "logprobs": v.a.inChat(s), "finish_reason": nil}}, t)
}

func (v *openai) think(s string, t tally) {
	if v.a.model.ShowReasoning {
		v.delta(0, obj{"reasoning_content": s}, t)
	}
}

func (v *openai) call(choice, k int, c toolCall, t tally) {
	v.delta(choice, obj{"tool_calls": []obj{{
		"index": k, "id": c.id, "type": "function", "function": obj{"name": c.name, "arguments": ""},
	}}}, t)
}

func (v *openai) args(choice, k int, fragment string, t tally) {
	v.delta(choice, obj{"tool_calls": []obj{{"index": k, "function": obj{"arguments": fragment}}}}, t)
}

func (v *openai) finish(reason string, t tally) {
	if !v.a.b.NoFinish {
		for i := range v.a.choices {
			c := obj{"index": i, "delta": obj{}, "logprobs": nil, "finish_reason": v.reason(reason)}
			if v.legacy() {
				c = obj{"index": i, "text": "", "logprobs": nil, "finish_reason": v.reason(reason)}
			}
			v.chunk([]obj{c}, t)
		}
	}
	if v.a.usage && v.a.b.Usage != "none" {
		v.usageChunk(t)
		switch v.a.b.Usage {
		case "twice":
			v.usageChunk(t)
		case "falling":
			v.usageChunk(t.half())
		}
	}
	if !v.a.b.NoDone {
		v.s.event("", []byte("[DONE]"))
	}
}

func (v *openai) usageChunk(t tally) {
	object := "chat.completion.chunk"
	if v.legacy() {
		object = "text_completion"
	}
	o := v.frame(object, []obj{})
	o["usage"] = v.usage(t)
	v.s.event("", marshal(o))
}

// usage follows the dialect: prompt_tokens include what was cached.
func (v *openai) usage(t tally) obj {
	t = t.told(v.a.b.Usage)
	u := obj{
		"prompt_tokens": t.input, "completion_tokens": t.output, "total_tokens": t.input + t.output,
		"prompt_tokens_details": obj{"cached_tokens": t.cached, "audio_tokens": 0},
	}
	if t.written > 0 {
		u["prompt_tokens_details"].(obj)["cache_write_tokens"] = t.written
	}
	if !v.legacy() {
		u["completion_tokens_details"] = obj{
			"reasoning_tokens": t.reasoning, "audio_tokens": 0,
			"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
		}
	}
	return u
}

func (v *openai) reason(r string) string {
	if v.a.b.Finish != "" {
		return v.a.b.Finish
	}
	return r
}

func (v *openai) fail(kind, msg string) {
	v.s.event("", marshal(openaiError(kind, "", msg)))
}

func (v *openai) whole(contents []content, reason string, t tally) any {
	var choices []obj
	for i, c := range contents {
		if v.legacy() {
			choices = append(choices, obj{"index": i, "text": c.text, "logprobs": nil, "finish_reason": v.reason(reason)})
			continue
		}
		m := obj{"role": "assistant", "content": c.text, "refusal": nil}
		if c.thought != "" && v.a.model.ShowReasoning {
			m["reasoning_content"] = c.thought
		}
		if len(c.calls) > 0 {
			m["content"] = nil
			var calls []obj
			for _, k := range c.calls {
				calls = append(calls, obj{"id": k.id, "type": "function", "function": obj{"name": k.name, "arguments": k.args}})
			}
			m["tool_calls"] = calls
		}
		choices = append(choices, obj{"index": i, "message": m, "logprobs": v.a.inChat(c.text), "finish_reason": v.reason(reason)})
	}
	object := "chat.completion"
	if v.legacy() {
		object = "text_completion"
	}
	o := v.frame(object, choices)
	if v.a.b.Usage != "none" {
		o["usage"] = v.usage(t)
	}
	return o
}

func openaiError(kind, code, msg string) obj {
	var c any
	if code != "" {
		c = code
	}
	return obj{"error": obj{"message": msg, "type": kind, "param": nil, "code": c}}
}
