// Package quota counts what callers may take and have taken: one call reserves
// over all scopes and dimensions, one settles.
//
// # Model
//
// An [Account] belongs to an [Owner]: a key, a user or run of a tenant, a project,
// tenant, tenant × model, model, or the fleet. It has one counter per limit, of one
// of three kinds.
//
//	bucket   requests and tokens per second or minute. level refills at
//	         amount ÷ period up to amount, in exact integer arithmetic: the
//	         fraction of a unit is kept, not rounded away. What a refill would
//	         have lost had a hold not been taken, the hold no longer returns
//	         (level + returnable ≤ amount): a long one buys no second burst.
//	window   anything per hour, day or month: posted + held ≤ amount. The
//	         window's start is the counter's identity, so that no job resets it;
//	         a counter keeps the window in force and the one before. A run is a
//	         window of its own, without an end; its time is posted as it passes.
//	gauge    concurrency and KV tokens: the sum of live holds.
//
// A [Reservation] refers to the accounts of one request, found once by
// [Book.Open], and lists what it holds of each counter. [Book.Reserve] takes
// requests, tokens and spend at arrival; [Book.TakeGauges] takes gauges at
// dispatch and [Book.ReturnGauges] gives them back when the attempt ends;
// [Book.TopUp] raises the holds before a further attempt; [Book.Post] charges
// what an attempt used while the request goes on. Each is all or nothing.
//
// It ends exactly once. [Book.Settle] charges the actual and returns the rest; a
// use beyond the hold leaves a debt, which later admissions wait out and nothing
// forgives. [Book.Release] returns everything, the request itself too: what never
// reached a backend is not charged. [Book.Expire] returns the gauges and charges
// the holds, since a backend may have done the work and unknown usage is never
// zero; a settlement that comes after all, [Book.SettleLate], replaces that charge
// by the actual. All of them charge the windows of the reservation: work in flight
// over the end of a month belongs to the month that it was admitted in.
//
// # Admission
//
// For a need n of a counter with limit L the hold is h = min(n, L), and it fits
// when
//
//	bucket   level ≥ h
//	window   L − posted − held ≥ h
//	gauge    L − held ≥ h
//
// or h = 0: what takes nothing is not kept out by a debt. So a request larger than
// a burst is admitted when the bucket is full, and runs alone: an idle caller can
// always run one request that its limits allow in principle. A request whose least
// need (its input, its smallest useful output) is above L can never fit, and is
// told so rather than when to come back.
//
// A [Refusal] names the limit that takes longest to admit the request, by the
// true time: (h − level) × period ÷ amount for a bucket, the end of a window that
// is spent. Where only requests in flight are in the way their end decides, and no
// time is given. Scope order breaks ties.
//
// # Runs
//
// A run has its plan's bounds, and what its requests ask for on top ([Claim].Asked):
// the tightest that any of them has asked for, from then on. It counts in every
// dimension from its first request on, so that a bound that comes late finds what
// was taken before. A bound of a run that is spent stays so: the refusal has no time
// to come back, and Spent is set. Where it bounds output, or all tokens, it holds all the
// output that a request may have and not what is expected, since it waits no debt out
// (whole.go).
//
// # Shadows
//
// A claim whose Shadow is set refuses nothing. What does not fit is let in,
// [Reservation.Would] tells the limit, and the shadows go on as if it had been
// refused: it takes nothing from their buckets and gauges, else one overload would
// make every later request one that would have been refused. Windows count what it
// used, since that was spent. Limits that are enforced beside them decide first.
//
// # Debt
//
// What a live reservation can use beyond what it holds ([Reservation.Bound]) is what
// it can still drive a counter into debt by. Σ of that is kept per counter, as
// CounterView.Exposed. Nothing forgives a debt: it is waited out.
//
// # Invariants
//
//   - Over any interval t, the actual use of what a bucket admitted in it is at
//     most amount + amount × t ÷ period + Σ over those that still run of what they
//     use beyond their holds. A debt is never more than what was exposed when the
//     last hold was taken.
//   - posted + held ≤ amount for a window whose users never use more than they
//     hold (hard spend).
//   - A gauge, and the held part of every counter, is Σ of live holds, and zero
//     when there are none.
//   - A counter never moves within its account while the account lives, so that a
//     change of limits leaves holds valid. Debt and spent amounts are kept; only a
//     bucket whose limit is lifted starts anew when it gets one again.
//   - Time never goes back: an older moment refills nothing and reopens no window.
//
// # Memory
//
// Accounts are created by the first request that has limits for them, with those
// limits, before it is let in. Users and runs have any name that a caller likes, so
// at most MaxLabelled of their accounts are kept, and MaxLabelledOf of one tenant's;
// ids beyond that share one account of their tenant, which has the limits of one. A
// run is forgotten after RunIdle without a request, or its time if that is longer;
// another with its name begins anew. An account that
// nothing refers to, with full buckets, empty gauges and unspent windows, is as
// good as new; each creation looks at two others and forgets those. A reservation's
// memory is used again, so that reserve and settle allocate nothing in steady
// state.
//
// # Cost
//
// With a hundred thousand keys no cache holds the accounts, and most of what a request
// costs is what of them it reads: at seven scopes of six limits, dozens of counters at
// arrival and at the end. So a counter is 48 bytes and lies behind its account
// ([newAccount]), to a request four cache lines for four counters; gauges, of which there
// are two, are at its head, where a dispatch finds all that it needs in the first line;
// the limits are worked out once for each policy ([terms]), and accounts share them; to
// what time buckets have refilled and windows rolled is the account's; and a hold is an
// amount and a mark, in the order of the counters, beside the reservation ([Holds]). Who
// knows that accounts are about to be worked on asks the processor for all of them before
// ([Visit.Prefetch], [Reservation.Prefetch]).
//
// The rest is instructions. The rates of an account are sorted, buckets first, and
// the loops over them look at no kind and call nothing (bucket.go). A reservation takes
// from a counter as soon as it has seen that there is room, and puts back what it took
// where a later one has none: that is the cost of a refusal, and of a shadow that would
// refuse. Who opens reservations keeps what the last of a key was opened with ([Visit]),
// and so looks nothing up. [Book.Limits] copies the counters of the caller, and what they
// come to is worked out where a header or an entry tells it.
//
// # Second attempts
//
// [Book.Beside] opens a second reservation beside one that holds: of the same accounts,
// in the same windows, holding nothing yet. [Book.TopUp] and [Book.TakeGauges] take what
// it needs, all or nothing, and it ends by itself. It counts as no request.
//
// # What it does not do
//
// It knows no price, model or backend, has no queue, starts nothing, and does not
// remember which reservations exist: the engine does. It does not know what was used
// before a counter was made. A limit that comes into force in the middle of a window
// is given that before ([Book.Introduce]); nothing counts twice by it, since a
// reservation charges the counters alone that were there when it took its holds. For
// the same reason what requests in flight at that moment go on to use is missed, until
// a start seeds the window anew ([Book.Seed]).
package quota
