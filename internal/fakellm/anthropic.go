package fakellm

// anthropic speaks messages.
type anthropic struct {
	s       *sink
	a       *ask
	request string // the request-id header's value
	id      string
	model   string
	block   int    // index of the open content block
	kind    string // of the open content block; empty when none is open
}

func newAnthropic(s *sink, a *ask, id, request string) *anthropic {
	v := &anthropic{s: s, a: a, request: request, id: "msg_" + id, model: a.asked, block: -1}
	if a.b.Served != "" {
		v.model = a.b.Served
	}
	return v
}

func (v *anthropic) event(kind string, o obj) {
	o["type"] = kind
	v.s.event(kind, marshal(o))
}

func (v *anthropic) open(t tally) {
	m := obj{
		"id": v.id, "type": "message", "role": "assistant", "model": v.model, "content": []obj{},
		"stop_reason": nil, "stop_sequence": nil,
	}
	t.output = min(t.output+1, 1)
	if v.a.b.Usage == "none" {
		t = tally{}
	}
	m["usage"] = v.usage(t)
	v.event("message_start", obj{"message": m})
}

// ensure opens a block of the kind unless one is open, closing another kind.
func (v *anthropic) ensure(kind string, block obj) {
	if v.kind == kind && kind != "tool_use" {
		return
	}
	v.shut()
	v.block++
	v.kind = kind
	v.event("content_block_start", obj{"index": v.block, "content_block": block})
	if v.block == 0 {
		v.event("ping", obj{})
	}
}

func (v *anthropic) shut() {
	if v.kind == "" {
		return
	}
	if v.kind == "thinking" {
		v.delta(obj{"type": "signature_delta", "signature": "ZmFrZWxsbQ=="})
	}
	v.event("content_block_stop", obj{"index": v.block})
	v.kind = ""
}

func (v *anthropic) delta(d obj) {
	v.event("content_block_delta", obj{"index": v.block, "delta": d})
}

func (v *anthropic) text(_ int, s string, t tally) {
	v.ensure("text", obj{"type": "text", "text": ""})
	v.delta(obj{"type": "text_delta", "text": s})
	v.every(t)
}

func (v *anthropic) think(s string, t tally) {
	if !v.a.thinking {
		return
	}
	v.ensure("thinking", obj{"type": "thinking", "thinking": "", "signature": ""})
	v.delta(obj{"type": "thinking_delta", "thinking": s})
	v.every(t)
}

func (v *anthropic) call(_, _ int, c toolCall, t tally) {
	v.ensure("tool_use", obj{"type": "tool_use", "id": c.id, "name": c.name, "input": obj{}})
	v.delta(obj{"type": "input_json_delta", "partial_json": ""})
	v.every(t)
}

func (v *anthropic) args(_, _ int, fragment string, t tally) {
	v.delta(obj{"type": "input_json_delta", "partial_json": fragment})
	v.every(t)
}

func (v *anthropic) every(t tally) {
	if v.a.b.Usage == "every" {
		v.event("message_delta", obj{"delta": obj{"stop_reason": nil, "stop_sequence": nil}, "usage": v.usage(t)})
	}
}

func (v *anthropic) finish(reason string, t tally) {
	v.shut()
	send := func(t tally) {
		var stop any = v.reason(reason)
		if v.a.b.NoFinish {
			stop = nil
		}
		delta := obj{"stop_reason": stop, "stop_sequence": nil}
		if c := v.a.contained(); c != nil {
			delta["container"] = c
		}
		o := obj{"delta": delta}
		if v.a.b.Usage != "none" {
			o["usage"] = v.usage(t)
		}
		v.event("message_delta", o)
	}
	send(t)
	switch v.a.b.Usage {
	case "twice":
		send(t)
	case "falling":
		send(t.half())
	}
	if !v.a.b.NoDone {
		v.event("message_stop", obj{})
	}
}

// usage follows the dialect: input_tokens exclude what was cached.
func (v *anthropic) usage(t tally) obj {
	t = t.told(v.a.b.Usage)
	tier := v.a.b.Tier
	if tier == "" {
		tier = "standard"
	}
	u := obj{
		"input_tokens":                t.input - t.cached - t.written,
		"cache_read_input_tokens":     t.cached,
		"cache_creation_input_tokens": t.written,
		"cache_creation":              obj{"ephemeral_5m_input_tokens": t.written, "ephemeral_1h_input_tokens": 0},
		"output_tokens":               t.output,
		"service_tier":                tier,
	}
	if t.reasoning > 0 {
		u["output_tokens_details"] = obj{"thinking_tokens": t.reasoning}
	}
	return u
}

func (v *anthropic) reason(r string) string {
	if v.a.b.Finish != "" {
		return v.a.b.Finish
	}
	switch r {
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	}
	return "end_turn"
}

func (v *anthropic) fail(kind, msg string) {
	v.s.event("error", marshal(anthropicError(kind, msg, v.request)))
}

func (v *anthropic) whole(contents []content, reason string, t tally) any {
	blocks := []obj{}
	for _, c := range contents {
		if c.thought != "" && v.a.thinking {
			blocks = append(blocks, obj{"type": "thinking", "thinking": c.thought, "signature": "ZmFrZWxsbQ=="})
		}
		if c.text != "" {
			blocks = append(blocks, obj{"type": "text", "text": c.text})
		}
		for _, k := range c.calls {
			blocks = append(blocks, obj{"type": "tool_use", "id": k.id, "name": k.name, "input": rawJSON(k.args)})
		}
	}
	o := obj{
		"id": v.id, "type": "message", "role": "assistant", "model": v.model, "content": blocks,
		"stop_reason": v.reason(reason), "stop_sequence": nil,
	}
	if v.a.b.Usage != "none" {
		o["usage"] = v.usage(t)
	}
	if c := v.a.contained(); c != nil {
		o["container"] = c
	}
	return o
}

func anthropicError(kind, msg, request string) obj {
	return obj{"type": "error", "error": obj{"type": kind, "message": msg}, "request_id": request}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

var (
	_ voice = (*anthropic)(nil)
	_ voice = (*openai)(nil)
)
