package dialect

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type geminiContent struct {
	Role  string         `json:"role"`
	Parts []geminiPart   `json:"parts"`
	Rest  jsontext.Value `json:",embed"`
}

// geminiPart is a part of a content, in a request or in an answer.
type geminiPart struct {
	Text       *string         `json:"text"`
	Thought    bool            `json:"thought"`
	Signature  string          `json:"thoughtSignature"`
	Inline     *geminiBlob     `json:"inlineData"`
	File       *geminiFile     `json:"fileData"`
	Call       *geminiCall     `json:"functionCall"`
	Response   *geminiResponse `json:"functionResponse"`
	Resolution jsontext.Value  `json:"mediaResolution"`
	Rest       jsontext.Value  `json:",embed"` // code, tools of the provider, pieces of a video
}

type geminiBlob struct {
	MIME string         `json:"mimeType"`
	Data string         `json:"data"`
	Name string         `json:"displayName"`
	Rest jsontext.Value `json:",embed"`
}

type geminiFile struct {
	MIME string         `json:"mimeType"`
	URI  string         `json:"fileUri"`
	Name string         `json:"displayName"`
	Rest jsontext.Value `json:",embed"`
}

type geminiCall struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Args jsontext.Value `json:"args"`
	Rest jsontext.Value `json:",embed"` // pieces of arguments
}

type geminiResponse struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Response jsontext.Value `json:"response"`
	Parts    []geminiPart   `json:"parts"`
	Rest     jsontext.Value `json:",embed"`
}

// openCall is a call that no result has answered yet.
type openCall struct{ id, name string }

// geminiTurns reads contents, and knows what they leave out: the ids of calls.
type geminiTurns struct {
	r    *Request
	open []openCall
	role Role // of the content that is read
}

func (t *geminiTurns) read(contents []geminiContent) {
	for i := range contents {
		c := &contents[i]
		at := place{i, itself, -1}
		m := Message{at: at}
		switch c.Role {
		case "", "user", "function":
		case "model":
			m.Role = Assistant
		default:
			t.r.ask(FeatureUnknown, geminiPath(at, "role"), nil)
		}
		t.role = m.Role
		t.r.unknown(geminiPath(at, ""), c.Rest)
		last := t.streamed(&m)
		for j := range c.Parts {
			n := len(last.Parts)
			if p := &c.Parts[j]; n+len(c.Parts) > 1 && p.Text != nil && *p.Text == "" && p.Signature == "" && !p.Thought {
				continue // the end of a stream, which says nothing
			}
			last.Parts = t.part(last.Parts, &c.Parts[j], place{i, j, -1})
			if j == 0 && last != &m && n > 0 && n+1 == len(last.Parts) && last.Parts[n].Kind == TextPart && last.Parts[n-1].Kind == TextPart {
				last.Parts[n-1].Text += last.Parts[n].Text
				last.Parts = last.Parts[:n]
			}
		}
		last.Plain = len(last.Parts) == 1 && last.Parts[0].Kind == TextPart
		if last == &m {
			t.r.Messages = append(t.r.Messages, m)
		}
	}
}

// streamed is the message that a content is a part of: client libraries keep a streamed
// answer as a content for each of its events.
func (t *geminiTurns) streamed(m *Message) *Message {
	if n := len(t.r.Messages); m.Role == Assistant && n > 0 && t.r.Messages[n-1].Role == Assistant {
		return &t.r.Messages[n-1]
	}
	return m
}

