// Package dryrun answers what would have become of recent requests under another
// version of the configuration: it puts the facts that the ledger has of each through
// the engine that decides in production, under the table in force and under the other.
//
// # Model
//
// Each request comes alone, an hour after the one before, to healthy backends with
// nothing on them: load, health, learnt latencies, prompt caches and limits are left
// out, since they will be others. So what differs comes from the two tables alone. The
// draw by weight and canary is that of the request's own id, run or user.
//
// # Invariants
//
//   - A request has moved if its pool is another, or if the backend that it has under
//     one table would not take it under the other. Backends of one pool that both would
//     take it are not told apart: which of them it is depends on what else runs.
//   - Costs are of the usage that the request really had, at the rates of either
//     backend.
//   - A request whose facts are not in the ledger is counted, and not guessed at.
//   - Everything is bounded: groups, moves, refusals and examples.
//
// # Ownership and concurrency
//
// Run owns its two engines and starts nothing. It reads no clock.
//
// # What it does not do
//
// It predicts no queue and no latency: that is what tabletop is for.
package dryrun
