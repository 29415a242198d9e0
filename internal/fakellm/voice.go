package fakellm

import (
	"encoding/json"
	"math"

	"sluice"
)

// voice speaks one surface: it turns content into that surface's events or
// body.
type voice interface {
	open(t tally)                                 // the preamble, before any content
	text(choice int, s string, t tally)           // a stretch of text
	think(s string, t tally)                      // a stretch of visible reasoning
	call(choice, k int, c toolCall, t tally)      // a tool call begins
	args(choice, k int, fragment string, t tally) // a stretch of its arguments
	finish(reason string, t tally)                // finish reason, usage, terminal marker
	fail(kind, msg string)                        // an error event
	whole(content []content, reason string, t tally) any
}

// content is one choice of an answer that is not streamed.
type content struct {
	text, thought string
	calls         []toolCall
}

// tally is what a request has taken so far.
type tally struct {
	input     sluice.Tokens // cached and written included
	cached    sluice.Tokens
	written   sluice.Tokens
	output    sluice.Tokens // reasoning included, over all choices
	reasoning sluice.Tokens
}

// told is the tally as a usage fault tells it.
func (t tally) told(fault string) tally {
	switch fault {
	case "huge":
		t.output = math.MaxInt64 / 4
	case "negative":
		t.output = -t.output - 5
	case "zero":
		t = tally{}
	}
	return t
}

func (t tally) half() tally {
	t.output /= 2
	return t
}

// marshal encodes what cannot fail to encode.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("fakellm: " + err.Error())
	}
	return b
}

type obj = map[string]any