// part reads one part.
func (t *geminiTurns) part(out []Part, p *geminiPart, at place) []Part {
	r := t.r
	r.geminiRest(at, p.Rest)
	if !null(p.Resolution) {
		r.ask(FeatureImageDetail, geminiPath(at, "mediaResolution"), nil)
	}
	switch {
	case p.Thought:
		return t.thought(out, p, at)
	case p.Text != nil:
		out = t.signed(out, p, at)
		if *p.Text == "" && p.Signature != "" {
			return out
		}
		return append(out, Part{Kind: TextPart, Text: *p.Text, at: at})
	case p.Call != nil:
		return append(t.signed(out, p, at), t.call(p.Call, at))
	case p.Response != nil:
		return append(out, t.result(p.Response, at))
	case p.Inline != nil:
		r.unknown(geminiPath(at, "inlineData"), p.Inline.Rest)
		if media, ok := p.Inline.read(r, at); ok {
			if media.Kind == AudioPart && t.role == Assistant {
				r.ask(FeatureAudioOther, geminiPath(at, "inlineData"), nil)
			}
			return append(out, media)
		}
	case p.File != nil:
		r.unknown(geminiPath(at, "fileData"), p.File.Rest)
		if media, ok := p.File.read(r, at); ok {
			return append(out, media)
		}
	}
	return out
}

// signed puts the signature of a part that is no thought before it.
func (t *geminiTurns) signed(out []Part, p *geminiPart, at place) []Part {
	if p.Signature == "" || p.Signature == unsigned {
		return out
	}
	return append(out, Part{Kind: RedactedPart, Signature: geminiMark + p.Signature, at: at})
}

// thought reads reasoning. Streams cut it: pieces up to one that is signed are one.
func (t *geminiTurns) thought(out []Part, p *geminiPart, at place) []Part {
	text := ""
	if p.Text != nil {
		text = *p.Text
	}
	if sealed, ok := unmarked(sealedMark, p.Signature); ok {
		return append(out, Part{Kind: RedactedPart, Signature: sealed, at: at})
	}
	signature, ok := unmarked(signedMark, p.Signature)
	if !ok && p.Signature != "" {
		signature = geminiMark + p.Signature
	}
	if n := len(out); n > 0 && out[n-1].Kind == ReasoningPart && out[n-1].Signature == "" {
		out[n-1].Text += text
		out[n-1].Signature = signature
		return out
	}
	return append(out, Part{Kind: ReasoningPart, Text: text, Signature: signature, at: at})
}

// call reads a call. One without an id gets one of its place, the same each time.
func (t *geminiTurns) call(c *geminiCall, at place) Part {
	t.r.unknown(geminiPath(at, "functionCall"), c.Rest)
	id := c.ID
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", at.message, at.part)
	}
	t.open = append(t.open, openCall{id, c.Name})
	return Part{Kind: CallPart, Call: Call{id, c.Name, argsOf(c.Args)}, at: at}
}

// argsOf is the text of a call's arguments.
func argsOf(v jsontext.Value) string {
	if null(v) {
		return "{}"
	}
	return string(v)
}

// result reads what a tool answered. Without an id it answers the first call of its
// name that is still open.
func (t *geminiTurns) result(in *geminiResponse, at place) Part {
	t.r.unknown(geminiPath(at, "functionResponse"), in.Rest)
	found := -1
	for i, c := range t.open {
		if in.ID != "" && c.id == in.ID || in.ID == "" && c.name == in.Name {
			found = i
			break
		}
	}
	res := Result{ID: in.ID}
	if found >= 0 {
		res.ID = t.open[found].id
		t.open = append(t.open[:found:found], t.open[found+1:]...)
	} else if res.ID == "" {
		t.r.ask(FeatureOrphan, geminiPath(at, "functionResponse"), nil)
	}
	res.read(in.Response)
	for i := range in.Parts {
		for _, p := range t.part(nil, &in.Parts[i], place{at.message, at.part, i}) {
			res.Parts = append(res.Parts, p)
			res.Plain = false
		}
	}
	for i := range res.Parts {
		if res.Parts[i].Kind == TextPart {
			res.Parts[i].at = at
		}
	}
	return Part{Kind: ResultPart, Result: res, at: at}
}

