package jobs

import (
	"net/http"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/wire"
)

// What is bounded of a job whatever the configuration says.
const (
	MaxProblems     = 100      // that a job keeps of its input
	MaxCustomID     = 512      // bytes
	MaxMetadata     = 16       // pairs
	MaxMetadataKey  = 64       // bytes
	MaxMetadataText = 512      // bytes
	maxHeaderBytes  = 16 << 10 // of the client's headers that are kept
	maxWindow       = 30 * 24 * time.Hour
	minWindow       = time.Minute
)

// Job is lines that are to be answered until a deadline.
type Job struct {
	ID    JobID
	Kind  Kind
	State State
	// Ending is the end that a job in Finalizing comes to, Completed or Expired.
	Ending State

	// Caller is whose job it is. Who may what is looked up when a line runs, so Policy is
	// nil here.
	Caller sluice.Principal
	Terms  Terms

	Endpoint string         // the url that each line must have, such as "/v1/chat/completions"; of an OpenAIBatch
	Op       wire.Operation // that the lines are
	Model    string         // of all lines, where they must agree; else of the first
	Input    FileID
	Output   FileID // answers; empty until it has ended, or if there are none
	Errors   FileID // of an OpenAIBatch, lines that have none; empty as Output
	Metadata map[string]string

	Window  time.Duration // from Created to Deadline
	Created time.Time
	// Deadline is when what has not been answered expires.
	Deadline   time.Time
	Started    time.Time // validated, InProgress
	Finalizing time.Time
	Cancelling time.Time
	Ended      time.Time     // Completed, Failed, Expired or Cancelled
	Keep       time.Duration // how long results are kept from Ended
	// ResultsExpire is when they are gone: Ended and Keep; zero until it has ended.
	ResultsExpire time.Time

	Problems []Problem    // of the input, in the order of lines, the first MaxProblems
	Dropped  int          // further ones
	Counts   Counts       // none of a job that ended before its input was checked
	Bytes    int64        // of the input
	Usage    sluice.Usage // of the requests whose results these are
	Cost     sluice.Nano
	Urgency  Urgency // as it was paced last
	Held     *Hold   // the limit that its lines wait for, or did last; nil if it was none

	Checked Checked // how far the input of a job in Validating has been checked
	Written Written // how far the results of one that is about to end are in files
}

// Checked is how far an input has been checked: from here any worker goes on.
type Checked struct {
	At    int64 `json:"at"`             // where the next line begins
	Over  bool  `json:"over,omitempty"` // that is the rest of one which is too large
	Line  int   `json:"line"`           // lines that were read, blank ones too
	Total int   `json:"total"`          // that are requests
	Put   int   `json:"put"`            // of those, that the store has
}

// Written is how far results are in files, whose ids and sizes those are: from here any
// worker goes on.
type Written struct {
	Line        int    `json:"line"` // the last whose result is there
	Output      FileID `json:"output,omitempty"`
	Errors      FileID `json:"errors,omitempty"`
	OutputBytes int64  `json:"output_bytes,omitempty"`
	ErrorsBytes int64  `json:"errors_bytes,omitempty"`
}

// Terms are what each line's request is run with beside its body.
type Terms struct {
	Task   string         `json:"task,omitempty"`
	Labels []sluice.Label `json:"labels,omitempty"`
	Risk   sluice.Risk    `json:"risk,omitempty"`
	Run    sluice.RunID   `json:"run,omitempty"`    // that each is part of, and counted against
	Cache  exchange.Wish  `json:"cache,omitempty"`  // what each asks of the output cache
	Header http.Header    `json:"header,omitempty"` // the client's, of which upstream picks what may pass
}

// Counts are lines by state.
type Counts struct {
	Total     int
	Waiting   int
	Running   int
	Succeeded int
	Failed    int
	Cancelled int
	Expired   int
}

// Open is how many lines have no end yet.
func (c Counts) Open() int { return c.Waiting + c.Running }

// Problem is one mistake of a job's input.
type Problem struct {
	Line    int    `json:"line,omitempty"` // from 1; 0 is the input as a whole
	Code    string `json:"code"`           // a word, as OpenAI has them
	Param   string `json:"param,omitempty"`
	Message string `json:"message"` // what is wrong and how to mend it
}

// NewJob is a job that is to be submitted.
type NewJob struct {
	Kind     Kind
	Caller   sluice.Principal
	Terms    Terms
	Endpoint string
	Op       wire.Operation
	Input    FileID        // a file of the caller's tenant that is ready
	Window   time.Duration // 0 is Bounds.Window
	Keep     time.Duration // of results; 0 is Bounds.KeepResults
	Metadata map[string]string
	Once     *idempotency.Once // its key, whose Made is the job's to say; nil has none
}

// JobQuery asks for a page of a tenant's jobs, newest first.
type JobQuery struct {
	Tenant  sluice.TenantID  // empty is all: for an operator alone
	Project sluice.ProjectID // empty is all
	Kind    Kind
	Any     bool  // of every kind
	After   JobID // the last of the page before; empty begins
	Before  JobID // the first of the page after; the page ends just before it
	Limit   int   // 1 to 1,000; 0 is 20
}

// Result is how one line ended.
type Result struct {
	Line     int // from 1
	CustomID string
	State    LineState
	Status   int              // of the answer or of the error; 0 if the line never ran
	Request  sluice.RequestID // that it ran as, or was refused as: the ledger has it; empty if it never ran
	Type     string           // of Body; empty is JSON
	Body     []byte           // the answer, or the error as the dialect writes it; empty if it never ran
	Told     Told             // of it, beside its body
	Usage    sluice.Usage
	Cost     sluice.Nano
	Ended    time.Time
}

// Urgency is how a job is paced. It rises by one when the job is predicted to miss its
// deadline and falls by one when it has been far ahead of it: see doc.go.
type Urgency uint8

// The urgencies.
const (
	Relaxed      Urgency = iota // Bounds.Lines at a time, class batch
	Pressed                     // twice as many
	Urgent                      // four times as many, and class standard if the plan lets the key ask for it
	NumUrgencies = iota
)

var urgencyNames = [NumUrgencies]string{"relaxed", "pressed", "urgent"}

func (u Urgency) String() string {
	if int(u) < len(urgencyNames) {
		return urgencyNames[u]
	}
	return "unknown"
}

// Progress is how far a job is and when it is predicted to end.
type Progress struct {
	Done float64 // share of lines that have an end, 0 to 1
	Rate float64 // lines ended per second, over the last minutes; 0 if none have
	// Finish is when the last line is predicted to end at that rate, and no sooner than what
	// Held waits for; zero if nothing can be said.
	Finish  time.Time
	Held    *Hold // the limit that is spent and that lines wait for; nil if none is
	Urgency Urgency
	Late    bool // Finish is after the deadline
}
