// Package capacity is the planner's arithmetic: what a workload demands, what a
// fleet supplies, what binds, and how GPUs are best shared between models.
//
// # Model
//
// A [Workload] is λ requests per second of input p, of which the share h is
// cached, and output o, with their distributions. A request counts for nothing:
// what is scarce is input tokens to compute per second, output tokens per second,
// and memory. A [Demand] is their sums, which add up over workloads and tenants:
//
//	prefill  λ·E[u]                            u = (1−h)·p
//	decode   λ·E[o]
//	memory   λ·E[S·p + τ·o·(p + o/2)]          in use, by Little's law
//	         λ·E[S·(p+o) + τ·o·(p+o)]          held, with the room for what is to come
//
// S is how long a prompt is prefilled. On an engine that computes R input tokens
// per second and takes q seconds for each pair of a token with one before it,
//
//	S = u/R + q·v                              v = ((1−h²)·p² + (1−h)·p) / 2
//
// Memory has squares, and so has prefill where q is not 0: a few very long
// requests need more than the mean of all lengths says, since E[p²] ≠ E[p]².
// Inputs and outputs are taken as independent. Retries multiply λ.
//
// A [Replica] is an engine of package fleet. It prefills, or makes a decode step
// of n requests in
//
//	t(n) = StepBase + n·(StepPerJob + StepPerToken·c)   c = E[o·(p + o/2)] / E[o]
//
// where c is the context of a request in the batch: long answers stay longer, so
// the average is weighted by output. A whole request must fit when it is admitted
// (as in the gateway's own holds, and in fleet but for a Paged engine, which packs
// more and preempts when it has erred), so the largest batch is
//
//	N = min(Slots, ⌊KVCapacity / w⌋)                     w = E[o·(p + o)] / E[o]
//
// and the decode rate N / t(N). τ in the memory's demand is t(N): memory is
// planned for engines that are as busy as they can be.
//
//	prefill utilisation  ρp = λ·E[S]                 per replica
//	decode utilisation   ρd = λ·E[o] / (N / t(N))
//	kv utilisation       ρk = held / KVCapacity
//	engine               max(ρp + ρd, ρk)
//
// Prefill and decode take turns on one engine: a step lasts as long as its decode
// and its chunk of prefill together. So a fleet is over capacity when engine is
// above 1, even where each dimension is below. All of it is linear in λ, so that
// what still fits and how many GPUs are needed are divisions. The largest
// utilisation binds.
//
// What to expect below capacity, [Expected], solves for the step time that the
// rate leads to; see engine.expect. Tests hold both to fleet.Replica: at 90 % of
// what the planner says a replica keeps up, at 110 % its queue grows.
//
// A loss takes GPUs, rounded up, and with a share of the fleet that share of the
// cached prefixes. What is lost is taken as one failure domain: replicas of
// several GPUs do not each lose one.
//
// # Forecast
//
// See [Forecast]: history in equal buckets, a trend over whole weeks or days, the
// peak of each dimension, growth that is fitted or given.
//
// # Allocation
//
// See [Allocate]: replicas of several models on a fixed number of GPUs, by exact
// dynamic programming. An [SLO] lowers what a replica takes to where nine in ten have
// their first token in time, and tokens follow in time on average; see engine.latency.
// [PlanMoves] finds the way there from what runs, in steps that each are worth it.
//
// # Invariants
//
// Figures are exact rationals until they are printed. The same question has the
// same answer, whatever the machine. Twice the rate is twice each utilisation;
// more GPUs never bind earlier; a fleet of GPUsNeeded is not over capacity, and
// one replica less is.
//
// # Ownership and concurrency
//
// Everything is a value. Nothing is kept.
//
// # What it does not do
//
// It reads no file, no ledger and no clock, and knows no price. What a workload
// finds cached is the workload's to say: a profile's own prefix cache is left
// aside. It plans means:
// that a queue forms below capacity, and how long, is for the tabletop to show.
// It has no part in any decision of the gateway; the engine never imports it.
package capacity