// read reads a response: an object whose output, or error, is a text or texts is
// that; any other is its own JSON.
func (r *Result) read(v jsontext.Value) {
	var one struct {
		Output *content[string] `json:"output"`
		Error  *content[string] `json:"error"`
		Rest   jsontext.Value   `json:",embed"`
	}
	said := (*content[string])(nil)
	if !null(v) && json.Unmarshal(v, &one, lenient) == nil && len(members(one.Rest)) == 0 && (one.Output == nil) != (one.Error == nil) {
		said, r.Error = one.Output, one.Error != nil
		if said == nil {
			said = one.Error
		}
	}
	switch {
	case said != nil && said.plain:
		r.Plain = true
		r.Parts = []Part{{Kind: TextPart, Text: said.text}}
	case said != nil && said.given:
		for _, s := range said.parts {
			r.Parts = append(r.Parts, Part{Kind: TextPart, Text: s})
		}
	case null(v):
		r.Plain = true
		r.Parts = []Part{{Kind: TextPart}}
	default:
		whole := v.Clone()
		_ = whole.Compact() // it has been read
		r.Plain, r.Error = true, false
		r.Parts = []Part{{Kind: TextPart, Text: string(whole)}}
	}
}

// read reads bytes; false if they are of a kind that has no typed place.
func (b *geminiBlob) read(r *Request, at place) (Part, bool) {
	kind, data := mediaType(b.MIME), plain64(b.Data)
	switch major, _, _ := strings.Cut(kind, "/"); {
	case major == "image":
		return Part{Kind: ImagePart, Media: Media{Type: kind, Data: data}, at: at}, true
	case kind == "application/pdf":
		return Part{Kind: DocumentPart, Media: Media{Type: kind, Data: data, Title: b.Name}, at: at}, true
	case kind == "text/plain":
		if said, err := base64.StdEncoding.DecodeString(data); err == nil {
			return Part{Kind: CitedTextPart, Text: string(said), Media: Media{Title: b.Name}, at: at}, true
		}
		r.ask(FeatureUnknown, geminiPath(at, "inlineData.data"), nil)
	case major == "audio" && audioFormat(kind) != "" && at.message >= 0 && at.inner < 0:
		r.ask(FeatureAudioInput, geminiPath(at, "inlineData"), nil)
		return Part{Kind: AudioPart, Media: Media{Type: kind, Data: data}, at: at}, true
	case major == "audio":
		r.ask(FeatureAudioOther, geminiPath(at, "inlineData"), nil)
	case major == "video":
		r.ask(FeatureVideo, geminiPath(at, "inlineData"), nil)
	default:
		r.ask(FeatureSearchResult, geminiPath(at, "inlineData"), nil)
	}
	return Part{}, false
}

// read reads a file. What anybody can fetch is told by its URL; what lies with the
// provider is nobody else's.
func (f *geminiFile) read(r *Request, at place) (Part, bool) {
	where := strings.ToLower(f.URI)
	web := strings.HasPrefix(where, "https://") || strings.HasPrefix(where, "http://")
	stored := strings.HasPrefix(where, "https://generativelanguage.googleapis.com/")
	kind := mediaType(f.MIME)
	switch major, _, _ := strings.Cut(kind, "/"); {
	case !web || stored:
		r.ask(FeatureFile, geminiPath(at, "fileData.fileUri"), nil)
	case major == "image":
		return Part{Kind: ImagePart, Media: Media{Type: kind, URL: f.URI}, at: at}, true
	case major == "video" || major == "":
		r.ask(FeatureVideo, geminiPath(at, "fileData"), nil)
	case major == "audio":
		r.ask(FeatureAudioOther, geminiPath(at, "fileData"), nil)
	case kind == "application/pdf":
		return Part{Kind: DocumentPart, Media: Media{Type: kind, URL: f.URI, Title: f.Name}, at: at}, true
	default:
		r.ask(FeatureSearchResult, geminiPath(at, "fileData"), nil)
	}
	return Part{}, false
}

// geminiRest asks for what a part has beside its kinds.
func (r *Request) geminiRest(at place, rest jsontext.Value) {
	for _, m := range members(rest) {
		if null(m.value) {
			continue
		}
		feature := FeatureUnknown
		switch m.name {
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
			feature = FeatureSearchResult
		case "videoMetadata":
			feature = FeatureVideo
		case "partMetadata":
			feature = FeatureMetadata
		}
		r.ask(feature, geminiPath(at, clean(m.name)), m.value)
	}
}
