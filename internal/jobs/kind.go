package jobs

import (
	"slices"

	"sluice"
)

// Kind is what a job is for its client: how its lines and its results are written.
type Kind uint8

// The kinds.
const (
	// OpenAIBatch has lines {custom_id, method, url, body} and results
	// {id, custom_id, response, error}, in two files: one of answers, one of errors. A line
	// that is wrong fails all of it, before any runs.
	OpenAIBatch Kind = iota
	// MessageBatch has lines {custom_id, params} and results {custom_id, result}, in one
	// file. Parameters that are wrong are the error of their line.
	MessageBatch
	// Async is one request that is answered later. Its input is the request's body, and
	// its answer is a Result, not a file.
	Async
	NumKinds = iota
)

var kindNames = [NumKinds]string{"batch", "message_batch", "async"}

var kindPrefixes = [NumKinds]string{"batch_", "msgbatch_", "async_"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// MarshalText writes the kind's word.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads it.
func (k *Kind) UnmarshalText(b []byte) error {
	i := slices.Index(kindNames[:], string(b))
	if i < 0 {
		return sluice.Invalid("kind", "is %q, which is none", b)
	}
	*k = Kind(i)
	return nil
}

// inline reports whether the input is checked before Submit returns.
func (k Kind) inline() bool { return k != OpenAIBatch }
