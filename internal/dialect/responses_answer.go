package dialect

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"sluice"
)

// responsesAnswer is a response.
type responsesAnswer struct {
	responsesState
	Output []responsesItem `json:"output"`
}

// responsesState is what a response says beside its output, which events have told.
type responsesState struct {
	ID         string        `json:"id"`
	Model      string        `json:"model"`
	Created    float64       `json:"created_at"`
	Status     string        `json:"status"`
	Incomplete *responsesWhy `json:"incomplete_details"`
}

type responsesWhy struct {
	Reason string `json:"reason"`
}

// stop is why the response ended.
func (a *responsesState) stop(called, refused bool) (Stop, error) {
	switch {
	case a.Status == "incomplete" && a.Incomplete != nil:
		switch a.Incomplete.Reason {
		case "max_output_tokens":
			return Stop{Reason: StopLength}, nil
		case "content_filter":
			return Stop{Reason: StopRefusal}, nil
		}
		return Stop{}, uncarried("the reason " + clean(a.Incomplete.Reason) + " to stop")
	case a.Status != "completed" && a.Status != "":
		return Stop{}, uncarried("the status " + clean(a.Status))
	case called:
		return Stop{Reason: StopTools}, nil
	case refused:
		return Stop{Reason: StopRefusal}, nil
	}
	return Stop{Reason: StopEnd}, nil
}

// labelled is a seal with the id of its item before it, which a backend wants back.
func labelled(id, seal string) string {
	switch {
	case seal == "" || markOf(seal) != "":
		return seal
	case !strings.HasPrefix(id, "rs_"):
		return openaiMark + seal
	}
	return id + ":" + seal
}

// unlabelled takes it apart; the id of what another dialect has signed is empty.
func unlabelled(s string) (id, seal string) {
	if id, seal, ok := strings.Cut(s, ":"); ok && strings.HasPrefix(id, "rs_") {
		return id, seal
	}
	return "", strings.TrimPrefix(s, openaiMark)
}

func parseResponsesAnswer(body []byte, o *StreamOptions) (*Answer, error) {
	var in responsesAnswer
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	a := &Answer{ID: in.ID, Model: in.Model, Created: int64(in.Created)}
	called, refused := false, false
	for i := range in.Output {
		parts, err := in.Output[i].answer(o)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			called = called || p.Kind == CallPart
			refused = refused || p.Kind == RefusalPart
			if p.Text != "" || p.Kind != TextPart && p.Kind != RefusalPart || len(p.Logprobs) > 0 {
				a.Parts = append(a.Parts, p)
			}
		}
	}
	var err error
	a.Stop, err = in.stop(called, refused)
	return a, err
}

// itemID is the id of an item, empty where it is none.
func (x *responsesItem) itemID() (id string) {
	_ = json.Unmarshal(x.ID, &id, lenient) // what is no string is no id
	return id
}

// answer reads an item of the output.
func (x *responsesItem) answer(o *StreamOptions) ([]Part, error) {
	if !asksNothing(x.Phase) {
		o.tell("output.phase")
	}
	switch x.Type {
	case "message":
		var out []Part
		for j := range x.Content.parts {
			p, ok, err := x.Content.parts[j].answer(o)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, p)
			}
		}
		return out, nil
	case "function_call":
		args := x.Arguments
		if args == "" {
			args = "{}"
		}
		return []Part{{Kind: CallPart, Call: Call{x.CallID, x.Name, args}}}, nil
	case "reasoning":
		p, ok := x.reasoning()
		if !ok {
			return nil, nil
		}
		p.Signature = labelled(x.itemID(), p.Signature)
		return []Part{p}, nil
	}
	return nil, x.lost(o)
}

// lost tells of an item that other dialects have no place for. A call that the client is
// to run is not among them: without it the answer is another.
func (x *responsesItem) lost(o *StreamOptions) error {
	switch x.Type {
	case "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "mcp_approval_request":
		return uncarried("an item of type " + x.Type)
	}
	return o.lose("output: " + clean(x.Type))
}

