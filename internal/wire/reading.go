package wire

import "sluice"

// reading is how a Tap reads the answers of a dialect. It has no state: what was seen
// is the Tap's.
type reading struct {
	event func(*Tap, Event) Step           // an event that has data
	body  func(*Tap, *lexer) *sluice.Error // an answer that was not streamed
	whole func(*Tap) bool                  // the answer has all but its terminal marker
	// marker is the terminal marker, which some servers leave out; nil for a dialect
	// whose streams just end.
	marker []byte
	// unmarked says that clients take an answer for complete before its marker.
	unmarked bool
	// shorten is the events that end a stream at the output bound.
	shorten func(t *Tap, last Event, u sluice.Usage, withUsage bool) []byte
}

var openaiReading = reading{
	event: (*Tap).openaiEvent, body: (*Tap).openaiBody, unmarked: true,
	whole:   func(t *Tap) bool { return t.begun != (choiceSet{}) && t.begun == t.ended },
	marker:  []byte("data: [DONE]\n\n"),
	shorten: (*Tap).shortenChunks,
}

var anthropicReading = reading{
	event: (*Tap).anthropicEvent, body: (*Tap).anthropicBody,
	whole:   func(t *Tap) bool { return t.finish != "" && t.final },
	marker:  AppendEvent(nil, "message_stop", []byte(`{"type":"message_stop"}`)),
	shorten: (*Tap).shortenMessage,
}

// readingOf is how the answers to an operation are read.
func readingOf(op Operation) *reading {
	switch {
	case op.Aside():
		return &asideReading
	case op == Responses:
		return &responsesReading
	case op.Stored():
		return &storedReading
	}
	switch op.Dialect() {
	case Anthropic:
		return &anthropicReading
	case Bedrock:
		return &bedrockReading
	case Gemini:
		return &geminiReading
	}
	return &openaiReading
}
