package dialect

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
)

// geminiStops are the words by which an answer ends. The first of each reason is the
// one that clients are told.
var geminiStops = []struct {
	word   string
	reason StopReason
}{
	{"STOP", StopEnd},
	{"STOP", StopSequence},
	{"STOP", StopTools},
	{"MAX_TOKENS", StopLength},
	{"MAX_TOKENS", StopContext},
	{"SAFETY", StopRefusal},
	{"RECITATION", StopRefusal},
	{"LANGUAGE", StopRefusal},
	{"BLOCKLIST", StopRefusal},
	{"PROHIBITED_CONTENT", StopRefusal},
	{"SPII", StopRefusal},
	{"IMAGE_SAFETY", StopRefusal},
	{"IMAGE_PROHIBITED_CONTENT", StopRefusal},
	{"IMAGE_RECITATION", StopRefusal},
	{"MODEL_ARMOR", StopRefusal},
}

// geminiStop is the reason of a word; StopUnknown for one that nobody knows, and for
// answers that came to nothing, such as a call that could not be read.
func geminiStop(word string) StopReason {
	for _, s := range geminiStops {
		if s.word == word {
			return s.reason
		}
	}
	return StopUnknown
}

func geminiFinish(r StopReason) string {
	for _, s := range geminiStops {
		if s.reason == r {
			return s.word
		}
	}
	return "STOP"
}

