package dialect

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// responsesItem is one item of the input or of the output.
type responsesItem struct {
	Type      string                 `json:"type"`
	ID        jsontext.Value         `json:"id"`
	Status    jsontext.Value         `json:"status"`
	Role      string                 `json:"role"`
	Phase     jsontext.Value         `json:"phase"`
	Content   content[responsesPart] `json:"content"`
	CallID    string                 `json:"call_id"`
	Name      string                 `json:"name"`
	Arguments string                 `json:"arguments"`
	Output    content[responsesPart] `json:"output"`
	Summary   []responsesPart        `json:"summary"`
	Sealed    string                 `json:"encrypted_content"`
	Rest      jsontext.Value         `json:",embed"`
}

type responsesPart struct {
	Type        string         `json:"type"`
	Text        string         `json:"text"`
	Refusal     string         `json:"refusal"`
	ImageURL    string         `json:"image_url"`
	Detail      string         `json:"detail"`
	FileData    string         `json:"file_data"`
	FileURL     string         `json:"file_url"`
	FileID      string         `json:"file_id"`
	FileName    string         `json:"filename"`
	Annotations jsontext.Value `json:"annotations"`
	Logprobs    []Logprob      `json:"logprobs"`
	Breakpoint  jsontext.Value `json:"prompt_cache_breakpoint"`
	Rest        jsontext.Value `json:",embed"`
}

// items reads the input. Neighbouring items of the assistant (reasoning, a message,
// calls) are one turn, as are neighbouring results.
func (in *responsesRequest) items(r *Request) {
	if in.Input.plain {
		r.Messages = []Message{{Role: User, Plain: true, Parts: []Part{{Kind: TextPart, Text: in.Input.text, at: place{0, itself, -1}}}, at: place{0, itself, -1}}}
		return
	}
	leading := true
	for i := range in.Input.parts {
		x := &in.Input.parts[i]
		system := x.Role == "system" || x.Role == "developer"
		if leading = leading && system; leading {
			r.System = append(r.System, x.message(r, i).Parts...)
			continue
		}
		if m, ok := x.read(r, i); ok {
			r.join(m)
		}
	}
}

// join appends a message, to the one before where both are of one turn.
func (r *Request) join(m Message) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == m.Role {
		last := &r.Messages[n-1]
		if m.Role == Assistant || m.Role == User && last.results() && m.results() {
			last.Parts, last.Plain = append(last.Parts, m.Parts...), false
			return
		}
	}
	r.Messages = append(r.Messages, m)
}

// read reads an item; false if it is one that has no typed place.
func (x *responsesItem) read(r *Request, i int) (Message, bool) {
	at := place{i, itself, -1}
	path := responsesPath(at, "")
	switch x.Type {
	case "message", "":
		if x.Role == "" {
			r.ask(FeatureKept, path, nil) // an item by its id alone, or nothing that is known
			return Message{}, false
		}
		return x.message(r, i), true
	case "function_call":
		r.unknown(path, x.Rest)
		args := x.Arguments
		if args == "" {
			args = "{}"
		}
		if !object(args) {
			r.ask(FeatureArguments, path+".arguments", nil)
			args = "{}"
		}
		return Message{Role: Assistant, at: at, Parts: []Part{{Kind: CallPart, Call: Call{x.CallID, x.Name, args}, at: at}}}, true
	case "function_call_output":
		r.unknown(path, x.Rest)
		parts, plain := responsesParts(r, &x.Output, func(j int) place { return place{i, itself, j} })
		return Message{Role: User, at: at, Parts: []Part{{Kind: ResultPart, Result: Result{ID: x.CallID, Parts: parts, Plain: plain}, at: at}}}, true
	case "reasoning":
		r.unknown(path, x.Rest)
		if p, ok := x.reasoning(); ok {
			p.at = at
			p.Signature = labelled(x.itemID(), p.Signature)
			return Message{Role: Assistant, at: at, Parts: []Part{p}}, true
		}
		return Message{}, false
	case "item_reference":
		r.ask(FeatureKept, path, nil)
	case "custom_tool_call", "custom_tool_call_output":
		r.ask(FeatureCustomTool, path, nil)
	default:
		r.ask(FeatureToolItem, path, nil)
	}
	return Message{}, false
}

