package jobs

import (
	"slices"

	"sluice"
)

// State is where in its life a job is.
type State uint8

// The states. Those from Completed on are ends; see the table in doc.go.
const (
	Validating State = iota
	InProgress
	Finalizing // every line has an end; output and errors are being written
	Cancelling // no further line begins; those that run finish, or are ended after Bounds.CancelGrace
	Completed
	Failed // its input was refused: no line ran
	Expired
	Cancelled
	NumStates = iota
)

var stateNames = [NumStates]string{"validating", "in_progress", "finalizing", "cancelling", "completed", "failed", "expired", "cancelled"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// MarshalText writes the state's word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *State) UnmarshalText(b []byte) error {
	i := slices.Index(stateNames[:], string(b))
	if i < 0 {
		return sluice.Invalid("state", "is %q, which is none", b)
	}
	*s = State(i)
	return nil
}

// Ended reports whether nothing of the job follows any more.
func (s State) Ended() bool { return s >= Completed && s < NumStates }

// next are the states that may follow each. A job in Finalizing has an end that was
// decided before ([Job.Ending]): a cancel comes too late for it.
var next = [NumStates][]State{
	Validating: {InProgress, Failed, Cancelling, Expired},
	InProgress: {Finalizing, Cancelling},
	Finalizing: {Completed, Expired},
	Cancelling: {Cancelled},
}

// Follows reports whether a job may go from one state to another.
func Follows(from, to State) bool {
	return from < NumStates && slices.Contains(next[from], to)
}

// LineState is where in its life a line is.
type LineState uint8

// The states of a line. Those from LineSucceeded on are ends, of which each line has
// exactly one.
const (
	LineWaiting   LineState = iota
	LineRunning             // a worker has it
	LineSucceeded           // it has an answer
	LineFailed              // it has an error of its own
	LineCancelled           // its job was cancelled before it had either
	LineExpired             // its job's deadline came before it had either
	NumLineStates = iota
)

var lineStateNames = [NumLineStates]string{"waiting", "running", "succeeded", "failed", "cancelled", "expired"}

func (s LineState) String() string {
	if int(s) < len(lineStateNames) {
		return lineStateNames[s]
	}
	return "unknown"
}

// MarshalText writes the state's word.
func (s LineState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *LineState) UnmarshalText(b []byte) error {
	i := slices.Index(lineStateNames[:], string(b))
	if i < 0 {
		return sluice.Invalid("state", "is %q, which is none", b)
	}
	*s = LineState(i)
	return nil
}

// Ended reports whether the line has its result.
func (s LineState) Ended() bool { return s >= LineSucceeded && s < NumLineStates }
