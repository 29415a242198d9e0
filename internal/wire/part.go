package wire

import (
	"bytes"

	"sluice/internal/route"
)

// part is what was seen of one content part; its type may come after the rest.
type part struct {
	kind      string
	source    string // type of its source
	mediaType string // MIME type, or the name of an audio format
	detail    byte
	data      span // inside of the literal that holds the media or the text
	escaped   bool
	url       bool // it refers to media by a URL
	fetched   bool // which the backend fetches
	reference bool // it refers to something by an id
	inline    bool // data is there
	file      string
}

func (s *scanner) part() {
	var p part
	for o := s.object(); s.member(&o); {
		switch string(s.key(&o)) {
		case "type":
			p.kind, _ = s.word("type", 1<<10)
		case "text", "thinking", "refusal", "name", "title", "context":
			s.literalText()
		case "input":
			s.schema()
		case "content":
			s.content()
		case "source": // a text of it names where a search result is from
			s.source(&p, (*scanner).reference)
		case "image_url", "input_audio", "file", "video_url", "audio_url", "input_image", "image_file":
			s.source(&p, (*scanner).address)
		case "file_data":
			s.reference(&p)
		case "file_url":
			s.ws()
			s.address(&p)
		case "detail":
			s.detail(&p)
		case "file_id":
			s.readFileID(&p)
		case "cache_control":
			s.need(route.NeedCache)
		default:
			s.other(s.key(&o))
		}
	}
	s.endPart(&p)
}

// present skips a value and reports whether it is not null.
func (s *scanner) present() bool {
	c := s.ws()
	s.skip()
	return c != 'n'
}

// source reads where a part's media come from: a text, which bare reads, an object of
// it, or data.
func (s *scanner) source(p *part, bare func(*scanner, *part)) {
	switch s.ws() {
	case '"':
		bare(s, p)
		return
	case '{':
	default:
		s.skip()
		return
	}
	for o := s.object(); s.member(&o); {
		switch string(s.key(&o)) {
		case "type":
			p.source, _ = s.word("source.type", 1<<10)
		case "url":
			s.address(p)
		case "file_data":
			s.reference(p)
		case "data":
			s.data(p)
		case "media_type", "format":
			p.mediaType, _ = s.word("media_type", 1<<10)
		case "detail":
			s.detail(p)
		case "content":
			s.content()
		case "file_id":
			s.readSourceFile(p)
		default:
			s.other(s.key(&o))
		}
	}
}

// detail reads how closely an image is to be looked at.
func (s *scanner) detail(p *part) {
	if s.ws() != '"' {
		s.skip()
	} else if d, _ := s.word("detail", 64); d != "" {
		p.detail = d[0]
	}
}

func (s *scanner) data(p *part) {
	if s.ws() != '"' {
		s.skip()
		return
	}
	p.data, p.escaped = s.str()
	p.inline = true
}

// address reads where a backend is to fetch from, or data.
func (s *scanner) address(p *part) {
	start := s.i
	s.reference(p)
	if !p.url || s.lexer.err != nil || s.b[start] != '"' {
		return
	}
	p.fetched = true
	raw := s.b[start+1 : s.i-1]
	head := string(appendUnquoted(nil, raw[:wholeEscapes(raw, min(len(raw), 64))]))
	for _, scheme := range schemes {
		if len(head) >= len(scheme) && equalFold([]byte(head[:len(scheme)]), scheme) {
			s.addressKept(raw, scheme)
			return
		}
	}
	s.reject("messages", "has media at an address that is none of http:, https: and data:, which a backend may take for a file of its own")
}

// addressKept notes what an address refers to that is read with the rights of the
// account: what is in a bucket.
func (s *scanner) addressKept(raw []byte, scheme string) {
	if scheme != "gs:" && scheme != "s3:" {
		return
	}
	if len(raw) > 6<<12 {
		s.reject("messages", "has media at an address that is too long")
		return
	}
	s.referFile(route.StateFile, "url", string(appendUnquoted(nil, raw)))
}

// reference reads a URL, which may be a data URL.
func (s *scanner) reference(p *part) {
	if s.ws() != '"' {
		s.skip()
		return
	}
	in, escaped := s.str()
	if in.len() < 5 || !equalFold(s.b[in.start:in.start+5], "data:") {
		p.url = true
		return
	}
	head := s.b[in.start+5 : min(in.end, in.start+5+256)]
	comma := bytes.IndexByte(head, ',')
	if comma < 0 || !bytes.Contains(head[:comma], []byte("base64")) {
		p.url = true // in no form that media take: bounded as a URL is
		return
	}
	kind, _, _ := bytes.Cut(head[:comma], []byte(";"))
	p.mediaType = string(appendUnquoted(nil, kind))
	p.data, p.escaped, p.inline = span{in.start + 5 + comma + 1, in.end}, escaped, true
}

// endPart sorts what a part brings: text, or media.
func (s *scanner) endPart(p *part) {
	if s.lexer.err != nil {
		return
	}
	s.referPart(p)
	if p.source == "text" && p.inline {
		s.addText(p.data, p.escaped)
		s.h.Needs |= route.NeedFile
		return
	}
	kind := mediaKindOf(p.kind, p.mediaType)
	if kind == noMedia || !p.inline && !p.url && !p.reference {
		return
	}
	s.h.Media++
	s.h.Needs |= kind.needs()
	if p.fetched {
		s.h.Needs |= route.NeedMediaURL
	}
	m := media{kind: kind, detail: p.detail}
	if p.inline {
		s.mediaLen += p.data.len()
		m.bytes = int32(min(base64Len(p.data.len()), 1<<31-1))
		if kind == imageMedia && s.h.Media <= maxHeaders {
			m.width, m.height = imageSize(s.b[p.data.start:p.data.end], p.escaped)
		}
	} else if kind != imageMedia {
		s.h.Unbounded = true
	}
	s.addMedia(m)
}

// addMedia remembers one piece of media; beyond maxMedia the rest are merged into
// the last, at their kind's maximum.
func (s *scanner) addMedia(m media) {
	if len(s.h.media) < maxMedia {
		s.h.media = append(s.h.media, m)
		return
	}
	s.h.moreMedia++
	s.h.Unbounded = s.h.Unbounded || m.kind != imageMedia
}
