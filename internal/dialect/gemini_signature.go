package dialect

import (
	"encoding/base64"
	"slices"
	"strings"
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
var anothers = carriage{Dropped, "is reasoning that only a Gemini model can read", dropField}

// disown leaves out what a Gemini model has signed, which no other dialect's backend
// can read.
func (r *Request) disown(rep *reporter) {
	if rep.to == &gemini {
		return
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		m.Parts = slices.DeleteFunc(m.Parts, func(p Part) bool {
			if p.foreign() {
				rep.tell(FeatureForeign, rep.from.path(p.at, rep.from.names[FeatureSigned]))
			}
			return p.foreign()
		})
	}
}

// foreign reports reasoning that a Gemini model has signed, which no other can read.
func (p *Part) foreign() bool {
	_, ok := byGemini(p.Signature)
	return ok && (p.Kind == RedactedPart || p.Kind == ReasoningPart)
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
