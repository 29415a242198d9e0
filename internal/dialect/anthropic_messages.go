package dialect

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type anthropicMessage struct {
	Role    string                  `json:"role"`
	Content content[anthropicBlock] `json:"content"`
	Rest    jsontext.Value          `json:",embed"`
}

// anthropicBlock is a block of a message, in a request or in an answer.
type anthropicBlock struct {
	Type      string                   `json:"type"`
	Text      string                   `json:"text"`
	Source    jsontext.Value           `json:"source"` // of images and documents an anthropicSource
	Title     string                   `json:"title"`
	Context   string                   `json:"context"`
	Citations jsontext.Value           `json:"citations"`
	ID        string                   `json:"id"`
	Name      string                   `json:"name"`
	Input     jsontext.Value           `json:"input"`
	Caller    jsontext.Value           `json:"caller"`
	ToolUseID string                   `json:"tool_use_id"`
	Content   *content[anthropicBlock] `json:"content"`
	IsError   bool                     `json:"is_error"`
	Thinking  string                   `json:"thinking"`
	Signature string                   `json:"signature"`
	Data      string                   `json:"data"`
	Cache     jsontext.Value           `json:"cache_control"`
	Rest      jsontext.Value           `json:",embed"`
}

type anthropicSource struct {
	Type      string         `json:"type"`
	MediaType string         `json:"media_type"`
	Data      string         `json:"data"`
	URL       string         `json:"url"`
	FileID    string         `json:"file_id"`
	Rest      jsontext.Value `json:",embed"`
}

func (in *anthropicRequest) messages(r *Request) {
	for i := range in.Messages {
		m := &in.Messages[i]
		out := Message{at: place{i, -1, -1}, Plain: m.Content.plain}
		switch m.Role {
		case "user":
		case "assistant":
			out.Role = Assistant
		case "system":
			out.Role = System
		default:
			r.ask(FeatureUnknown, fmt.Sprintf("messages[%d].role", i), nil)
		}
		if out.Plain {
			out.Parts = []Part{{Kind: TextPart, Text: m.Content.text, at: out.at}}
		} else {
			out.Parts = blocks(r, m.Content.parts, out.at)
		}
		r.unknown(fmt.Sprintf("messages[%d]", i), m.Rest)
		r.Messages = append(r.Messages, out)
	}
}

// blocks reads the blocks of a message, or, where in.part is set, those within its
// block.
func blocks(r *Request, list []anthropicBlock, in place) (out []Part) {
	for i := range list {
		at := place{in.message, i, -1}
		if in.part >= 0 {
			at = place{in.message, in.part, i}
		}
		b := &list[i]
		p, ok := b.read(r, at)
		r.unknown(at.inMessages(""), b.Rest)
		if ok {
			p.at, p.Cached = at, !null(b.Cache)
			p.Lasts = lasts(b.Cache)
			out = append(out, p)
		}
	}
	return out
}

// lasts is how long a mark lasts where that is longer than five minutes.
func lasts(mark jsontext.Value) string {
	var m struct {
		TTL string `json:"ttl"`
	}
	if null(mark) || json.Unmarshal(mark, &m, lenient) != nil || m.TTL == "5m" {
		return ""
	}
	return m.TTL
}

// read reads one block; false if it is one that has no typed place.
func (b *anthropicBlock) read(r *Request, at place) (Part, bool) {
	if !null(b.Citations) && !is(b.Citations, "[]", `{"enabled":false}`) {
		r.ask(FeatureCitations, at.inMessages("citations"), nil)
	}
	switch b.Type {
	case "text":
		return Part{Kind: TextPart, Text: b.Text}, true
	case "image":
		return b.image(r, at)
	case "document":
		return b.document(r, at)
	case "thinking":
		return Part{Kind: ReasoningPart, Text: b.Thinking, Signature: b.Signature}, true
	case "redacted_thinking":
		return Part{Kind: RedactedPart, Signature: b.Data}, true
	case "tool_use":
		if !isCaller(b.Caller) {
			r.ask(FeatureServerTool, at.inMessages("caller"), nil)
		}
		args := string(b.Input)
		if null(b.Input) {
			args = "{}"
		}
		return Part{Kind: CallPart, Call: Call{b.ID, b.Name, args}}, true
	case "tool_result":
		p := Part{Kind: ResultPart, Result: Result{ID: b.ToolUseID, Error: b.IsError, Plain: true}}
		if c := b.Content; c != nil && c.plain {
			p.Result.Parts = []Part{{Kind: TextPart, Text: c.text, at: at}}
		} else if c != nil && c.given {
			p.Result.Plain = false
			p.Result.Parts = blocks(r, c.parts, at)
		}
		return p, true
	case "container_upload":
		r.ask(FeatureFile, at.inMessages(""), nil)
	default:
		r.ask(FeatureSearchResult, at.inMessages(""), nil)
	}
	return Part{}, false
}

// source reads where an image or a document is; nil if it does not say.
func (b *anthropicBlock) source(r *Request, at place) *anthropicSource {
	var s anthropicSource
	if null(b.Source) || json.Unmarshal(b.Source, &s, lenient) != nil {
		return nil
	}
	r.unknown(at.inMessages("source"), s.Rest)
	return &s
}

func (b *anthropicBlock) image(r *Request, at place) (Part, bool) {
	switch s := b.source(r, at); {
	case s != nil && s.Type == "base64":
		return Part{Kind: ImagePart, Media: Media{Type: mediaType(s.MediaType), Data: plain64(s.Data)}}, true
	case s != nil && s.Type == "url":
		return Part{Kind: ImagePart, Media: Media{URL: s.URL}}, true
	}
	r.ask(FeatureFile, at.inMessages("source"), nil)
	return Part{}, false
}

func (b *anthropicBlock) document(r *Request, at place) (Part, bool) {
	if b.Context != "" {
		r.ask(FeatureDocumentContext, at.inMessages("context"), nil)
	}
	switch s := b.source(r, at); {
	case s == nil:
		r.ask(FeatureUnknown, at.inMessages("source"), nil)
	case s.Type == "base64":
		return Part{Kind: DocumentPart, Media: Media{Type: mediaType(s.MediaType), Data: plain64(s.Data), Title: b.Title}}, true
	case s.Type == "text":
		return Part{Kind: CitedTextPart, Text: s.Data, Media: Media{Title: b.Title}}, true
	case s.Type == "url":
		return Part{Kind: DocumentPart, Media: Media{URL: s.URL, Title: b.Title}}, true
	case s.Type == "file":
		r.ask(FeatureFile, at.inMessages("source.file_id"), nil)
	default:
		r.ask(FeatureSearchResult, at.inMessages("source"), nil)
	}
	return Part{}, false
}
