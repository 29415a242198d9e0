// Package admit is the waiting room: one mutex around the engine, callers that
// wait for a place, and the Grant that they own while they have one.
//
// # Model
//
// [Gate.Admit] brings a call to the engine and blocks until it has a place on a
// backend, is refused, or its context ends. After every event the gate lets the
// engine advance and hands each grant to its caller through a channel with one
// place, so delivery never blocks under the lock. One goroutine sleeps until
// the engine's NextWake, for what happens by the passing of time alone; it is
// started by [New] and joined by [Gate.Close].
//
// # Ownership
//
// A [Grant] has one owner, who ends it exactly once: [Grant.Settle] with what
// the request took, or [Grant.Release] when it used nothing. Release after
// Settle does nothing, so it is deferred right after Admit. Between attempts the
// grant waits again in [Grant.Next]. Settle and Release work in any phase.
//
// A Grant whose first content is late may have a second one beside it
// ([Grant.Hedge]), with a reservation of its own, that the same owner ends.
//
// A context that ends while its call is queued removes the call at once and
// returns all that it held. One that ends at the very moment of the grant gives
// the place back.
//
// A copy of a request has its place from [Gate.Copy], which does not wait, or has none.
// The callback that it brings is told, outside of the lock, when that is lost.
//
// # Concurrency
//
// Everything of the engine happens under one mutex, and nothing blocks or calls
// out under it: hooks run on the goroutine of the caller that they tell of, after
// the lock is released. A hook may call the gate.
//
// # What it does not do
//
// It takes no decision: those are the engine's. It knows no HTTP, journal or
// price, and it does not end a caller's stream: when a hold has expired the next
// Progress says so.
package admit
