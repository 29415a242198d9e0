// Package fleet models inference engines and hosted providers under virtual
// time: how long a request waits, when its tokens come, how much key-value
// memory it holds.
//
// # Model
//
// A [Replica] is one engine with continuous batching. Time is cut into steps.
// At each step boundary the head of a FIFO queue is admitted while a slot is
// free and its whole context fits into the remaining memory:
//
//	admit ⇔ running < Slots ∧ Σ(input+output) of running + input + output ≤ KVCapacity
//
// A step then takes at most ChunkTokens of prefill from the oldest running
// jobs, first come first served, and one token of each job that decodes. It
// lasts
//
//	t = StepBase + n·StepPerJob + ctx·StepPerToken     with n decoding jobs, ctx their context tokens
//	  + chunk / PrefillRate                            if it carries prefill
//
// and a step of prefill alone lasts chunk / PrefillRate. The first token of a
// job comes at the end of the step that ends its prefill; cached input is not
// prefilled. Hence, for a steady load of λ requests/s of p input (h of it
// cached) and o output tokens: prefill demand λ·p·(1−h) against PrefillRate,
// decode demand λ·o against n/t, memory by Little's law
//
//	KV = λ·[T_prefill·p + o·t·(p + o/2)]
//
// A run of k steps of pure decode with constant membership is one closed form,
//
//	T(k) = k·(StepBase + n·StepPerJob) + StepPerToken·(k·ctx + n·k(k−1)/2)
//
// so [Replica.Advance] costs O(jobs that change), not O(tokens). All arithmetic
// is on integers; fractions of a nanosecond are carried, so the result does not
// depend on how often Advance is called.
//
// A [Hosted] provider has no visible batch: each job takes Latency, its
// uncached input at PrefillRate and then one TokenTime per token, unless the
// requests in flight or the requests and tokens per minute are used up, which
// it refuses with the time to wait.
//
// # Invariants
//
// Every job submitted is waiting, running, or has ended once, as done or
// cancelled. Reserved memory never exceeds KVCapacity and used never exceeds
// reserved. Jobs start in the order of submission. Same calls, same answers.
//
// # Ownership and concurrency
//
// Both types are plain values behind pointers with no lock, no goroutine and no
// clock: the caller serialises calls and passes a `now` that never goes back
// (one that does counts as the latest seen).
//
// # What it does not do
//
// Memory is reserved for the whole context at admission, as if the output
// length were known, where a real engine allocates as it goes and preempts when
// it has erred: the model shows the queue, not the preemption. Speculative
// decoding, tensor-parallel communication and the quadratic part of attention
// in prefill (which matters beyond some 16k tokens) are left out.
package fleet
