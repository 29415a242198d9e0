package fleet

import (
	"errors"
	"time"

	"sluice"
)

// JobID names a job within its replica or provider. It is never reused.
type JobID int64

// Job is one request as an engine sees it.
type Job struct {
	Input  sluice.Tokens // prompt, cached part included
	Cached sluice.Tokens // the part of Input that needs no prefill, at most Input
	Output sluice.Tokens // tokens that it will generate; 0 ends it with its prefill
}

// Progress is a change that the caller may act on: a first token, an expected
// count reached, or the end.
type Progress struct {
	ID     JobID
	Tokens sluice.Tokens // generated so far
	At     time.Time     // when that was so, at most the `now` of the call
	Done   bool          // the last one of this job
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

// Load is the state of a replica or provider at one moment.
type Load struct {
	Running    int
	Waiting    int
	KVUsed     sluice.Tokens // prefilled and generated so far
	KVReserved sluice.Tokens // promised to the running jobs
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
	Submitted, Done, Cancelled int64         // jobs; the rest is waiting or running
	Prefilled                  sluice.Tokens // input computed
	CacheHits                  sluice.Tokens // input served from the prefix cache
	Generated                  sluice.Tokens // output
}

// The refusals of Submit.
var (
	ErrTooLarge  = errors.New("the context does not fit into the engine's memory")
	ErrQueueFull = errors.New("the engine's queue is full")
)

// LimitError is a hosted provider's refusal by rate.
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