// answer is a part of a message; not ok for one that other dialects have no place for.
func (p *responsesPart) answer(o *StreamOptions) (out Part, ok bool, err error) {
	if !asksNothing(p.Annotations) {
		if err := o.lose("output.content.annotations"); err != nil {
			return Part{}, false, err
		}
	}
	switch p.Type {
	case "output_text":
		return Part{Kind: TextPart, Text: p.Text, Logprobs: p.Logprobs}, true, nil
	case "refusal":
		return Part{Kind: RefusalPart, Text: p.Refusal}, true, nil
	}
	return Part{}, false, o.lose("output.content: " + clean(p.Type))
}

// responsesOutput is the items of an answer while they are made. Neighbouring texts are
// one part, and texts and refusals side by side one message.
type responsesOutput struct {
	answer string // its id, of which those of items are made
	items  []*responsesOut
	open   int // items before it are closed, in a stream
}

// responsesOut is one item.
type responsesOut struct {
	kind    PartKind // TextPart is a message
	id      string
	parts   []*responsesSaid // of a message
	call    Call             // of a call; its arguments are in args
	args    strings.Builder
	index   int // of a call, among the calls of the answer
	nesting nesting
	text    []byte // of reasoning, as the inside of a string in JSON
	seal    string
	cut     bool // the end of the output cut it off
	over    bool // all of a call has come; it is closed when it is known whether that was cut off
	closed  bool
}

// responsesSaid is one part of a message.
type responsesSaid struct {
	refusal  bool
	text     []byte // as the inside of a string in JSON
	logprobs []Logprob
}

// begin adds an item.
func (o *responsesOutput) begin(k PartKind) *responsesOut {
	prefix := "rs_"
	switch k {
	case TextPart:
		prefix = "msg_"
	case CallPart:
		prefix = "fc_"
	}
	o.items = append(o.items, &responsesOut{kind: k, id: prefix + o.answer + "_" + strconv.Itoa(len(o.items))})
	return o.items[len(o.items)-1]
}

// item appends an item as it stands in the output.
func (x *responsesOut) item(b []byte) []byte {
	kind := "reasoning"
	switch x.kind {
	case TextPart:
		kind = "message"
	case CallPart:
		kind = "function_call"
	}
	b = pair(pair(append(sep(b), '{'), "id", x.id), "type", kind)
	switch x.kind {
	case CallPart:
		status := "completed"
		if x.cut {
			status = "incomplete"
		}
		b = pair(b, "status", status)
		b = pair(pair(pair(b, "call_id", x.call.ID), "name", x.call.Name), "arguments", x.args.String())
	case TextPart:
		status := "completed"
		if x.cut {
			status = "incomplete"
		}
		b = append(key(pair(pair(b, "status", status), "role", "assistant"), "content"), '[')
		for i := range x.parts {
			b = x.parts[i].part(sep(b))
		}
		b = append(b, ']')
	default:
		b = append(key(b, "summary"), '[')
		if x.kind == ReasoningPart {
			b = append(quote(pair(append(b, '{'), "type", "summary_text"), "text", x.text), '}')
		}
		b = append(b, ']')
		if x.seal != "" {
			b = pair(b, "encrypted_content", x.seal)
		}
	}
	return append(b, '}')
}

// part appends a part of a message.
func (s *responsesSaid) part(b []byte) []byte {
	if s.refusal {
		return append(quote(pair(append(b, '{'), "type", "refusal"), "refusal", s.text), '}')
	}
	b = append(key(pair(append(b, '{'), "type", "output_text"), "annotations"), "[]"...)
	b = appendLogprobs(key(b, "logprobs"), s.logprobs, true)
	return append(quote(b, "text", s.text), '}')
}

// add adds a part of a whole answer.
func (o *responsesOutput) add(p *Part) {
	switch p.Kind {
	case TextPart, RefusalPart:
		o.say(p.Kind == RefusalPart, p.Text, p.Logprobs)
	case CallPart:
		x := o.begin(CallPart)
		x.call = p.Call
		x.args.WriteString(p.Call.Arguments)
		x.nesting.add(p.Call.Arguments)
	case ReasoningPart, RedactedPart:
		x := o.begin(p.Kind)
		x.text = inside(x.text, p.Text)
		x.seal = p.Signature
	}
}

// firstText is room for the text of a part, in bytes.
const firstText = 512

