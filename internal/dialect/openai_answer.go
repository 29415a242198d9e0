package dialect

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
)

// openaiStops are the words by which an answer ends, those of servers that have
// their own included. The first of each reason is the one that clients are told.
var openaiStops = []struct {
	word   string
	reason StopReason
}{
	{"stop", StopEnd},
	{"eos", StopEnd},
	{"eos_token", StopEnd},
	{"length", StopLength},
	{"max_tokens", StopLength},
	{"model_length", StopContext},
	{"length", StopContext},
	{"stop", StopSequence},
	{"stop_sequence", StopSequence},
	{"tool_calls", StopTools},
	{"function_call", StopTools},
	{"content_filter", StopRefusal},
	{"safety", StopRefusal},
}

// openaiStop is the reason of a word; StopUnknown for one that nobody knows.
func openaiStop(word string) StopReason {
	for _, s := range openaiStops {
		if s.word == word {
			return s.reason
		}
	}
	return StopUnknown
}

// openaiFinish is the word for a reason.
func openaiFinish(r StopReason) string {
	for _, s := range openaiStops {
		if s.reason == r {
			if r == StopContext { // clients know no word for it
				return "length"
			}
			return s.word
		}
	}
	return "stop"
}

// openaiAnswer is a chat completion, whole or a chunk of one.
type openaiAnswer struct {
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Created int64          `json:"created"`
	Choices []openaiChoice `json:"choices"`
	Sources jsontext.Value `json:"citations"`      // of servers that search
	Results jsontext.Value `json:"search_results"` // likewise
}

// lost tells of where an answer has its knowledge from.
func (a *openaiAnswer) lost(o *StreamOptions) error {
	if !asksNothing(a.Sources) {
		if err := o.lose("citations"); err != nil {
			return err
		}
	}
	if !asksNothing(a.Results) {
		return o.lose("search_results")
	}
	return nil
}

type openaiChoice struct {
	Index   int64          `json:"index"`
	Message openaiDelta    `json:"message"`
	Delta   openaiDelta    `json:"delta"`
	Finish  *string        `json:"finish_reason"`
	Matched jsontext.Value `json:"stop_reason"` // of engines: the stop sequence, or the id of a token

	Logprobs struct {
		Content []Logprob `json:"content"`
	} `json:"logprobs"`
}

// uncarried is the error for an answer that has something which the client's
// dialect has no place for.
func uncarried(what string) error {
	return &sluice.Error{
		Kind: sluice.KindUpstream, Reason: sluice.UpstreamMalformed,
		Msg: "the backend's answer has " + what + ", which the client's dialect has no place for",
	}
}

func parseOpenAIAnswer(body []byte, o *StreamOptions) (*Answer, error) {
	var in openaiAnswer
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	if n := len(in.Choices); n == 0 || n > maxAnswers {
		return nil, uncarried(fmt.Sprintf("%d choices", n))
	}
	if err := in.lost(o); err != nil {
		return nil, err
	}
	a := &Answer{ID: in.ID, Model: in.Model, Created: in.Created}
	inOrder(in.Choices, func(c *openaiChoice) int64 { return c.Index })
	for i := range in.Choices {
		s, err := in.Choices[i].said(o, answerID(o.ID, i))
		if err != nil {
			return nil, err
		}
		a.add(i, s)
	}
	return a, nil
}

// said is what a choice says; id is what ids of its calls are made of.
func (c *openaiChoice) said(o *StreamOptions, id string) (a Said, err error) {
	m := &c.Message
	if err := cmp.Or(m.strange(), m.lost(o, "message")); err != nil {
		return a, err
	}
	a.Parts = m.said(nil)
	if list := c.Logprobs.Content; len(list) > 0 && !spread(a.Parts, list) {
		a.Parts = append(a.Parts, Part{Kind: TextPart, Logprobs: list})
	}
	for i := range m.ToolCalls {
		k := &m.ToolCalls[i]
		args := k.Function.Arguments
		if args == "" {
			args = "{}"
		}
		a.Parts = append(a.Parts, Part{Kind: CallPart, Call: Call{callID(k.ID, id, i), k.Function.Name, args}})
	}
	a.Stop, err = c.stop(len(m.ToolCalls) > 0, refuses(a.Parts))
	return a, err
}

// callID is the id of a call, or one that is made of the request's where the server
// gives none: some that give none give no answer an id either, or give all the same, and
// clients send back the calls of many answers.
func callID(id, request string, index int) string {
	if id == "" {
		id = fmt.Sprintf("call_%s_%d", request, index)
	}
	return id
}

// stop is why the choice ended. A server may say stop where it called tools, and
// does where it refused.
func (c *openaiChoice) stop(called, refused bool) (Stop, error) {
	if c.Finish == nil {
		return Stop{Reason: StopEnd}, nil
	}
	s := Stop{Reason: openaiStop(*c.Finish)}
	switch {
	case s.Reason == StopUnknown:
		return s, uncarried("the finish reason " + clean(*c.Finish))
	case s.Reason != StopEnd:
	case called:
		s.Reason = StopTools
	case refused:
		s.Reason = StopRefusal
	case len(c.Matched) > 0 && c.Matched[0] == '"':
		s.Reason = StopSequence
		_ = json.Unmarshal(c.Matched, &s.Sequence) // it is a string
	}
	return s, nil
}

