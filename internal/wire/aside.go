package wire

import "sluice/internal/price"

// Asides are the operations of the OpenAI dialect beside text: images, audio,
// moderations and reranking. They pass as they are, to backends of that dialect alone,
// and are billed by what their rows say: by a unit, or by tokens where their answers
// tell them.

// aside is such an operation.
type aside struct {
	unit   price.Unit
	tokens bool // answers tell tokens
	output bool // they are made of tokens that are billed
	form   bool // its body is a form of parts (multipart/form-data)
	raw    bool // its answer may be no JSON
}

var asides = [NumOperations]aside{
	ImageGenerations: {unit: price.Image, tokens: true, output: true},
	ImageEdits:       {unit: price.Image, tokens: true, output: true, form: true},
	ImageVariations:  {unit: price.Image, tokens: true, output: true, form: true},
	Speech:           {unit: price.Character, output: true, raw: true},
	Transcriptions:   {unit: price.Second, tokens: true, output: true, form: true, raw: true},
	Translations:     {unit: price.Second, tokens: true, output: true, form: true, raw: true},
	Moderations:      {tokens: true},
	Rerank:           {unit: price.Search, tokens: true},
}

// Aside reports whether the operation is one of those beside text.
func (o Operation) Aside() bool { return o >= firstAside && o <= lastAside }

// Form reports whether its body is a form of parts, which ScanForm reads.
func (o Operation) Form() bool { return o.Aside() && asides[o].form }

// Outputs reports whether its answers may be billed by tokens of output, bounded by
// the request or not.
func (o Operation) Outputs() bool { return o.Generates() || o.Aside() && asides[o].output }

// Billing is how the request may be billed. Speech tells its tokens in a stream of
// events alone.
func (h *Head) Billing() price.Billing {
	if !h.Op.Aside() {
		return price.Billing{}
	}
	a := asides[h.Op]
	return price.Billing{Unit: a.unit, Tokens: a.tokens || h.Op == Speech && h.Stream}
}

// asideOps are their bits in a set of operations.
const (
	imagesOp      = ops(1) << ImageGenerations
	speechOp      = ops(1) << Speech
	moderationsOp = ops(1) << Moderations
	rerankOp      = ops(1) << Rerank
	asideOps      = imagesOp | speechOp | moderationsOp | rerankOp // those whose bodies are JSON
)

// asideMembers are what their bodies have otherwise than those of other operations.
var asideMembers = []member{
	{"prompt", imagesOp, (*scanner).content},
	{"n", imagesOp, func(s *scanner) { s.n = s.count("n") }},
	{"stream", imagesOp, func(s *scanner) { s.h.Stream = s.boolean("stream") }},
	{"input", speechOp, (*scanner).readSpoken},
	{"instructions", speechOp, (*scanner).content},
	{"stream_format", speechOp, func(s *scanner) {
		format, _ := s.word("stream_format", 64)
		s.h.Stream = format == "sse"
	}},
	{"input", moderationsOp, (*scanner).content},
	{"query", rerankOp, (*scanner).content},
	{"documents", rerankOp, (*scanner).readDocuments},
}

// readSpoken reads what is to be spoken, which is billed by the character.
func (s *scanner) readSpoken() {
	if s.ws() != '"' {
		s.skip()
		s.reject("input", "must be a string")
		return
	}
	in, escaped := s.str()
	s.addText(in, escaped)
	s.h.Units = characters(s.b[in.start:in.end])
}

// characters counts the characters of the inside of a string: an escape is one, two
// that stand for one character beyond the basic plane are one.
func characters(in []byte) (n int64) {
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c == '\\' && i+1 < len(in) && in[i+1] == 'u':
			_, width := unescapeRune(in[i+2:])
			i += 1 + width
			n++
		case c == '\\':
			i++
			n++
		case c&0xc0 != 0x80:
			n++
		}
	}
	return n
}

// Of a reranker, documents beyond so many are a further search, and a long one counts
// as several of this many bytes at least.
const (
	searchDocuments = 100
	searchChunk     = 500
)

// readDocuments counts what a query is compared with.
func (s *scanner) readDocuments() {
	if s.ws() != '[' {
		s.skip()
		s.reject("documents", "must be an array")
		return
	}
	start := s.i
	var n int64
	for a := s.array(); s.element(&a); n++ {
		if s.ws() == '"' {
			s.literalText()
		} else {
			s.schema()
		}
	}
	s.h.Messages = int(n)
	s.h.Units = max(1, (n+searchDocuments-1)/searchDocuments)
	s.h.UnitsBound = (n+int64(s.i-start)/searchChunk)/searchDocuments + 1
}

// finishAside derives what the request is billed by.
func (s *scanner) finishAside() {
	h := s.h
	if asides[h.Op].unit == price.Image {
		h.Choices = max(s.n, 1)
		h.Units = h.Choices
	}
	h.UnitsBound = max(h.UnitsBound, h.Units)
}
