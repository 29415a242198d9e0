// Package control is the gateway's side of a rehearsal: the engine that serves
// production, driven as the exchange drives it, under virtual time.
//
// # Model
//
// A [Gateway] takes an [Ask], which is all that a gateway can read off a request,
// and turns it into the calls that the engine gets in production:
//
//	Ask → estimate → Arrive → Advance → (Begin → Seen… → Ended)… → Settle
//
// The estimate of the input is learned from what a counter says and providers
// report, that of the output from answers of the same tenant, model and task. What
// a stream has shown is told every 64 tokens, or as soon as a token comes a second
// after the last report. A cut stream is charged what was seen of it, and what its
// backend is expected to have generated unseen where it does not stop with the
// connection. A hard budget is charged, and holds, as the exchange has it.
//
// A call whose first token is late may have a second attempt beside the first
// ([Gateway.Hedge]), which is a Call of its own until one of them has lost.
//
// # The boundary
//
// Nothing here can read how long an answer will be: an Ask has no such field, the
// package knows neither the fleet nor the tabletop around it, and tokens come in
// one report after another, when they have been generated. A test of the tabletop
// holds it to that: runs that differ only in what has not been seen yet are the
// same.
//
// # Ownership
//
// A Gateway is plain state without lock, goroutine or clock. A [Call] is its own;
// whoever drives it keeps the pointer until the call has ended.
//
// # What it does not do
//
// It has no HTTP, journal or deadlines of upstream calls, and tells of every output
// token as exactly as an engine does that reports its usage as it goes.
package control
