package dialect

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is a request in no dialect: what it asks for, typed as far as another
// dialect can carry it, and the rest as Asks.
type Request struct {
	Model  string
	Stream bool

	System   []Part // instructions before the conversation: texts
	Messages []Message

	Tools  []Tool
	Choice Choice
	Serial bool // one tool call at a time

	MaxOutput   int64          // bound on the output in tokens; 0 if the client names none
	Temperature jsontext.Value // as written; nil if left out, as the two that follow
	TopP        jsontext.Value
	TopK        jsontext.Value
	Stop        []string

	Format   *Format // nil is free text
	Effort   string  // none, minimal, low, medium, high, xhigh or max; empty if left out
	Thinking Thinking
	User     string // the caller's label of its end user
	userAt   string // where that stands
	Standard bool   // the provider's ordinary service tier alone

	// Echo is members that the client's dialect repeats in its answers, as they stand in
	// an object, each with a comma before it.
	Echo []byte

	// Asks is all else that is asked for: what has a place in some dialects only, and
	// what nobody here knows.
	Asks []Ask
}

// Ask is one thing that a request asks for and that has no typed place.
type Ask struct {
	Feature Feature
	Path    string         // in the client's request
	Value   jsontext.Value // as written; nil where the feature says it all
}

// Role is who a message is from.
type Role uint8

// The roles.
const (
	User Role = iota
	Assistant
	System // within the conversation; before it, see Request.System
)

// Message is one turn, or a part of one.
type Message struct {
	Role  Role
	Parts []Part
	Plain bool // its content is one text, written as a string and not as a list
	at    place
}

// PartKind sorts parts of messages and of answers.
type PartKind uint8

// The kinds of parts.
const (
	TextPart      PartKind = iota // Text
	ImagePart                     // Media
	DocumentPart                  // Media
	ReasoningPart                 // Text and Signature
	RedactedPart                  // Signature: reasoning that only its provider can read
	CallPart                      // Call: the assistant calls a tool
	ResultPart                    // Result: what a tool answered
	RefusalPart                   // Text: the assistant says no
	CitedTextPart                 // Text that is data to be read, such as a plain text document; Media.Title
	AudioPart                     // Media, of the user's; it is an Ask too, for dialects that take no sound
	numPartKinds  = iota
)

// Part is one part of a message or of an answer.
type Part struct {
	Kind      PartKind
	Text      string
	Signature string // by which a provider knows its own reasoning again
	Media     Media
	Call      Call
	Result    Result
	Cached    bool      // a mark: what is before it and it are to be cached
	Lasts     string    // of a mark, how long, where that is not what it is anyway: 1h
	Logprobs  []Logprob // of a text of an answer
	at        place
}

// Media is an image or a document: by its bytes or by where it is.
type Media struct {
	Type  string // MIME type, of Data
	Data  string // base64; empty where URL says where it is
	URL   string
	Title string // a document's name; may be empty
	// Detail is how closely an image is to be looked at, where that is said: low, high
	// or another word of OpenAI's. It is an Ask too, for dialects that have no such words.
	Detail string
}

// Call is a tool call. Arguments is a JSON object, as text.
type Call struct {
	ID, Name, Arguments string
}

// Result is what a tool answered.
type Result struct {
	ID    string // of the call
	Parts []Part // texts, images, documents
	Plain bool   // the content is one text, written as a string
	Error bool   // the tool failed
}

// Tool is a tool that the client runs.
type Tool struct {
	Name        string
	Description string
	Schema      jsontext.Value // JSON Schema of its arguments; nil takes none
	Strict      bool
	Cached      bool
	Lasts       string // as a part's
	index       int
}

// ChoiceKind is whether tools are to be called.
type ChoiceKind uint8

// The kinds of choices.
const (
	ChoiceDefault ChoiceKind = iota // not said
	ChoiceAuto
	ChoiceNone
	ChoiceAny // at least one of them
	ChoiceOne // the one of Name
)

// Choice is whether and which tools are to be called.
type Choice struct {
	Kind ChoiceKind
	Name string
	// Only are the tools that may be called, where those are not all: of ChoiceAuto, or
	// several of ChoiceAny, of which one is ChoiceOne.
	Only []string
}

// among restricts a choice to some of the tools.
func (c *Choice) among(names []string) {
	if c.Kind == ChoiceAny && len(names) == 1 {
		*c = Choice{Kind: ChoiceOne, Name: names[0]}
		return
	}
	c.Only = names
}

// Format is the structure that the answer must have.
type Format struct {
	Schema jsontext.Value
	Name   string // a label of it; may be empty
	Note   string // what it is for; it is an Ask too
	Loose  bool   // the schema is a wish (strict: false)
	at     string // where the schema stands; empty where clients have one place for it
}

// ThinkingKind is whether the model reasons before it answers.
type ThinkingKind uint8

// The kinds of thinking.
const (
	ThinkingDefault  ThinkingKind = iota // not said
	ThinkingOff                          // it does not
	ThinkingBudget                       // up to Budget tokens
	ThinkingAdaptive                     // as it sees fit
)

// Thinking is how much the model reasons before it answers.
type Thinking struct {
	Kind   ThinkingKind
	Budget int64 // tokens
}

// place is where something stands in the client's request: a message, a part of
// its content, and a part within that; negative where it is none.
type place struct{ message, part, inner int }

// What a negative message stands for; the part is then an index within that.
const (
	inSystem  = -1 // the instructions before the conversation
	ofRequest = -2 // the request itself, or an element of a list that is a member of it
	ofTools   = -3 // a tool
)

// itself as a part is the message, and not its content.
const itself = -2

// turn is the message that something stands in.
func (p place) turn() place { return place{p.message, itself, -1} }

// top is the request, toolAt a tool of it.
func top() place             { return place{ofRequest, -1, -1} }
func toolAt(index int) place { return place{ofTools, index, -1} }

// inMessages is the path of a member of what stands at p, in dialects whose requests
// have messages[i].content[j].
func (p place) inMessages(member string) string {
	at := ""
	switch {
	case p.message == ofRequest:
		at, member = member, ""
	case p.message == ofTools:
		at = "tools"
	case p.message == inSystem:
		at = "system"
	case p.part == itself:
		at = "messages" + index(p.message)
	default:
		at = "messages" + index(p.message) + ".content"
	}
	if p.part >= 0 {
		at += index(p.part)
	}
	if p.inner >= 0 {
		at += ".content" + index(p.inner)
	}
	if member != "" {
		at += "." + member
	}
	return at
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func (r *Request) ask(f Feature, path string, v jsontext.Value) {
	r.Asks = append(r.Asks, Ask{f, path, v})
}
