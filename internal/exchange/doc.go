// Package exchange is one request's life without HTTP: admitted, tried, delivered
// and settled.
//
// # Model
//
// [Exchange.Run] takes a [Request], which has been read and identified, to its
// [Result] and delivers the answer to a [Client] on the way:
//
//	estimate → gate.Admit → for each place: journal, attempt → settle → record
//
// Whatever of a stream comes before content is held back, bounded, so that an
// attempt that fails until then can be followed by another and the client sees
// one answer. The first content decides: from then on a failure ends the request.
// Events are written when more must be read from the backend: nothing that has
// arrived waits, and what arrived together costs one write.
// An answer in one piece is delivered when it is whole.
//
// Where the model hedges (engine.Grant.HedgeAfter) an attempt reads up to its first
// content on a goroutine of its own, and one that is late gets another beside it. The
// first to have content goes on, in Run's goroutine; the other is cancelled, joined and
// settled before the client has a byte. An attempt that fails leaves the race to the
// other. When both have failed, or the client has left, what follows is as with one.
//
// A hard budget holds the output of a stream in steps where all that is billed
// shows. What can have been billed is the provider's own figure where it tells it as
// it goes; else our count, two standard deviations up, or a token for each byte while
// little is known of the model. When the budget has no room for the next step the
// backend is cancelled and the client told that the answer reached its bound. Each
// step is kept in a checkpoint with its hold, so that a crash charges no more.
//
// Progress goes to the engine every 64 tokens or 1 s, to the journal every
// 1,000 tokens or 2 s, both only when an event arrives, so that a stream has no
// timer of its own but its deadlines.
//
// A backend of another dialect is sent the request's translation, made once for each
// dialect. Routing must know whether there is one, so it is made before admission, but
// not where a backend of the client's own dialect takes the request at once; then it is
// made when that fails. Events go through the tap of the backend's dialect, which
// settles, and then into the client's. Tokens that no backend of the client's dialect
// can count are answered with the estimate.
//
// # Settlement
//
// Every way out of Run ends the reservation exactly once, by the table in
// docs/settlement.md, which spent implements: what the provider reported; else
// what it had reported by the cut, and the text after that counted; else an
// estimate from the input and what was seen. Output that nobody can have seen, of
// an answer in one piece or in hidden reasoning, is estimated by the time that it
// had and the pace that the backend's complete answers have shown. Only an
// attempt that cannot have begun (not connected, not sent, refused) took nothing. A request that went well is settled before
// its last bytes are written, so that a client that has its answer finds its
// limits as the answer left them; all others are settled before their error is.
//
// A hard budget is charged CostHigh: where the provider did not report, that is
// what it can still bill: the hold's upper bound, unless the backend stops with
// the connection, then the input's bound and the output seen with a lead. An
// attempt that was lost with the process is charged the upper bound in any case.
//
// # Kept state
//
// A request that refers to what a backend keeps is looked up before admission
// ([stateful.Keeper.Find]) and pinned to that place: it is neither hedged nor copied. What an
// answer says that its backend keeps becomes the tenant's before the client has the bytes
// that tell it, streamed or not, whatever becomes of the rest of the answer.
//
// # Copies
//
// A request that has its first place is copied to the shadows of its model whose turn
// it is (route.Shadow), each time with an id, a reservation and a journal entry of its
// own: one attempt, which gets a place at once or is left out, and whose answer goes
// nowhere. The copy shares the body, which is not changed, so it costs no copying; at
// most MaxCopyBytes of bodies are kept alive by copies. It is sent with the policy of
// its caller as far as that says where it may go and how much may be asked for, has hard
// spend on the shadow's account, and teaches the estimates nothing. It outlives its
// client: were it cut with it, slow answers would be missing from what is compared. It
// does not outlive a drain, nor a request that waits for its place. Of requests whose
// provider runs tools there are no copies: what these do would be done twice.
//
// # Reading on
//
// Of a backend that goes on to the end of its answer whether or not somebody waits, the
// call does not end with its client (call): it has a context of its own, and when the
// client has left, its attempt goes on in Run's goroutine, writes to nobody, and settles
// with what the provider reports. The engine is told at once (admit.Grant.Leave): place
// and gauges return, and what the reservation holds of rates and budgets stays, so that
// there is one settlement, as ever. Time, bytes and how many there are at a time bound
// it, and Close ends it.
//
// # In the background
//
// A response that its provider makes in the background outlives the request that asked for
// it. When that is answered, or its stream was cut, the turn goes on in a goroutine of its
// own (later): it asks the provider how the response stands, or takes it from a client that
// has it, and settles once with what its end tells. The engine is told at once that the
// place is free (admit.Grant.Leave); rates and budgets stay held until then. Number and time
// are bounded, and Close asks a last time and settles.
//
// # Handed over
//
// A line of a batch may be answered by its provider's own batch API (handover). Its attempt
// is on file like any, and its call is a seat there. The engine is told at once that the
// place is free (admit.Grant.Leave); what is held of rates and budgets stays, renewed while
// it waits, and ends with the one settlement, which has the service tier batch. A line that
// such a batch has already is pinned to the account that has it. What the provider did not
// run took nothing; what may have run, and has no answer, is estimated.
//
// # Invariants
//
//   - No dial before the journal has the attempt, but for tenants without hard
//     spend while the journal cannot write, and for what is asked of stored answers, which
//     costs nothing.
//   - One journal entry for each attempt; exactly one of them is Final.
//   - No byte of a second attempt reaches a client that has content of the first.
//   - The attempt that loses a race has its entry before the final one, and its call has
//     ended.
//   - A panic settles the request like a failure and leaves others alone.
//
// # Ownership and concurrency
//
// An Exchange is safe for concurrent use. A Run belongs to its caller's goroutine, and
// so does its Client. The attempts of a request that may be hedged have a goroutine
// each until one decides, which Run joins. A copy has a goroutine of its own, of which
// there are MaxCopies at most, and [Exchange.Close] ends and joins them. One mutex
// guards what is learned, another counts copies; nothing blocks under either.
//
// # What it does not do
//
// It knows no HTTP server, no keep-alive comments and no error bodies: proxy
// does. It decides neither who may run (admit) nor what follows a failure
// (engine).
package exchange
