package fleet

import (
	"time"

	"sluice"
)

// Service is the speed and the rate limits of one account at a hosted provider.
type Service struct {
	Latency     time.Duration // until the first token of an empty prompt, at the least
	LatencyTail time.Duration // mean of an exponential part on top, drawn for each job: the 99th percentile is Latency + 4.6 × LatencyTail
	PrefillRate int64         // uncached input tokens per second of one job; at least 1
	TokenTime   time.Duration // between two output tokens of one job
	HitPermille int64         // share of the input that hits the prefix cache when a job names none, 0 to 1000

	Concurrency       int           // most jobs in flight; 0 does not bound them
	RequestsPerMinute int64         // 0 does not bound them
	TokensPerMinute   sluice.Tokens // input and output together, taken when the job is submitted; at most 100 million; 0 does not bound them

	StartUp time.Duration // from a restart until it serves

	Faults Faults // until SetFaults
	Seed   uint64 // of all that is drawn
}

// Faults are the shares of submitted jobs that a provider fails, in thousandths,
// each drawn by itself from the seed and the number of the call.
type Faults struct {
	OverloadPermille int64 // refused with a 529
	ErrorPermille    int64 // taken, and ended with ServerError in place of the first token
	BreakPermille    int64 // ended with ServerError at a token drawn from the first to the last but one

	RetryAfter time.Duration // what a 529 or 503 asks to wait; 0 does not say
}

// Times is the same account n times as fast, its rates included. n below 2
// changes nothing.
func (s Service) Times(n int64) Service {
	if n < 2 {
		return s
	}
	s.Latency /= time.Duration(n)
	s.LatencyTail /= time.Duration(n)
	s.PrefillRate *= n
	s.TokenTime /= time.Duration(n)
	s.RequestsPerMinute *= n
	s.TokensPerMinute *= sluice.Tokens(n)
	return s
}

func (s Service) withDefaults() Service {
	s.PrefillRate = max(s.PrefillRate, 1)
	s.Latency, s.LatencyTail = max(s.Latency, 0), max(s.LatencyTail, 0)
	s.TokenTime = max(s.TokenTime, 0)
	s.RequestsPerMinute = min(s.RequestsPerMinute, mostPerMinute)
	s.TokensPerMinute = min(s.TokensPerMinute, mostPerMinute)
	s.HitPermille = min(max(s.HitPermille, 0), 1000)
	return s
}
