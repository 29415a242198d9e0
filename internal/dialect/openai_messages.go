package dialect

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

type openaiMessage struct {
	Role        string              `json:"role"`
	Content     content[openaiPart] `json:"content"`
	Name        string              `json:"name"`
	ToolCalls   []openaiCall        `json:"tool_calls"`
	ToolCallID  string              `json:"tool_call_id"`
	Refusal     string              `json:"refusal"`
	Reasoning   string              `json:"reasoning_content"`
	Thought     string              `json:"reasoning"` // some servers' name for the same
	Details     []openaiReasoning   `json:"reasoning_details"`
	Audio       jsontext.Value      `json:"audio"`
	Annotations jsontext.Value      `json:"annotations"`
	Function    jsontext.Value      `json:"function_call"`
	Rest        jsontext.Value      `json:",embed"`
}

// openaiReasoning is reasoning that its provider knows again, in the form that
// routers have agreed on.
type openaiReasoning struct {
	Type      string         `json:"type"` // reasoning.text or reasoning.encrypted
	Text      string         `json:"text"`
	Signature string         `json:"signature"`
	Data      string         `json:"data"`
	Format    string         `json:"format"` // whose it is, as routers say it
	Rest      jsontext.Value `json:",embed"` // index, id: what orders and labels them
}

type openaiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function *struct {
		Name      string         `json:"name"`
		Arguments string         `json:"arguments"`
		Rest      jsontext.Value `json:",embed"`
	} `json:"function"`
	Index jsontext.Value `json:"index"` // of a chunk that was kept
	Rest  jsontext.Value `json:",embed"`
}

type openaiPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Image   *struct {
		URL    string         `json:"url"`
		Detail string         `json:"detail"`
		Rest   jsontext.Value `json:",embed"`
	} `json:"image_url"`
	File *struct {
		Data string         `json:"file_data"`
		ID   string         `json:"file_id"`
		Name string         `json:"filename"`
		Rest jsontext.Value `json:",embed"`
	} `json:"file"`
	Audio      jsontext.Value `json:"input_audio"`
	Breakpoint jsontext.Value `json:"prompt_cache_breakpoint"`
	Rest       jsontext.Value `json:",embed"`
}

func (in *openaiRequest) messages(r *Request) {
	leading := true
	for i := range in.Messages {
		m := &in.Messages[i]
		at := fmt.Sprintf("messages[%d]", i)
		if m.Name != "" {
			r.ask(FeatureName, at+".name", nil)
		}
		r.unknown(at, m.Rest)
		switch m.Role {
		case "system", "developer":
			parts, plain := m.parts(r, i)
			if leading {
				r.System = append(r.System, parts...)
				continue
			}
			r.Messages = append(r.Messages, Message{Role: System, Parts: parts, Plain: plain, at: place{i, -1, -1}})
		case "user":
			parts, plain := m.parts(r, i)
			r.Messages = append(r.Messages, Message{Role: User, Parts: parts, Plain: plain, at: place{i, -1, -1}})
		case "tool":
			parts, plain := m.parts(r, i)
			result := Part{Kind: ResultPart, Result: Result{ID: m.ToolCallID, Parts: parts, Plain: plain}, at: place{i, -1, -1}}
			if n := len(r.Messages); n > 0 && r.Messages[n-1].results() {
				r.Messages[n-1].Parts = append(r.Messages[n-1].Parts, result)
				break
			}
			r.Messages = append(r.Messages, Message{Role: User, Parts: []Part{result}, at: place{i, -1, -1}})
		case "assistant":
			r.Messages = append(r.Messages, m.assistant(r, i))
		case "function":
			r.ask(FeatureFunctions, at+".role", nil)
		default:
			r.ask(FeatureUnknown, at+".role", nil)
		}
		leading = false
	}
}

// results reports a turn of tool results alone.
func (m *Message) results() bool {
	for i := range m.Parts {
		if m.Parts[i].Kind != ResultPart {
			return false
		}
	}
	return m.Role == User && len(m.Parts) > 0
}

// assistant reads an earlier answer: reasoning comes first, and calls last.
func (m *openaiMessage) assistant(r *Request, i int) Message {
	at := fmt.Sprintf("messages[%d]", i)
	out := Message{Role: Assistant, at: place{i, itself, -1}}
	for j := range m.Details {
		switch d := &m.Details[j]; d.Type {
		case "reasoning.text":
			text := d.Text
			if text == "" && len(m.Details) == 1 {
				text = m.Reasoning
			}
			out.Parts = append(out.Parts, Part{Kind: ReasoningPart, Text: text, Signature: d.signed(d.Signature), at: out.at})
		case "reasoning.encrypted":
			out.Parts = append(out.Parts, Part{Kind: RedactedPart, Signature: d.signed(d.Data), at: out.at})
		default:
			r.ask(FeatureUnknown, fmt.Sprintf("%s.reasoning_details[%d]", at, j), nil)
		}
	}
	if thought := m.Reasoning + m.Thought; thought != "" && len(m.Details) == 0 {
		if m.Reasoning != "" {
			thought = m.Reasoning
		}
		out.Parts = append(out.Parts, Part{Kind: ReasoningPart, Text: thought, at: out.at})
	}
	parts, plain := m.parts(r, i)
	plain = plain && len(out.Parts) == 0 && len(m.ToolCalls) == 0 && m.Refusal == ""
	out.Plain = plain
	for _, p := range parts {
		if p.Text != "" || plain {
			out.Parts = append(out.Parts, p)
		}
	}
	if m.Refusal != "" {
		out.Parts = append(out.Parts, Part{Kind: RefusalPart, Text: m.Refusal, at: out.at})
	}
	for j := range m.ToolCalls {
		m.call(r, &out, j)
	}
	for _, x := range []struct {
		feature Feature
		name    string
		value   jsontext.Value
	}{{FeatureSpoken, "audio", m.Audio}, {FeatureAnnotations, "annotations", m.Annotations}, {FeatureFunctions, "function_call", m.Function}} {
		if !null(x.value) && !is(x.value, "[]") {
			r.ask(x.feature, at+"."+x.name, x.value)
		}
	}
	return out
}

