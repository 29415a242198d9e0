// Package demand says how much of a pool is asked for, and how many replicas that
// would take: from the tokens of requests, as they come, and not from their number.
//
// # Model
//
// What a request asks of a pool is a [Work]: one request, its input, what of that is
// not believed to be cached, its expected output and the memory that it is to hold. A
// [Meter] adds up what is offered to a pool, and what has left its queue. So offered
// in a window that began at t is
//
//	A(now) − D(t)          A offered, D left the queue, both since the beginning
//
// which is what came since, and what waited already at t: a backlog is demand until it
// is served. What was refused for want of room was offered all the same. What waits
// for a limit of its own caller is none: it is counted when that lets it start.
//
// Divided by the time that has passed since t these are [Rates] λ. A ratio is what is
// offered ÷ what the pool's serving backends supply, of each [Dimension] of which the
// supply is known:
//
//	prefill         λ_uncached ÷ Σ input tokens per second
//	decode          λ_output ÷ Σ output tokens per second
//	engine          prefill + decode: an engine does both in turns (package capacity)
//	slots           max(λ_requests · S, running) ÷ Σ slots
//	kv_tokens       max(λ_kv · S, held) ÷ Σ memory
//	…_per_minute    60 λ ÷ Σ what the providers allow in a minute
//
// with S the mean time that an attempt holds its place, as the queue has learned it:
// by Little's law (L = λ·W; Little, Operations Research 9, 1961) so much would be held
// were all of it served. Long requests hold their memory for longer than S says, so
// what is held is the least. As S is a mean of what was, slots and memory follow a
// change of the mix later than prefill and decode do, which count the tokens
// themselves.
//
// # Replicas
//
// For replicas, that is engines that the operator runs, there is a number to have:
//
//	up    = ⌈ n · U ÷ target ⌉           n replicas that serve, or one where none does
//	down  = ⌈ n · U ÷ (0.9 · target) ⌉   U largest ratio of the last minute, or of any
//	                                     minute within the stabilisation before
//	desired = up    if up > n
//	          down  if down < n
//	          n     otherwise
//
// This is the algorithm of the Kubernetes Horizontal Pod Autoscaler, desired = ⌈current ·
// metric ÷ target⌉, with its two remedies for flapping: a tolerance of a tenth, here on
// the way down alone, and going down only to the highest figure of the stabilisation
// window, five minutes unless told otherwise (Kubernetes documentation, Horizontal Pod
// Autoscaling, algorithm details). So fewer replicas are desired only where the demand
// of the whole window leaves one out with a tenth to spare, and a demand that goes up
// and down within the window moves nothing.
//
// Replicas that are out but listed before one that serves are added: what scales
// replicas by their number, as a StatefulSet does from the end, would take a serving
// one in their place. Min and Max bound the result. A meter that has not seen a whole
// window yet, as after a start, desires no fewer than serve. Batch takes what is idle
// and asks for no replicas, unless the policy says so.
//
// # Invariants
//
// Offered is never negative, and never less than what waits. Twice the work is twice
// the ratio. An event costs the same whatever came before, and allocates nothing: time
// is counted in buckets of a second, of which as many are kept as the longest window
// has. All is integer arithmetic: rates and ratios are in millionths.
//
// # Ownership and time
//
// A Meter is a value that its driver, the engine, owns. Time comes in as an argument
// and never goes back; within a second the order of calls makes no difference.
//
// # What it does not do
//
// It decides nothing of a request. It knows no forecast: it tells what is offered now,
// not what will be. It scales nothing: others read it.
package demand
