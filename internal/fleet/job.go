package fleet

import (
	"errors"
	"fmt"
	"time"

	"sluice"
)

// JobID names a job within its replica or provider. It is never reused.
type JobID int64

// Job is one request as an engine sees it.
type Job struct {
	Input  sluice.Tokens // prompt, cached part included
	Cached sluice.Tokens // the part of Input that needs no prefill, at most Input; not read where Blocks are
	Output sluice.Tokens // tokens that it will generate; 0 ends it with its prefill

	// Blocks are the chained hashes of the context's whole blocks of
	// [Profile.BlockTokens] each, in order: two jobs with the same hash at the
	// same place have the same tokens up to the end of that block. They may go
	// on into the output, for the next turn of a conversation to hit. A replica
	// with a prefix cache reads them; the slice is not changed, and must not be
	// while the job lives.
	Blocks []uint64
}

// Progress is a change that the caller may act on: a first token, an expected
// count reached, or the end.
type Progress struct {
	ID     JobID
	Tokens sluice.Tokens // generated so far
	Cached sluice.Tokens // of its input, served from the prefix cache
	At     time.Time     // when that was so, at most the `now` of the call
	Done   bool          // the last one of this job
	Fault  Fault         // with Done: why it ended before its time
}

// Fault is why a job ended before its output was whole.
type Fault uint8

// The faults.
const (
	NoFault     Fault = iota
	Lost              // the machine failed or was restarted under it
	ServerError       // the provider failed this job: a 5xx if it had no token, else a stream that breaks
)

func (f Fault) String() string {
	switch f {
	case NoFault:
		return "none"
	case Lost:
		return "lost"
	case ServerError:
		return "server_error"
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// State is how a job stands.
type State uint8

// The states.
const (
	Unknown State = iota // never submitted, done, or cancelled
	Waiting
	Prefilling
	Decoding
)

// Health is whether a replica or provider takes jobs.
type Health uint8

// The states of health.
const (
	Serving  Health = iota
	Starting        // restarted, and not ready yet: refuses with ErrDown
	Down            // failed, until it is restarted
)

func (h Health) String() string {
	switch h {
	case Serving:
		return "serving"
	case Starting:
		return "starting"
	case Down:
		return "down"
	}
	return fmt.Sprintf("health %d", uint8(h))
}

// Load is the state of a replica or provider at one moment.
type Load struct {
	Health     Health
	Running    int
	Waiting    int
	KVUsed     sluice.Tokens // prefilled and generated so far
	KVReserved sluice.Tokens // promised to the running jobs
	KVCached   sluice.Tokens // blocks of the prefix cache that no running job holds
	KVCapacity sluice.Tokens // 0 where memory is not modelled
}

// Permille is the used share of the memory in thousandths.
func (l Load) Permille() int64 {
	if l.KVCapacity <= 0 {
		return 0
	}
	return int64(l.KVUsed * 1000 / l.KVCapacity)
}

// Totals counts what a replica or provider has done since it was made.
type Totals struct {
	Submitted, Done, Cancelled, Failed int64         // jobs; the rest is waiting or running
	Prefilled                          sluice.Tokens // input computed, recomputation included
	CacheHits                          sluice.Tokens // input served from the prefix cache
	Generated                          sluice.Tokens // output
	Preempted                          int64         // times that a job lost its memory and went back to the queue
	Recomputed                         sluice.Tokens // the part of Prefilled that had been computed before
}

// The refusals of Submit.
var (
	ErrTooLarge  = errors.New("the context does not fit into the engine's memory")
	ErrQueueFull = errors.New("the engine's queue is full")
	ErrDown      = errors.New("the engine is down or still starting")
)

// LimitError is a hosted provider's refusal by rate: a 429.
type LimitError struct {
	Tokens     bool          // of tokens, else of requests
	RetryAfter time.Duration // until the same job would be taken
}

func (e *LimitError) Error() string {
	if e.Tokens {
		return "the provider's token rate is used up"
	}
	return "the provider's request rate is used up"
}

// StatusError is a hosted provider's refusal for a reason of its own.
type StatusError struct {
	Status     int           // 503 while the provider is down, 529 when it is overloaded
	RetryAfter time.Duration // what it asks to wait; 0 if it does not say
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the provider answers %d", e.Status)
}
