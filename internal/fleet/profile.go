package fleet

import (
	"time"

	"sluice"
)

// Profile is the speed and the memory of one engine replica.
type Profile struct {
	PrefillRate    int64         // input tokens per second, but for the attention of each token to those before it; at least 1
	PrefillPerPair int64         // prefill: picoseconds per pair of a token and one at or before it: the quadratic part; 0 leaves it out
	ChunkTokens    sluice.Tokens // most prefill in one step, at most 1,048,576; 0 means 2,048
	StepBase       time.Duration // decode step: weights and launch
	StepPerJob     time.Duration // decode step: per running job
	StepPerToken   int64         // decode step: picoseconds per token of context
	KVCapacity     sluice.Tokens // key-value memory in tokens; 0 does not bound it
	Slots          int           // most jobs in the batch; 0 means 256
	Queue          int           // most jobs waiting; 0 does not bound it
	HitPermille    int64         // share of the input that hits the prefix cache when a job names none, 0 to 1000
	StartUp        time.Duration // from a restart until it serves

	// BlockTokens is the size of the blocks that [Job.Blocks] hash and that the
	// prefix cache keeps; 0 turns the cache off. It needs KVCapacity.
	BlockTokens sluice.Tokens
	// Paged gives a job memory as its context grows, and when none is left
	// preempts the job admitted last, which is computed again. Otherwise the
	// whole context is reserved at admission. It needs KVCapacity.
	Paged bool
}

const (
	defaultChunk = 2048
	defaultSlots = 256
	mostChunk    = 1 << 20
	wholeSpeed   = 1000 // permille
)

func (p Profile) withDefaults() Profile {
	p.PrefillRate = max(p.PrefillRate, 1)
	if p.ChunkTokens <= 0 {
		p.ChunkTokens = defaultChunk
	}
	p.ChunkTokens = min(p.ChunkTokens, mostChunk)
	if p.Slots <= 0 {
		p.Slots = defaultSlots
	}
	p.StepBase, p.StepPerJob = max(p.StepBase, 0), max(p.StepPerJob, 0)
	p.StepPerToken = max(p.StepPerToken, 0)
	p.HitPermille = min(max(p.HitPermille, 0), 1000)
	p.PrefillPerPair, p.StartUp = max(p.PrefillPerPair, 0), max(p.StartUp, 0)
	p.BlockTokens = max(p.BlockTokens, 0)
	if p.KVCapacity <= 0 {
		p.BlockTokens, p.Paged = 0, false
	}
	return p
}

// Times is the same engine n times as fast, for runs that cannot wait; its
// memory stays. n below 2 changes nothing.
func (p Profile) Times(n int64) Profile {
	if n < 2 {
		return p
	}
	p.PrefillRate *= n
	p.PrefillPerPair /= n
	p.StartUp /= time.Duration(n)
	p.StepBase /= time.Duration(n)
	p.StepPerJob /= time.Duration(n)
	p.StepPerToken /= n
	return p
}

// Step is how long one decode step takes with jobs in the batch and ctx tokens
// of context in all: the time per output token that each of them sees.
func (p Profile) Step(jobs int64, ctx sluice.Tokens) time.Duration {
	ps := p.pace(wholeSpeed).decode(jobs, int64(ctx), 1)
	return time.Duration(ps / picos)
}

// Picoseconds per nanosecond and per second.
const (
	picos  = 1000
	second = 1_000_000_000_000
)

// pace is a profile at one speed, in picoseconds.
type pace struct {
	base, perJob, perToken, perPair int64
	rate                            int64 // input tokens per second
}

func (p Profile) pace(permille int64) pace {
	permille = min(max(permille, 10), 100_000)
	slow := func(ps int64) int64 { return ps * wholeSpeed / permille }
	return pace{
		base: slow(int64(p.StepBase) * picos), perJob: slow(int64(p.StepPerJob) * picos), perToken: slow(p.StepPerToken), perPair: slow(p.PrefillPerPair),
		rate: max(p.PrefillRate*permille/wholeSpeed, 1),
	}
}

// decode is T(k) of the package comment.
func (p pace) decode(n, ctx, k int64) int64 {
	return k*(p.base+n*p.perJob) + p.perToken*(k*ctx+n*(k*(k-1)/2))
}

// prefill is the time of chunks of so many tokens in all, which attend to so many
// pairs.
func (p pace) prefill(chunk sluice.Tokens, pairs int64) int64 {
	return int64(chunk)*second/p.rate + pairs*p.perPair
}

// pairsOf counts the pairs of a token of a chunk and one at or before it.
func pairsOf(before, chunk sluice.Tokens) int64 {
	return int64(chunk*before + chunk*(chunk+1)/2)
}

// Prefill is how long an otherwise idle replica takes for the prefill of n tokens
// behind cached ones.
func (p Profile) Prefill(cached, n sluice.Tokens) time.Duration {
	return time.Duration(p.withDefaults().pace(wholeSpeed).prefill(n, pairsOf(cached, n)) / picos)
}

// Profiles with illustrative figures, derived from published measurements; they
// are a place to start from, not a promise about hardware.

// Llama8BOnH100 is an 8B model in 16 bits on one H100: 30,000 input tokens/s,
// 8 ms per token alone and 23 ms in a batch of 128 at 1,500 tokens of context.
func Llama8BOnH100() Profile {
	return Profile{
		PrefillRate: 30_000, KVCapacity: 443_000, Slots: 256,
		StepBase: 7860 * time.Microsecond, StepPerJob: 4400 * time.Nanosecond, StepPerToken: 76_300,
	}
}

// Llama70BOn4H100 is a 70B model in 16 bits on four H100: 13,000 input tokens/s,
// 17.5 ms per token alone and 27 ms in a batch of 128 at 1,500 tokens of context.
func Llama70BOn4H100() Profile {
	return Profile{
		PrefillRate: 13_000, KVCapacity: 473_000, Slots: 256,
		StepBase: 17_300 * time.Microsecond, StepPerJob: 4400 * time.Nanosecond, StepPerToken: 47_700,
	}
}

// Llama7BOnA10G is Llama-2-7B in 16 bits on one A10G, from a published fit of the
// time that a request of p input and q output tokens takes of a batch that fills
// M = 10,000 tokens of memory, in milliseconds:
//
//	h(p,q) = 0.2100·p + 0.1008·q + 0.00399·p·q + 0.00325·q² + 1.146
//
// In such a batch are M/(p+q) jobs, and its steps last StepBase, plus StepPerJob a
// job, plus StepPerToken a token of a context of p+q/2 a job. So a request takes
//
//	p/PrefillRate + q·StepPerJob + (StepBase/M + StepPerToken)·p·q + (StepBase/M + StepPerToken/2)·q²
//
// which gives each of the four. The constant is left out.
func Llama7BOnA10G() Profile {
	return Profile{
		PrefillRate: 4762, KVCapacity: 10_000, Slots: 256,
		StepBase: 25_100 * time.Microsecond, StepPerJob: 100_800 * time.Nanosecond, StepPerToken: 1_480_000,
	}
}