// emitOpenAIAnswer appends an answer as a chat completion.
func emitOpenAIAnswer(b []byte, a *Answer) []byte {
	b = append(b, '{')
	b = openaiHead(b, a.ID, "chat.completion", a.Created, a.Model)
	b = append(key(b, "choices"), '[')
	a.each(func(nth int, parts []Part, s Stop) { b = openaiChoiceOf(b, nth, parts, s) })
	b = append(b, ']')
	b = openaiUsage(key(b, "usage"), &a.Usage)
	return append(b, '}')
}

// openaiChoiceOf appends one choice.
func openaiChoiceOf(b []byte, nth int, parts []Part, s Stop) []byte {
	b = append(key(figure(append(sep(b), '{'), "index", int64(nth)), "message"), `{"role":"assistant"`...)
	var content, refusal, thought strings.Builder
	said := false
	var logprobs []Logprob
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case TextPart:
			said = said || p.Text != ""
			content.WriteString(p.Text)
			logprobs = append(logprobs, p.Logprobs...)
		case RefusalPart:
			refusal.WriteString(p.Text)
		case ReasoningPart:
			thought.WriteString(p.Text)
		}
	}
	if said || !hasCalls(parts) {
		b = pair(b, "content", content.String())
	} else {
		b = append(key(b, "content"), "null"...)
	}
	if refusal.Len() > 0 {
		b = pair(b, "refusal", refusal.String())
	} else {
		b = append(key(b, "refusal"), "null"...)
	}
	if thought.Len() > 0 {
		b = pair(b, "reasoning_content", thought.String())
	}
	b = openaiDetails(b, parts)
	b = openaiCalls(b, parts)
	b = openaiLogprobs(append(b, '}'), logprobs)
	b = openaiEnd(b, s, refusal.Len() > 0)
	return append(b, '}')
}

func refuses(parts []Part) bool {
	for i := range parts {
		if parts[i].Kind == RefusalPart {
			return true
		}
	}
	return false
}

func hasCalls(parts []Part) bool {
	for i := range parts {
		if parts[i].Kind == CallPart {
			return true
		}
	}
	return false
}

// openaiHead appends the members that every chunk of an answer has.
func openaiHead(b []byte, id, object string, created int64, model string) []byte {
	return pair(figure(pair(pair(b, "id", id), "object", object), "created", created), "model", model)
}

// openaiEnd appends why an answer ended. One that has refused in words has said what it
// had to say; without them a filter cut it off.
func openaiEnd(b []byte, s Stop, refused bool) []byte {
	if refused && s.Reason == StopRefusal {
		s.Reason = StopEnd
	}
	b = pair(b, "finish_reason", openaiFinish(s.Reason))
	if s.Reason == StopSequence && s.Sequence != "" {
		b = pair(b, "stop_reason", s.Sequence)
	}
	return b
}

// openaiDetails appends the reasoning that its provider must get back as it is.
func openaiDetails(b []byte, parts []Part) []byte {
	n := 0
	for i := range parts {
		p := &parts[i]
		if p.Kind != RedactedPart && (p.Kind != ReasoningPart || p.Signature == "") {
			continue
		}
		if n == 0 {
			b = append(key(b, "reasoning_details"), '[')
		}
		b = openaiDetail(b, n, p.Text, p.Signature, p.Kind == RedactedPart)
		n++
	}
	if n > 0 {
		b = append(b, ']')
	}
	return b
}

// openaiDetail appends one piece of signed or sealed reasoning.
func openaiDetail(b []byte, index int, thought, signature string, sealed bool) []byte {
	b = append(sep(b), '{')
	if sealed {
		b = pair(pair(b, "type", "reasoning.encrypted"), "data", signature)
	} else {
		b = pair(pair(pair(b, "type", "reasoning.text"), "text", thought), "signature", signature)
	}
	return append(figure(b, "index", int64(index)), '}')
}

func openaiCalls(b []byte, parts []Part) []byte {
	if !hasCalls(parts) {
		return b
	}
	b = append(key(b, "tool_calls"), '[')
	for i := range parts {
		if c := &parts[i].Call; parts[i].Kind == CallPart {
			b = pair(pair(append(sep(b), '{'), "id", c.ID), "type", "function")
			b = append(key(b, "function"), '{')
			b = append(pair(pair(b, "name", c.Name), "arguments", c.Arguments), '}', '}')
		}
	}
	return append(b, ']')
}

// openaiUsage appends usage as the dialect has it: what is cached is part of the
// prompt, what is reasoned part of the completion.
func openaiUsage(b []byte, u *sluice.Usage) []byte {
	in, out := int64(u.InputTotal()), int64(u.OutputTotal())
	b = append(b, '{')
	b = figure(figure(figure(b, "prompt_tokens", in), "completion_tokens", out), "total_tokens", in+out)
	b = append(key(b, "prompt_tokens_details"), '{')
	b = figure(figure(b, "cached_tokens", int64(u.CacheRead)), "cache_write_tokens", int64(u.CacheWrite+u.CacheWrite1h))
	b = append(figure(b, "audio_tokens", int64(u.AudioInput)), '}')
	b = append(key(b, "completion_tokens_details"), '{')
	b = figure(figure(b, "reasoning_tokens", int64(u.Reasoning)), "audio_tokens", int64(u.AudioOutput))
	return append(b, '}', '}')
}
