package hook

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice"
)

// Stage is where in a request's life a hook is asked.
type Stage uint8

// The stages.
const (
	AtRequest Stage = iota // identified and scanned, nothing reserved, nothing sent
	AtCommit               // before the first content of a stream, or a whole answer, is delivered
	AtEvent                // as the text of a stream comes
	NumStages = iota
)

var stageNames = [NumStages]string{"request", "commit", "event"}

func (s Stage) String() string {
	if int(s) < len(stageNames) {
		return stageNames[s]
	}
	return "unknown"
}

// StageNames are the words of all stages, in order.
func StageNames() []string { return slices.Clone(stageNames[:]) }

// Stages is a set of stages.
type Stages uint8

// Has reports whether the stage is in the set.
func (s Stages) Has(at Stage) bool { return s&(1<<at) != 0 }

// AnswerStages is where an answer is looked into.
const AnswerStages Stages = 1<<AtCommit | 1<<AtEvent

// ParseStages reads the words of stages; "answer" is commit and event. Other words are
// left out.
func ParseStages(words []string) (out Stages) {
	for _, w := range words {
		if w == "answer" {
			out |= AnswerStages
		}
		if i := slices.Index(stageNames[:], w); i >= 0 {
			out |= 1 << i
		}
	}
	return out
}

// The defaults of a Spec.
const (
	DefaultDeadline    = time.Second
	DefaultMaxBody     = 1 << 20 // bytes
	DefaultConcurrency = 64
	DefaultWindow      = 512 // bytes
	DefaultWindowTime  = 250 * time.Millisecond
	DefaultOverlap     = 128 // bytes
)

// Spec is a hook as it is configured: a service that is called, or the built-in
// redaction.
type Spec struct {
	Name   string
	At     Stages
	Redact Kinds // of the built-in redaction; 0 where URL is called

	URL          string
	AllowPrivate bool          // its name may resolve to private addresses
	Secret       sluice.Secret // that calls are signed with
	Deadline     time.Duration // of one call, the wait for its turn included
	FailOpen     bool          // a call that fails counts as allow, else as refuse
	MaxBody      int64         // bytes of a call, and of its answer
	Concurrency  int           // calls at a time
	Window       Window        // of AtEvent
}

// Window is how the text of a stream is put together for calls.
type Window struct {
	Bytes   int           // of new text that are enough for a call
	Time    time.Duration // that text waits at most for more
	Overlap int           // bytes that are held back and shown again with what follows
}

// withDefaults fills in what is left out.
func (s Spec) withDefaults() Spec {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	if s.Deadline <= 0 {
		s.Deadline = DefaultDeadline
	}
	if s.MaxBody <= 0 {
		s.MaxBody = DefaultMaxBody
	}
	if s.Window.Time <= 0 {
		s.Window.Time = DefaultWindowTime
	}
	set(&s.Concurrency, DefaultConcurrency)
	set(&s.Window.Bytes, DefaultWindow)
	set(&s.Window.Overlap, DefaultOverlap)
	return s
}

// host is the URL's, for whether it names a private place.
func (s *Spec) host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