// reasoning is an item of reasoning; false if there is nothing in it. One that is
// sealed and shows nothing has no summary; one whose text is empty has an empty one.
func (x *responsesItem) reasoning() (Part, bool) {
	var texts []string
	for i := range x.Summary {
		texts = append(texts, x.Summary[i].Text)
	}
	for i := range x.Content.parts {
		texts = append(texts, x.Content.parts[i].Text)
	}
	switch thought := strings.Join(texts, betweenSummaries); {
	case len(texts) == 0 && x.Sealed != "":
		return Part{Kind: RedactedPart, Signature: x.Sealed}, true
	case thought != "" || x.Sealed != "":
		return Part{Kind: ReasoningPart, Text: thought, Signature: x.Sealed}, true
	}
	return Part{}, false
}

// betweenSummaries stands between the summaries of one reasoning, which are one text in
// other dialects.
const betweenSummaries = "\n\n"

// message reads a message.
func (x *responsesItem) message(r *Request, i int) Message {
	m := Message{at: place{i, itself, -1}}
	path := responsesPath(m.at, "")
	switch x.Role {
	case "user":
	case "assistant":
		m.Role = Assistant
	case "system", "developer":
		m.Role = System
	default:
		r.ask(FeatureUnknown, path+".role", nil)
	}
	if !null(x.Phase) {
		r.ask(FeaturePhase, path+".phase", nil)
	}
	r.unknown(path, x.Rest)
	m.Parts, m.Plain = responsesParts(r, &x.Content, func(j int) place { return place{i, j, -1} })
	return m
}

// responsesParts reads a content.
func responsesParts(r *Request, c *content[responsesPart], at func(int) place) (out []Part, plain bool) {
	if c.plain {
		return []Part{{Kind: TextPart, Text: c.text, at: at(-1)}}, true
	}
	for j := range c.parts {
		p := &c.parts[j]
		if read, ok := p.read(r, at(j)); ok {
			read.at, read.Cached = at(j), !null(p.Breakpoint)
			out = append(out, read)
			r.unknown(responsesPath(at(j), ""), p.Rest)
		}
	}
	return out, false
}

// read reads one part; false if it is one that has no typed place.
func (p *responsesPart) read(r *Request, at place) (Part, bool) {
	path := func(member string) string { return responsesPath(at, member) }
	switch {
	case p.Type == "input_text" || p.Type == "text":
		return Part{Kind: TextPart, Text: p.Text}, true
	case p.Type == "output_text":
		if !null(p.Annotations) && !is(p.Annotations, "[]") {
			r.ask(FeatureAnnotations, path("annotations"), nil)
		}
		return Part{Kind: TextPart, Text: p.Text}, true
	case p.Type == "refusal":
		return Part{Kind: RefusalPart, Text: p.Refusal}, true
	case p.FileID != "":
		r.ask(FeatureFile, path("file_id"), nil)
	case p.Type == "input_image":
		detail := p.Detail
		if detail == "auto" {
			detail = ""
		}
		if detail != "" {
			r.ask(FeatureImageDetail, path("detail"), nil)
		}
		if kind, data, ok := dataURL(p.ImageURL); ok {
			return Part{Kind: ImagePart, Media: Media{Type: kind, Data: data, Detail: detail}}, true
		}
		return Part{Kind: ImagePart, Media: Media{URL: p.ImageURL, Detail: detail}}, true
	case p.Type == "input_file" && p.FileURL != "":
		return Part{Kind: DocumentPart, Media: Media{URL: p.FileURL, Title: p.FileName}}, true
	case p.Type == "input_file":
		if kind, data, ok := dataURL(p.FileData); ok && kind == "application/pdf" {
			return Part{Kind: DocumentPart, Media: Media{Type: kind, Data: data, Title: p.FileName}}, true
		}
		r.ask(FeatureSearchResult, path("file_data"), nil)
	case p.Type == "input_audio":
		r.ask(FeatureAudioInput, path(""), nil)
	default:
		r.ask(FeatureSearchResult, path(""), nil)
	}
	return Part{}, false
}
