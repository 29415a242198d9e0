package fakellm

import (
	"context"
	"strings"
	"time"
)

// bedrock speaks Converse, streamed in frames.
type bedrock struct {
	ctx   context.Context // of the request
	s     *sink
	a     *ask
	block int    // index of the open content block
	kind  string // of the open content block; empty when none is open
	began time.Time
}

func newBedrock(ctx context.Context, s *sink, a *ask) *bedrock {
	s.framed = true
	return &bedrock{ctx: ctx, s: s, a: a, block: -1, began: time.Now()}
}

// event sends one event, padded as the service pads them: by a member of a length that
// tells nothing.
func (v *bedrock) event(kind string, o obj) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	o["p"] = letters[:1+mix(uint64(v.s.sent))%uint64(len(letters))]
	v.s.event(kind, marshal(o))
}

func (v *bedrock) open(tally) { v.event("messageStart", obj{"role": "assistant"}) }

// ensure opens a block of the kind unless one is open, closing another kind. Only tool
// calls have an event that begins them.
func (v *bedrock) ensure(kind string) {
	if v.kind == kind && kind != "toolUse" {
		return
	}
	v.shut()
	v.block++
	v.kind = kind
}

func (v *bedrock) shut() {
	if v.kind == "" {
		return
	}
	if v.kind == "reasoningContent" {
		v.delta(obj{"reasoningContent": obj{"signature": "ZmFrZWxsbQ=="}})
	}
	v.event("contentBlockStop", obj{"contentBlockIndex": v.block})
	v.kind = ""
}

func (v *bedrock) delta(d obj) {
	v.event("contentBlockDelta", obj{"contentBlockIndex": v.block, "delta": d})
}

func (v *bedrock) text(_ int, s string, _ tally) {
	v.ensure("text")
	v.delta(obj{"text": s})
}

func (v *bedrock) think(s string, _ tally) {
	if !v.a.thinking {
		return
	}
	v.ensure("reasoningContent")
	v.delta(obj{"reasoningContent": obj{"text": s}})
}

func (v *bedrock) call(_, _ int, c toolCall, _ tally) {
	v.ensure("toolUse")
	v.event("contentBlockStart", obj{"contentBlockIndex": v.block, "start": obj{"toolUse": obj{"toolUseId": c.id, "name": c.name}}})
}

func (v *bedrock) args(_, _ int, fragment string, _ tally) {
	v.delta(obj{"toolUse": obj{"input": fragment}})
}

func (v *bedrock) finish(reason string, t tally) {
	v.shut()
	if !v.a.b.NoFinish {
		v.event("messageStop", obj{"stopReason": v.reason(reason)})
	}
	if pause(v.ctx, v.a.b.Late) != nil || v.a.b.NoDone || v.a.b.Usage == "none" {
		return
	}
	o := obj{"usage": v.usage(t), "metrics": obj{"latencyMs": time.Since(v.began).Milliseconds()}}
	if v.a.b.Tier != "" {
		o["serviceTier"] = obj{"type": v.a.b.Tier}
	}
	v.event("metadata", o)
	if v.a.b.Usage == "twice" {
		v.event("metadata", o)
	}
}

// usage follows the dialect: inputTokens exclude what was cached.
func (v *bedrock) usage(t tally) obj {
	t = t.told(v.a.b.Usage)
	u := obj{
		"inputTokens": t.input - t.cached - t.written, "outputTokens": t.output, "totalTokens": t.input + t.output,
		"cacheReadInputTokens": t.cached, "cacheWriteInputTokens": t.written,
	}
	if t.written > 0 {
		u["cacheDetails"] = []obj{{"ttl": "5m", "inputTokens": t.written}}
	}
	return u
}

func (v *bedrock) reason(r string) string {
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

// fail ends the stream with an exception.
func (v *bedrock) fail(kind, msg string) { v.s.exception(kind, msg) }

func (v *bedrock) whole(contents []content, reason string, t tally) any {
	blocks := []obj{}
	for _, c := range contents {
		if c.thought != "" && v.a.thinking {
			blocks = append(blocks, obj{"reasoningContent": obj{"reasoningText": obj{"text": c.thought, "signature": "ZmFrZWxsbQ=="}}})
		}
		if c.text != "" {
			blocks = append(blocks, obj{"text": c.text})
		}
		for _, k := range c.calls {
			blocks = append(blocks, obj{"toolUse": obj{"toolUseId": k.id, "name": k.name, "input": rawJSON(k.args)}})
		}
	}
	o := obj{
		"output": obj{"message": obj{"role": "assistant", "content": blocks}}, "stopReason": v.reason(reason),
		"metrics": obj{"latencyMs": time.Since(v.began).Milliseconds()},
	}
	if v.a.b.Usage != "none" {
		o["usage"] = v.usage(t)
	}
	if v.a.b.Tier != "" {
		o["serviceTier"] = obj{"type": v.a.b.Tier}
	}
	return o
}

// exceptions are those that a fault may name.
var exceptions = map[string]string{
	"throttling": "ThrottlingException", "modelnotready": "ModelNotReadyException", "validation": "ValidationException",
	"modelstreamerror": "ModelStreamErrorException", "modeltimeout": "ModelTimeoutException", "internalserver": "InternalServerException",
	"serviceunavailable": "ServiceUnavailableException", "servicequotaexceeded": "ServiceQuotaExceededException", "accessdenied": "AccessDeniedException",
}

// inStream is an exception's name as a stream has it.
func inStream(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// bedrockErrors are the exceptions that go with a status.
var bedrockErrors = map[int]string{
	400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException",
	424: "ModelErrorException", 429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException",
}

var _ voice = (*bedrock)(nil)
