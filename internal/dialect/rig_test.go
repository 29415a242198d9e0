package dialect

import (
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/wire"
)

// rig is what the tests of all pairs know of one operation. Another codec adds its
// own here, and is then held to the properties with every other.
type rig struct {
	codec *codec
	// sent is an answer as a backend streams it, whole one in a piece and assemble one
	// from a stream, both as its clients see it in the end.
	sent            func(*rapid.T, *Answer) []byte
	whole, assemble func(t fataler, body []byte) any
	examples        map[Feature]tells // of each field of its clients
	nothing         []string          // requests whose members ask for nothing

	named  bool // its events have names
	signs  bool // its backends sign what they reason, and seal some of it
	single bool // it has one text and one reasoning in an answer
	lumps  bool // its usage does not tell reasoning from other output
	framed bool // its streams come in frames
	likely bool // it tells log probabilities
	stops  []StopReason

	keeps func(*Request) // takes out of a request what it does not keep; nil keeps all

	// Of a codec that has no clients: an answer in one piece, and a request as its
	// backends read it.
	answer func(*Answer) []byte
	parse  func(t fataler, body []byte) *Request
}

// inOnePiece is an answer as a backend gives it.
func (r *rig) inOnePiece(a *Answer) []byte {
	if r.answer != nil {
		return r.answer(a)
	}
	return r.codec.emitAnswer(nil, a)
}

// scan is wire.Scan of a request for the model m.
func scan(op wire.Operation, body []byte) (*wire.Head, error) {
	return wire.ScanIn(op, body, wire.InPath{Model: "m"})
}

func rigs() map[wire.Operation]*rig {
	return map[wire.Operation]*rig{
		wire.Converse: bedrockRig,
		wire.Chat: {
			codec: &openai, sent: openaiSent, examples: openaiTells, nothing: openaiNothing, single: true, likely: true,
			whole:    func(t fataler, b []byte) any { return assembledCompletion(t, b) },
			assemble: func(t fataler, b []byte) any { return assembleCompletion(t, b) },
			stops:    []StopReason{StopEnd, StopLength, StopSequence, StopRefusal},
			keeps: func(r *Request) {
				for i := range r.Messages {
					for j := range r.Messages[i].Parts {
						if p := &r.Messages[i].Parts[j]; p.Kind == DocumentPart {
							p.fetched()
						}
					}
				}
			},
		},
		wire.Responses: {
			codec: &responses, sent: responsesSent, examples: responsesTells, nothing: responsesNothing, named: true, signs: true, likely: true,
			whole: assembledResponse, assemble: assembleResponse,
			stops: []StopReason{StopEnd, StopLength, StopRefusal},
			keeps: func(r *Request) { r.Stop = nil },
		},
		wire.Messages: {
			codec: &anthropic, sent: anthropicSent, examples: anthropicTells, nothing: anthropicNothing, named: true, signs: true,
			whole:    func(t fataler, b []byte) any { return assembledMessage(t, b) },
			assemble: func(t fataler, b []byte) any { return assembleMessage(t, b) },
			keeps:    func(r *Request) { r.Choice.Only, r.Asks = nil, nil },
			stops:    []StopReason{StopEnd, StopLength, StopSequence, StopRefusal},
		},
		wire.GenerateContent: geminiRig(),
	}
}

// couple is two codecs, of which one speaks with a client and the other with backends.
type couple struct{ client, backend *rig }

func (p couple) String() string {
	return p.client.codec.op.String() + " by " + p.backend.codec.op.String()
}

// pairs are all ordered pairs, in the order of the codecs.
func pairs() (out []couple) {
	all := rigs()
	for _, client := range codecs {
		for _, backend := range codecs {
			if client != backend && client.parseRequest != nil {
				out = append(out, couple{all[client.op], all[backend.op]})
			}
		}
	}
	return out
}

// TestMain has the properties of all pairs tried less often each, unless it is said how
// often: there are many pairs.
func TestMain(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		_ = flag.Set("rapid.checks", "30") // it is there
	}
	os.Exit(m.Run())
}
