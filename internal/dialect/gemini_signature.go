package dialect

import (
	"encoding/base64"
	"slices"
	"strings"

	"sluice/internal/wire"
)

// A signature is of use to the provider alone that wrote it, and is refused by others.
// On its way through a dialect of another provider it is marked, so that it comes back
// as what it was and is not sent to who cannot read it.
//
// Gemini signs parts that are no reasoning: a tool call, or the end of a text. In other
// dialects such a signature stands before its part, as reasoning that only its provider
// can read. In Gemini's dialect, whose signatures are bytes in base64, those of others
// are too.
const (
	geminiMark = "gemini:"
	// The marks of others, each a multiple of three bytes, so that their base64 is the
	// beginning of that of the whole.
	signedMark = "sluice-text:"
	sealedMark = "sluice-seal:"
)

// unsigned is what Google has clients send for the signature of a tool call that
// another model made.
const unsigned = "skip_thought_signature_validator"

// byGemini is the signature of a Gemini model that another dialect's client has sent
// back; false if it is another's.
func byGemini(signature string) (string, bool) { return strings.CutPrefix(signature, geminiMark) }

// anothers is what becomes of a Gemini model's signature at all other backends.
var anothers = carriage{Dropped, "is reasoning that only the provider can read that has signed it", dropField}

// disown leaves out what another provider has signed, as far as its signature tells: a
// backend that cannot read it refuses the request.
func (r *Request) disown(rep *reporter) {
	if rep.to == &gemini {
		return
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		m.Parts = slices.DeleteFunc(m.Parts, func(p Part) bool {
			foreign := p.foreign(rep.to)
			if foreign {
				rep.tell(FeatureForeign, rep.from.path(p.at, rep.from.names[FeatureSigned]))
			}
			return foreign
		})
	}
}

// foreign reports reasoning that a Gemini model has signed, which no other can read, or
// that OpenAI's Responses have sealed, which providers refuse that check signatures.
func (p *Part) foreign(to *codec) bool {
	if p.Kind != RedactedPart && p.Kind != ReasoningPart {
		return false
	}
	if _, ok := byGemini(p.Signature); ok {
		return true
	}
	id, _ := unlabelled(p.Signature)
	return id != "" && (to.dialect == wire.Anthropic || to.dialect == wire.Bedrock)
}

// marked is another's signature as one of Gemini's dialect.
func marked(mark, signature string) string {
	return base64.StdEncoding.EncodeToString([]byte(mark + signature))
}

// unmarked is the signature that was marked; false if it is Gemini's own.
func unmarked(mark, signature string) (string, bool) {
	if !strings.HasPrefix(signature, base64.StdEncoding.EncodeToString([]byte(mark))) {
		return "", false
	}
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(b), mark)
}
