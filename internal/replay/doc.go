// Package replay drives a live gateway with the traffic of a recorded trace and
// reports what came back.
//
// # Model
//
// A trace is a list of [Row]: when, by which client, how many tokens in and out.
// [Open] reads the published formats (Azure LLM inference, Mooncake and Qwen
// JSONL, VTC arena, ServeGen rates with their lengths, Vidur lengths, BurstGPT)
// and the package's own JSONL; [Synthesise] makes rows of the same shapes where
// the files are absent. Prompts are made up: real words, about as many tokens as
// the row says, and an instruction that the scripted provider understands for
// the output.
//
// [Run] is an open loop. A request starts at its row's time divided by the
// speed, whether or not earlier ones have come back, and its latency counts from
// that intended start: a gateway that stalls is charged for the requests that
// should have been sent meanwhile (no coordinated omission). How late the driver
// itself was is reported as lag. The number in flight is bounded; a request
// beyond the bound is not delayed, it is dropped and reported as overrun, so
// that the loop stays open or says that it did not.
//
// # Invariants
//
// Every row that was due is sent or overrun, and everything sent ends once:
// completed, cancelled, rejected or failed. Lost = sent − ended is 0, or the
// report says so. Same rows, same seed: same requests.
//
// # The books
//
// Given a [Ledger] and backends' books, [Reconcile] matches entries by the
// provider's request id. Entries whose usage was reported must be equal to the
// backend's; the others are compared as sums.
//
// # Concurrency and lifecycle
//
// Run starts one goroutine per request in flight and one for progress, and
// returns when all have ended. Cancelling its context stops the sending and
// cancels what is in flight. Readers and generators are plain functions.
//
// # What it does not do
//
// It does not judge a gateway's policy, retries nothing, and keeps no answer.
package replay
