package fakellm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// weigh counts the text of the request and finds its last instruction.
func (s *Server) weigh(a *ask, in *body) {
	add := func(text string) {
		a.raw += s.count.text(text)
		a.last = text
		if found := instruct(text); found != "" {
			a.told = found
		}
	}
	var block func(json.RawMessage)
	block = func(raw json.RawMessage) {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || raw[0] == 'n' {
			return
		}
		var text string
		if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
			add(text)
			return
		}
		var parts []part
		if raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
			add(string(raw))
			return
		}
		for _, p := range parts {
			switch {
			case p.Text != "":
				add(p.Text)
			case len(p.Content) > 0:
				block(p.Content)
			case len(p.Input) > 0:
				add(string(p.Input))
			case strings.Contains(p.Type, "image"):
				a.raw += perImage
			}
		}
	}
	block(in.System)
	for _, m := range in.Messages {
		a.raw += perMessage
		block(m.Content)
		if len(m.ToolCalls) > 0 {
			add(string(m.ToolCalls))
		}
	}
	if len(in.Messages) > 0 {
		a.raw += perReply
	}
	s.weighPrompt(a, in.Prompt, add)
	s.weighPrompt(a, in.Input, add)
	if len(in.Tools) > 0 {
		a.raw += perTools
		for _, t := range in.Tools {
			a.raw += s.count.text(string(t))
		}
	}
	a.seed = mix(s.seed + uint64(a.raw)<<20 + uint64(len(a.last)))
}

// weighPrompt counts a prompt or an embeddings input: a string, a list of
// strings, a list of token ids, or a list of those.
func (s *Server) weighPrompt(a *ask, raw json.RawMessage, add func(string)) {
	var text string
	var texts []string
	var ids []int64
	var lists [][]int64
	switch {
	case len(raw) == 0:
	case flat(raw) > 0: // as of long prompts, whose decoding would cost more than all else
		a.items++
		a.raw += flat(raw)
	case json.Unmarshal(raw, &text) == nil:
		a.items++
		add(text)
	case json.Unmarshal(raw, &texts) == nil:
		a.items += len(texts)
		for _, t := range texts {
			add(t)
		}
	case json.Unmarshal(raw, &ids) == nil:
		a.items++
		a.raw += int64(len(ids))
	case json.Unmarshal(raw, &lists) == nil:
		a.items += len(lists)
		for _, l := range lists {
			a.raw += int64(len(l))
		}
	}
}

// flat is how many numbers a list of whole numbers has; 0 if it is something else.
// The text is valid JSON.
func flat(raw []byte) (n int64) {
	if len(raw) < 3 || raw[0] != '[' || raw[1] < '0' || bytes.IndexFunc(raw[1:len(raw)-1], notWhole) >= 0 {
		return 0
	}
	return int64(bytes.Count(raw, []byte(","))) + 1
}

func notWhole(r rune) bool { return (r < '0' || r > '9') && r != ',' && r != ' ' }

// instruct is the last instruction of a text. Double brackets that hold no
// known fault are just text.
func instruct(text string) string {
	if !strings.Contains(text, "[[") {
		return ""
	}
	m := instruction.FindAllStringSubmatch(text, -1)
	for _, found := range slices.Backward(m) {
		if _, err := ParseBehaviour(found[1]); err == nil {
			return found[1]
		}
	}
	return ""
}
