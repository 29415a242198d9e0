// Package price prices usage and holds: a pure function of a versioned row.
//
// # Model
//
// A [Row] is what one provider asks for one model from one moment on. It has
// base [Rates] per token class, context tiers that re-price the whole request,
// variants by service tier, and fees per web search, per request and per [Unit] of what is
// not billed by tokens alone: images, seconds of audio, characters, searches of a reranker. Rates resolve in this order:
//
//  1. The variant named by the usage's service tier, as the provider reported
//     it. "fast" and "priority" name each other, because a provider that is
//     asked for the one answers with the other. A tier that the row does not
//     list is billed at the base.
//  2. Of those, the last context tier whose AboveInput is less than the total
//     input, cached or not. A request of exactly AboveInput tokens is below it.
//  3. A field that is zero is missing and inherits; [Free] is an explicit zero.
//
// Missing fields inherit dear rather than cheap, so that a gap in a price list
// is an over-charge that someone notices and never free use:
//
//	Input, Output of a tier or variant   that of the level below: variant
//	                                     tier → first tier of the variant → base
//	CacheRead                            Input: no discount that is not listed
//	CacheWrite                           Input
//	CacheWrite1h                         CacheWrite
//	AudioInput                           Input
//	Reasoning                            Output
//	AudioOutput                          Output
//
// The inheritance of the other fields stays inside their tier: a tier that
// doubles the input and does not list a cache price reads the cache at the
// doubled input price, not at the undoubled cache price.
//
// # Invariants
//
//   - A sum is made in 128 bits and rounded once: half to even for a
//     settlement ([Row.Cost]), up for a hold.
//   - [Row.HardHold] of a work is at least [Row.Cost] of every usage whose input
//     is within the input bound, whose output is within the output bound and
//     that has no more searches of the web and no more units, whatever class, context tier or
//     service tier it is billed in.
//   - [Row.OutputWithin] is the exact inverse of HardHold in its output bound.
//   - A [Book] never changes: a new price list is a new book with a new
//     version, which every ledger entry records.
//
// # What it does not do
//
// It does not find a row by alias or by prefix (catalog does), it knows no
// discounts for commitments and no prices by the time of day, and one price for images
// of all sizes. It decides no policy for an unpriced model.
package price