// say adds a text to the message that is last, or to a new one.
func (o *responsesOutput) say(refusal bool, s string, logprobs []Logprob) {
	x := o.last(TextPart)
	if x == nil {
		x = o.begin(TextPart)
	}
	if n := len(x.parts); n == 0 || x.parts[n-1].refusal != refusal {
		x.parts = append(x.parts, &responsesSaid{refusal: refusal, text: make([]byte, 0, firstText)})
	}
	last := x.parts[len(x.parts)-1]
	last.text = inside(last.text, s)
	last.logprobs = append(last.logprobs, logprobs...)
}

// last is the last item where it is of a kind and goes on, else nil.
func (o *responsesOutput) last(k PartKind) *responsesOut {
	if n := len(o.items); n > 0 && o.items[n-1].kind == k && !o.items[n-1].closed {
		return o.items[n-1]
	}
	return nil
}

// stop tells of the item at the end that it was cut off, and of calls whose arguments
// were. One that is closed has been told of.
func (o *responsesOutput) stop(s Stop) {
	for i, x := range o.items {
		if x.closed || !s.cutsOff() {
			continue
		}
		last := i == len(o.items)-1 && s.Reason != StopRefusal
		x.cut = last || x.kind == CallPart && x.args.Len() > 0 && !x.nesting.whole()
	}
}

// status is the words for why an answer ended; reason is empty for a complete one. A
// refusal in words is complete.
func (o *responsesOutput) status(s Stop) (status, reason string) {
	switch s.Reason {
	case StopLength, StopContext:
		return "incomplete", "max_output_tokens"
	case StopRefusal:
		for i := range o.items {
			for j := range o.items[i].parts {
				if o.items[i].parts[j].refusal {
					return "completed", ""
				}
			}
		}
		return "incomplete", "content_filter"
	}
	return "completed", ""
}

// emitResponsesAnswer appends an answer as a response.
func emitResponsesAnswer(b []byte, a *Answer) []byte {
	o := responsesOutput{answer: a.ID}
	for i := range a.Parts {
		o.add(&a.Parts[i])
	}
	o.stop(a.Stop)
	h := responsesHead{id: a.ID, model: a.Model, created: a.Created, echo: a.Echo}
	status, reason := o.status(a.Stop)
	return h.response(b, status, reason, &o, &a.Usage)
}

// responsesHead is what all of a response's events say of it.
type responsesHead struct {
	id, model string
	created   int64
	echo      []byte
}

// response appends the response. usage is nil while it is in progress.
func (h *responsesHead) response(b []byte, status, reason string, o *responsesOutput, u *sluice.Usage) []byte {
	b = figure(pair(pair(append(b, '{'), "id", h.id), "object", "response"), "created_at", h.created)
	b = pair(b, "status", status)
	b = append(b, `,"background":false,"error":null`...)
	if reason != "" {
		b = append(pair(append(key(b, "incomplete_details"), '{'), "reason", reason), '}')
	} else {
		b = append(b, `,"incomplete_details":null`...)
	}
	b = pair(b, "model", h.model)
	b = append(key(b, "output"), '[')
	for i := range o.items {
		b = o.items[i].item(b)
	}
	b = append(b, `],"previous_response_id":null,"store":false`...)
	if h.echo == nil {
		h.echo = responsesEcho(nil)
	}
	b = append(b, h.echo...)
	if u == nil {
		return append(b, `,"usage":null}`...)
	}
	return append(responsesUsage(key(b, "usage"), u), '}')
}

// responsesUsage appends usage as the dialect has it.
func responsesUsage(b []byte, u *sluice.Usage) []byte {
	in, out := int64(u.InputTotal()), int64(u.OutputTotal())
	b = figure(append(b, '{'), "input_tokens", in)
	b = figure(append(key(b, "input_tokens_details"), '{'), "cached_tokens", int64(u.CacheRead))
	b = append(figure(b, "cache_write_tokens", int64(u.CacheWrite+u.CacheWrite1h)), '}')
	b = figure(b, "output_tokens", out)
	b = append(figure(append(key(b, "output_tokens_details"), '{'), "reasoning_tokens", int64(u.Reasoning)), '}')
	return append(figure(b, "total_tokens", in+out), '}')
}
