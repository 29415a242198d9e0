package capacity

import (
	"sluice/internal/fleet"
)

// Replica is one engine with its GPUs, as the planner sees it.
type Replica struct {
	Name    string // of the profile
	Profile fleet.Profile
	GPUs    int64 // of one replica; at least 1
}

// DefaultSlots is the batch of a profile that names none, as in fleet.
const DefaultSlots = 256

const (
	nanoseconds = 1_000_000_000
	picoseconds = 1_000_000_000_000
)

// engine is a replica's figures in seconds and tokens for one mix of requests.
type engine struct {
	token   Amount // seconds of prefill for each token of input
	pair    Amount // and for each pair of one with one before it
	base    Amount // seconds of a decode step, whatever is in it
	job     Amount // seconds of a decode step for each request in it
	memory  Amount // tokens that whole requests can fill; 0 is unbounded
	context Amount // tokens of a request in the batch, on average
	whole   Amount // tokens that such a request will have had at its end
	batch   int64  // most requests in the batch, on average
	tight   bool   // the memory bounds the batch, not the slots
}

// engineFor is the replica under a demand. A request stays in the batch as long
// as its answer is long, so that the batch holds more of the long ones than
// arrive: its averages are weighted by output.
func (r Replica) engineFor(d Demand) engine {
	p := r.Profile
	e := engine{
		token:   Ratio(1, max(p.PrefillRate, 1)),
		pair:    Ratio(max(p.PrefillPerPair, 0), picoseconds),
		base:    Ratio(max(int64(p.StepBase), 0), nanoseconds),
		memory:  Int(max(p.KVCapacity, 0)),
		context: d.sums[sumContext].Over(d.Output),
		whole:   d.sums[sumWhole].Over(d.Output),
		batch:   int64(p.Slots),
	}
	if e.batch <= 0 {
		e.batch = DefaultSlots
	}
	e.job = Ratio(max(int64(p.StepPerJob), 0), nanoseconds).Plus(Ratio(max(p.StepPerToken, 0), picoseconds).Times(e.context))
	if e.memory.Sign() > 0 && e.whole.Sign() > 0 {
		if room := e.memory.Over(e.whole).Floor(); room < e.batch {
			e.batch, e.tight = room, true
			e.memory = Int(room).Times(e.whole)
		}
	}
	return e
}

// step is how long a decode step of n requests takes.
func (e engine) step(n Amount) Amount { return e.base.Plus(n.Times(e.job)) }

// decode is output tokens per second of a full batch that is never interrupted.
func (e engine) decode() Amount { return Int(e.batch).Over(e.step(Int(e.batch))) }

// Utilisation is parts of what a fleet supplies: 1 is all of it.
type Utilisation struct {
	Prefill Amount // input tokens per second that must be computed, of the prefill rate
	Decode  Amount // output tokens per second, of the decode rate of a full batch
	KV      Amount // tokens held in memory while decoding at that rate, of the memory
	// Engine is the time of the engine: prefill and decode take turns in it, so
	// that each may be below 1 and both together are too much. Where memory is
	// scarcer than time, it is that.
	Engine Amount
}

// busy is the time of prefill of a demand: seconds per second.
func (e engine) busy(d Demand) Amount {
	return d.Prefill.Times(e.token).Plus(d.sums[sumPairs].Times(e.pair))
}

// demandOn is what a demand takes of the engine, on one replica, and the tokens
// that are in memory and held there while it decodes in full batches.
func (e engine) demandOn(d Demand) (u Utilisation, used, held Amount) {
	u.Prefill = e.busy(d)
	u.Decode = d.Output.Over(e.decode())
	step := e.step(Int(e.batch))
	used = e.prompts(d).Plus(step.Times(d.sums[sumContext]))
	held = d.sums[sumTokensAll].Times(e.token).Plus(d.sums[sumPairsAll].Times(e.pair)).Plus(step.Times(d.sums[sumWhole]))
	u.KV = held.Over(e.memory)
	u.Engine = Max(u.Prefill.Plus(u.Decode), u.KV)
	return u, used, held
}

// prompts is the memory of requests that are being prefilled, in tokens.
func (e engine) prompts(d Demand) Amount {
	return d.sums[sumTokensIn].Times(e.token).Plus(d.sums[sumPairsIn].Times(e.pair))
}

// spread is the sum of the squares of the times of prefill, per second.
func (e engine) spread(d Demand) Amount {
	return d.sums[sumTokens2].Times(e.token).Times(e.token).
		Plus(Int(2).Times(d.sums[sumTokenPairs]).Times(e.token).Times(e.pair)).
		Plus(d.sums[sumPairs2].Times(e.pair).Times(e.pair))
}

// Expected is the state to expect of a replica that is not overloaded, by the
// mean of what arrives.
type Expected struct {
	Batch  Amount // requests in the engine at the same time, on average
	Step   Amount // seconds per output token of a request
	KVUsed Amount // tokens in memory
}

// expect solves for the step time that a rate of arrivals leads to. n requests
// decode at the same time by Little's law, n = λ·o·τ. One that joins them sees
// steps of base + (1+n)·job, between which prefill takes its part ρp of the time:
//
//	τ = (base + (1 + λ·o·τ)·job) / (1 − ρp)   hence   τ = (base + job) / (1 − ρp − λ·o·job)
//
// and no longer than in a full batch. Prefill is first come, first served: a
// prompt waits for those before it as in a queue of one server with service S,
// λ·E[S²] / (2·(1 − ρp)).
func (e engine) expect(d Demand, u Utilisation) Expected {
	one := Int(1)
	wait := e.spread(d).Over(Int(2).Times(one.Minus(u.Prefill)))
	x := Expected{
		Batch:  u.Prefill.Plus(d.Attempts.Times(wait)),
		KVUsed: e.prompts(d).Plus(d.Input.Times(wait)),
	}
	if d.Output.Sign() == 0 {
		return x.within(e.memory)
	}
	x.Step = Int(e.batch).Times(u.Prefill.Plus(u.Decode)).Over(d.Output)
	if left := one.Minus(u.Prefill).Minus(d.Output.Times(e.job)); left.Sign() > 0 {
		x.Step = Min(x.Step, e.base.Plus(e.job).Over(left))
	}
	x.Batch = x.Batch.Plus(d.Output.Times(x.Step))
	x.KVUsed = x.KVUsed.Plus(x.Step.Times(d.sums[sumContext]))
	return x.within(e.memory)
}

// within keeps what is expected to what there is: a mean of few large requests
// leaves out that the next one waits.
func (x Expected) within(memory Amount) Expected {
	if memory.Sign() > 0 {
		x.KVUsed = Min(x.KVUsed, memory)
	}
	return x
}
