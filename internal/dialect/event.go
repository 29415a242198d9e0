package dialect

import "sluice"

// EventKind sorts the events of a stream.
type EventKind uint8

// The kinds of events. An error inside of a stream is none of them: it is the Err
// of a wire.Step, and ends the stream.
const (
	EventStart     EventKind = iota // ID, Name (the model), Created
	EventText                       // Text
	EventReasoning                  // Text
	EventSignature                  // Text: it ends a block of reasoning; empty where that has none
	EventRedacted                   // Text
	EventRefusal                    // Text
	EventCall                       // a tool call begins: Index, ID, Name
	EventArguments                  // Text: a fragment of the arguments of call Index
	EventCallEnd                    // the arguments of call Index are whole
	EventStop                       // Stop; the usage is told when the stream ends
	EventEnd                        // the terminal marker
)

// Event is one event of a stream, in no dialect.
type Event struct {
	Kind    EventKind
	Nth     int // which of several answers it is of, from 0
	Index   int // of a tool call among the calls of the answer
	ID      string
	Name    string
	Text    string
	Created int64 // seconds since 1970; 0 if it is not told
	Stop    Stop
	// Logprobs are those of an EventText, where they were asked for.
	Logprobs []Logprob
}

// StopReason is why an answer ended.
type StopReason uint8

// The reasons to stop.
const (
	StopUnknown StopReason = iota
	StopEnd                // the answer is complete
	StopLength             // it reached the bound on its output
	StopContext            // it reached the end of the context
	StopSequence
	StopTools // the client is to run the tools that were called
	StopRefusal
)

// Stop is why an answer ended.
type Stop struct {
	Reason   StopReason
	Sequence string // of StopSequence, where it is told
}

// Answer is an answer in one piece, in no dialect.
type Answer struct {
	ID      string
	Model   string
	Created int64 // seconds since 1970; 0 if it is not told
	Parts   []Part
	Stop    Stop
	Others  []Said // further answers, where several were asked for
	Usage   sluice.Usage
	Echo    []byte // of the request: see Translation
}