// signed is a signature or a seal with the mark of its provider: its own, or that of what
// a router says, or what it looks like.
func (d *openaiReasoning) signed(s string) string {
	for _, by := range [...]struct{ word, mark string }{
		{"anthropic", anthropicMark}, {"google", geminiMark}, {"gemini", geminiMark}, {"openai", openaiMark}, {"azure", openaiMark}, {"xai", openaiMark},
	} {
		if strings.HasPrefix(d.Format, by.word) {
			return signedBy(by.mark, s)
		}
	}
	switch {
	case d.Format != "" && d.Format != "unknown":
		return signedBy(otherMark, s)
	case strings.HasPrefix(s, "gAAAA"): // as all of OpenAI's begin
		return signedBy(openaiMark, s)
	}
	return signedBy(anthropicMark, s)
}

func (m *openaiMessage) call(r *Request, out *Message, j int) {
	c, at := &m.ToolCalls[j], fmt.Sprintf("messages[%d].tool_calls[%d]", out.at.message, j)
	switch {
	case c.Type == "custom":
		r.ask(FeatureCustomTool, at, nil)
		return
	case c.Function == nil:
		r.ask(FeatureUnknown, at, nil)
		return
	}
	args := c.Function.Arguments
	if args == "" {
		args = "{}"
	}
	if !object(args) {
		r.ask(FeatureArguments, at+".function.arguments", nil)
		args = "{}"
	}
	out.Parts = append(out.Parts, Part{Kind: CallPart, Call: Call{c.ID, c.Function.Name, args}, at: out.at})
	r.unknown(at, c.Rest)
	r.unknown(at+".function", c.Function.Rest)
}

// parts reads a message's content.
func (m *openaiMessage) parts(r *Request, i int) (out []Part, plain bool) {
	if m.Content.plain {
		return []Part{{Kind: TextPart, Text: m.Content.text, at: place{i, -1, -1}}}, true
	}
	for j := range m.Content.parts {
		p := &m.Content.parts[j]
		at := place{i, j, -1}
		read, ok := p.read(r, at)
		if ok && read.Kind == AudioPart && m.Role != "user" {
			r.ask(FeatureAudioOther, at.inMessages("input_audio"), nil)
			ok = false
		}
		if !ok {
			continue
		}
		read.at = at
		read.Cached = !null(p.Breakpoint)
		out = append(out, read)
		r.unknown(at.inMessages(""), p.Rest)
	}
	return out, false
}

// read reads one part; false if it is one that has no typed place.
func (p *openaiPart) read(r *Request, at place) (Part, bool) {
	switch {
	case p.Type == "text":
		return Part{Kind: TextPart, Text: p.Text}, true
	case p.Type == "refusal":
		return Part{Kind: RefusalPart, Text: p.Refusal}, true
	case p.Type == "image_url" && p.Image != nil:
		detail := p.Image.Detail
		if detail == "auto" {
			detail = ""
		}
		if detail != "" {
			r.ask(FeatureImageDetail, at.inMessages("image_url.detail"), nil)
		}
		r.unknown(at.inMessages("image_url"), p.Image.Rest)
		kind, data, ok := dataURL(p.Image.URL)
		if !ok {
			return Part{Kind: ImagePart, Media: Media{URL: p.Image.URL, Detail: detail}}, true
		}
		return Part{Kind: ImagePart, Media: Media{Type: kind, Data: data, Detail: detail}}, true
	case p.Type == "file" && p.File != nil:
		kind, data, ok := dataURL(p.File.Data)
		r.unknown(at.inMessages("file"), p.File.Rest)
		switch {
		case p.File.ID != "":
			r.ask(FeatureFile, at.inMessages("file.file_id"), nil)
		case ok && kind == "application/pdf":
			return Part{Kind: DocumentPart, Media: Media{Type: kind, Data: data, Title: p.File.Name}}, true
		default:
			r.ask(FeatureSearchResult, at.inMessages("file.file_data"), nil)
		}
	case p.Type == "input_audio":
		return heard(r, at, p.Audio)
	default:
		r.ask(FeatureSearchResult, at.inMessages(""), nil)
	}
	return Part{}, false
}