// geminiAnswer is an answer, whole or an event of one.
type geminiAnswer struct {
	Candidates []geminiCandidate `json:"candidates"`
	Feedback   *struct {
		Reason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Model string `json:"modelVersion"`
	ID    string `json:"responseId"`
}

type geminiCandidate struct {
	Index    int            `json:"index"`
	Content  geminiContent  `json:"content"`
	Finish   string         `json:"finishReason"`
	Logprobs geminiLogprobs `json:"logprobsResult"`
	Rest     jsontext.Value `json:",embed"`
}

// blocked reports a prompt that was blocked: there is no answer to it.
func (a *geminiAnswer) blocked() bool { return a.Feedback != nil && a.Feedback.Reason != "" }

// stopped is why the candidate ended; not ok if it has not.
func (c *geminiCandidate) stopped(called bool) (s Stop, ok bool, err error) {
	if c.Finish == "" || c.Finish == "FINISH_REASON_UNSPECIFIED" {
		return s, false, nil
	}
	if s.Reason = geminiStop(c.Finish); s.Reason == StopUnknown {
		return s, false, uncarried("the finish reason " + clean(c.Finish))
	}
	if s.Reason == StopEnd && called {
		s.Reason = StopTools
	}
	return s, true, nil
}

// strange is the error for a part without which the answer would be another.
func (p *geminiPart) strange() error {
	switch {
	case p.Response != nil:
		return uncarried("a functionResponse")
	case p.Call != nil && len(members(p.Call.Rest)) > 0:
		return uncarried("a call in pieces")
	}
	return nil
}

// lost tells of what a part has and other dialects have no place for: pictures, sound,
// files, code, and what nobody knows.
func (p *geminiPart) lost(o *StreamOptions) error {
	if p.Inline != nil || p.File != nil {
		if err := o.lose("parts: image, sound or file"); err != nil {
			return err
		}
	}
	for _, m := range members(p.Rest) {
		if asksNothing(m.value) && m.name != "executableCode" || m.name == "partMetadata" {
			continue
		}
		if err := o.lose("parts." + clean(m.name)); err != nil {
			return err
		}
	}
	return nil
}

// lost tells of where an answer has its knowledge from.
func (c *geminiCandidate) lost(o *StreamOptions) error {
	for _, m := range members(c.Rest) {
		if asksNothing(m.value) || m.name != "groundingMetadata" && m.name != "citationMetadata" && m.name != "urlContextMetadata" {
			continue
		}
		if err := o.lose("candidates." + m.name); err != nil {
			return err
		}
	}
	return nil
}

// geminiPieces puts the parts of answers into those of no dialect, whole or as they
// come.
type geminiPieces struct {
	o       *StreamOptions
	request string // its id
	calls   int
}

// add appends what a part of an answer is.
func (g *geminiPieces) add(out []Part, p *geminiPart) ([]Part, error) {
	if err := cmp.Or(p.strange(), p.lost(g.o)); err != nil {
		return out, err
	}
	text := ""
	if p.Text != nil {
		text = *p.Text
	}
	if p.Thought {
		if text != "" || p.Signature != "" {
			s := ""
			if p.Signature != "" {
				s = geminiMark + p.Signature
			}
			out = append(out, Part{Kind: ReasoningPart, Text: text, Signature: s})
		}
		return out, nil
	}
	if p.Signature != "" {
		out = append(out, Part{Kind: RedactedPart, Signature: geminiMark + p.Signature})
	}
	switch {
	case p.Call != nil:
		args := jsontext.Value(argsOf(p.Call.Args))
		if err := args.Compact(); err != nil {
			return out, err
		}
		if args.Kind() != '{' {
			return out, uncarried("arguments of a tool call that are no JSON object")
		}
		out = append(out, Part{Kind: CallPart, Call: Call{callID(p.Call.ID, g.request, g.calls), p.Call.Name, string(args)}})
		g.calls++
	case text != "":
		out = append(out, Part{Kind: TextPart, Text: text})
	}
	return out, nil
}

func parseGeminiAnswer(body []byte, o *StreamOptions) (*Answer, error) {
	var in geminiAnswer
	if err := json.Unmarshal(body, &in, lenient); err != nil {
		return nil, err
	}
	a := &Answer{ID: in.ID, Model: in.Model}
	if len(in.Candidates) == 0 && in.blocked() {
		a.Stop.Reason = StopRefusal
		return a, nil
	}
	if n := len(in.Candidates); n == 0 || n > maxAnswers {
		return nil, uncarried(fmt.Sprintf("%d candidates", n))
	}
	inOrder(in.Candidates, func(c *geminiCandidate) int64 { return int64(c.Index) })
	for i := range in.Candidates {
		s, err := in.Candidates[i].said(o, answerID(o.ID, i))
		if err != nil {
			return nil, err
		}
		a.add(i, s)
	}
	return a, nil
}

// said is what a candidate says; id is what ids of its calls are made of.
func (c *geminiCandidate) said(o *StreamOptions, id string) (a Said, err error) {
	if err := c.lost(o); err != nil {
		return a, err
	}
	g := geminiPieces{o: o, request: id}
	for i := range c.Content.Parts {
		n := len(a.Parts)
		if a.Parts, err = g.add(a.Parts, &c.Content.Parts[i]); err != nil {
			return a, err
		}
		if n > 0 && n < len(a.Parts) && a.Parts[n].Kind == ReasoningPart && a.Parts[n-1].Kind == ReasoningPart && a.Parts[n-1].Signature == "" {
			a.Parts[n-1].Text += a.Parts[n].Text // thoughts up to one that is signed are one
			a.Parts[n-1].Signature = a.Parts[n].Signature
			a.Parts = a.Parts[:n]
		}
	}
	if list := c.Logprobs.list(); len(list) > 0 && !spread(a.Parts, list) {
		a.Parts = append(a.Parts, Part{Kind: TextPart, Logprobs: list})
	}
	ok := false
	if a.Stop, ok, err = c.stopped(g.calls > 0); err == nil && !ok {
		a.Stop.Reason = StopEnd
	}
	return a, err
}

// emitGeminiAnswer appends an answer.
func emitGeminiAnswer(b []byte, a *Answer) []byte {
	b = append(key(append(b, '{'), "candidates"), '[')
	a.each(func(nth int, parts []Part, s Stop) { b = geminiSaid(b, nth, parts, s) })
	b = append(b, ']')
	return append(geminiEnd(b, &a.Usage, a.Model, a.ID), '}')
}

// geminiSaid appends one candidate.
func geminiSaid(b []byte, nth int, parts []Part, s Stop) []byte {
	b = append(sep(b), `{"content":{"parts":[`...)
	var logprobs []Logprob
	var mean likelihood
	for i := range parts {
		b = geminiAnswerPart(b, &parts[i])
		logprobs = append(logprobs, parts[i].Logprobs...)
	}
	mean.add(logprobs)
	b = append(b, `],"role":"model"}`...)
	b = pair(b, "finishReason", geminiFinish(s.Reason))
	return append(figure(mean.append(geminiLikely(b, logprobs)), "index", int64(nth)), '}')
}

// geminiAnswerPart appends a part of an answer. What others have signed is marked, so
// that it comes back as what it was.
func geminiAnswerPart(b []byte, p *Part) []byte {
	b = append(sep(b), '{')
	switch p.Kind {
	case ReasoningPart:
		b = append(key(pair(b, "text", p.Text), "thought"), "true"...)
		if p.Signature != "" {
			b = pair(b, "thoughtSignature", marked(signedMark, p.Signature))
		}
	case RedactedPart:
		b = append(key(pair(b, "text", ""), "thought"), "true"...)
		b = pair(b, "thoughtSignature", marked(sealedMark, p.Signature))
	case CallPart:
		b = pair(pair(append(key(b, "functionCall"), '{'), "id", p.Call.ID), "name", p.Call.Name)
		b = append(append(key(b, "args"), p.Call.Arguments...), '}')
	default:
		b = pair(b, "text", p.Text)
	}
	return append(b, '}')
}

// geminiEnd appends the members that stand behind the candidates.
func geminiEnd(b []byte, u *sluice.Usage, model, id string) []byte {
	in, out, thoughts := int64(u.InputTotal()), int64(u.Output+u.AudioOutput), int64(u.Reasoning)
	b = append(key(b, "usageMetadata"), '{')
	b = figure(b, "promptTokenCount", in)
	if u.CacheRead > 0 {
		b = figure(b, "cachedContentTokenCount", int64(u.CacheRead))
	}
	b = figure(b, "candidatesTokenCount", out)
	if thoughts > 0 {
		b = figure(b, "thoughtsTokenCount", thoughts)
	}
	b = figure(b, "totalTokenCount", in+out+thoughts)
	b = geminiModality(b, "promptTokensDetails", in-int64(u.AudioInput), int64(u.AudioInput))
	b = geminiModality(b, "candidatesTokensDetails", int64(u.Output), int64(u.AudioOutput))
	return geminiHead(append(b, '}'), model, id)
}

// geminiModality appends how much of a figure is sound, where some of it is.
func geminiModality(b []byte, name string, words, sound int64) []byte {
	if sound == 0 {
		return b
	}
	b = append(key(b, name), '[')
	b = append(figure(pair(append(b, '{'), "modality", "TEXT"), "tokenCount", words), "},"...)
	return append(figure(pair(append(b, '{'), "modality", "AUDIO"), "tokenCount", sound), "}]"...)
}

// geminiHead appends the members that every event of an answer has.
func geminiHead(b []byte, model, id string) []byte {
	return pair(pair(b, "modelVersion", model), "responseId", id)
}
