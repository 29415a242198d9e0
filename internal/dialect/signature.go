package dialect

import (
	"encoding/base64"
	"slices"
	"strings"
)

// A signature, or a seal, is of use to the provider alone that wrote it, and is refused by
// others. Between dialects it has a mark of who that is before it, so that it comes back
// as what it was and is not sent to who cannot read it. In the dialect of its own provider
// it stands bare.
//
// Gemini signs parts that are no reasoning: a tool call, or the end of a text. In other
// dialects such a signature stands before its part, as reasoning that only its provider
// can read. In Gemini's dialect, whose signatures are bytes in base64, those of others
// are too.
const (
	anthropicMark = "anthropic:"
	geminiMark    = "gemini:"
	openaiMark    = "openai:" // or the id of the item and a colon: see labelled
	otherMark     = "other:"  // of nobody that is known here
	// The marks of others, each a multiple of three bytes, so that their base64 is the
	// beginning of that of the whole.
	signedMark = "sluice-text:"
	sealedMark = "sluice-seal:"
)

// unsigned is what Google has clients send for the signature of a tool call that
// another model made.
const unsigned = "skip_thought_signature_validator"

// signers are the features of what each has signed, by their marks.
var signers = map[string]Feature{anthropicMark: FeatureSigned, geminiMark: FeatureForeign, openaiMark: FeatureOpenAISealed, otherMark: FeatureForeign}

// markOf is the mark of a signature, empty if it stands bare.
func markOf(signature string) string {
	for _, mark := range [...]string{anthropicMark, geminiMark, openaiMark, otherMark} {
		if strings.HasPrefix(signature, mark) {
			return mark
		}
	}
	if id, _ := unlabelled(signature); id != "" {
		return openaiMark
	}
	return ""
}

// signedBy is a signature with the mark of its provider: the given one where it stands
// bare.
func signedBy(mark, signature string) string {
	if signature == "" || markOf(signature) != "" {
		return signature
	}
	return mark + signature
}

// bare is a signature as the dialect says it whose providers have such a mark.
func bare(mark, signature string) string {
	if mark == "" {
		return signature
	}
	return strings.TrimPrefix(signature, mark)
}

// handed is a signature of an answer as it is told to clients of another dialect.
func handed(from, to *codec, signature string) string {
	return bare(to.signs, signedBy(from.signs, signature))
}

// byGemini is the signature of a Gemini model that another dialect's client has sent
// back; false if it is another's.
func byGemini(signature string) (string, bool) { return strings.CutPrefix(signature, geminiMark) }

// anothers is what becomes of a signature at all backends but those of its provider.
var anothers = carriage{Dropped, "is reasoning that only the provider can read that has signed it", dropField}

// disown leaves out reasoning that the target cannot read, since another has signed it or
// nobody has: a backend refuses the request for it.
func (r *Request) disown(rep *reporter) {
	keepsUnsigned := rep.to.carriage(rep.from, FeatureReasoning).fate == Kept
	for i := range r.Messages {
		m := &r.Messages[i]
		m.Parts = slices.DeleteFunc(m.Parts, func(p Part) bool {
			switch {
			case p.Kind != RedactedPart && p.Kind != ReasoningPart:
				return false
			case p.Signature == "" && p.Kind == ReasoningPart:
				if !keepsUnsigned {
					rep.at(FeatureReasoning, p.at)
				}
				return !keepsUnsigned
			}
			mark := markOf(signedBy(rep.from.signs, p.Signature))
			if mark != "" && mark == rep.to.signs {
				return false
			}
			if f, known := signers[mark]; known {
				rep.foreign(f, p.at)
			}
			return true
		})
		for j := range m.Parts {
			if p := &m.Parts[j]; rep.to.signs == anthropicMark {
				p.Signature = bare(anthropicMark, p.Signature)
			}
		}
	}
	r.Messages = slices.DeleteFunc(r.Messages, func(m Message) bool { return m.silent() })
}

// foreign tells of what another provider has signed.
func (r *reporter) foreign(f Feature, at place) {
	path := r.from.path(at, r.from.names[FeatureSigned])
	if r.tell(f, path) == Kept {
		r.lose(Loss{Path: path, Fate: anothers.fate, Why: anothers.why, Fix: anothers.fix})
	}
}

// silent reports a turn of the assistant that says nothing, which dialects refuse: what
// an answer of no words leaves in a conversation.
func (m *Message) silent() bool {
	return m.Role == Assistant && !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Kind != TextPart || p.Text != "" })
}

// marked is another's signature as one of Gemini's dialect.
func marked(mark, signature string) string {
	return base64.StdEncoding.EncodeToString([]byte(mark + signature))
}

// unmarked is the signature that was marked; false if it is Gemini's own. Clients write
// base64 in either of its alphabets.
func unmarked(mark, signature string) (string, bool) {
	if !strings.HasPrefix(signature, base64.StdEncoding.EncodeToString([]byte(mark))) {
		return "", false
	}
	b, err := base64.StdEncoding.DecodeString(plain64(signature))
	if err != nil {
		return "", false
	}
	s, ok := strings.CutPrefix(string(b), mark)
	return signedBy(anthropicMark, s), ok
}
