// Package idempotency gives a request that is sent again under its Idempotency-Key the
// answer of the first time, and runs it once.
//
// # Model
//
// [Keeper.Runner] stands in front of what answers requests. One without the header passes
// through it untouched: it costs nothing. One that has a key claims it in a [Store], which
// all replicas share:
//
//	free                        it is claimed and runs; a lease keeps the claim while it does
//	another body had it         422 idempotency_mismatch
//	it runs                     409 idempotency_in_flight, with the time to come back
//	its answer is kept          the answer, byte for byte, with the id of its request
//
// A key is its tenant's, for one operation. It is known as a [Mark], a hash of the three,
// and a body as a [Print], a hash of operation, model, form of the answer and bytes; of a
// form the boundary is left out, which libraries choose anew each time.
//
// # What is kept
//
// Answers that came whole, and refusals by a backend that are the client's own mistake
// (4xx) but those that time or an operator mends: 401, 403, 407, 408, 409, 425 and 429.
// Not what the gateway itself refused, which ran nowhere; not 5xx, not what was cut,
// cancelled or stopped by a budget: then the key is free again, with any body. An answer in
// one piece is in the store before the client has it, so that one who lost the connection
// on the last byte finds it; a stream when it has ended.
//
// Nothing is kept of an answer of more than MaxBytes, of one that finds the memory for
// answers on their way (Buffer) or the room of its tenant or of all tenants full, or whose
// store fails. sluice-dropped says so, of a stream in a comment where its head has gone;
// where the store fails at the very end of a stream only the metric does.
//
// # What is made
//
// A request that makes something in a store, such as a batch, has no answer that could be
// lost between its making and its keeping: its key is kept in the same transaction, as a
// reference ([Once]). There is no lease then, and [Keeper.First] says what an earlier
// request with the key has made, or refuses as above.
//
// # Leases
//
// A claim is good for [Lease], and renewed by this package's goroutine while its request
// runs. If the process dies the key is free once that has passed, and the request may run
// again: what the first run cost is settled as lost. A claim that could not be renewed and
// was taken over keeps nothing: the store knows a claim by its request's id. Replicas
// whose clocks differ by less than Lease − [renewEach] never take over what runs.
//
// # Bounds
//
// Answers are kept for Keep. A tenant has PerTenant bytes at most and all have Total, each
// answer with [Overhead] bytes for itself. What does not fit is not kept until the next
// sweep, which is soon then, has dropped the oldest: of the tenant's own, or, where all are
// too many, of those tenants that have most. So a flood of keys displaces the flood.
// Each replica knows what the others have added since its last sweep only after it, so
// that bounds may be exceeded by what they add in [sweepEach].
//
// # Without a store
//
// A request with a key that cannot be claimed is refused 503, since to run it would break
// the promise; but not one whose key a client library made up by itself (stainless-…):
// that runs, and sluice-dropped says that its key had no effect.
//
// # Ownership and concurrency
//
// A Keeper has one goroutine, from Start to Close. Its methods are safe for concurrent
// use. One mutex guards claims and figures, and is not held during a call of the store, of
// which there are [storeCalls] at a time for requests.
//
// # What it does not do
//
// It knows no HTTP and no SQL, charges nothing, and counts no replay against a limit.
package idempotency
