// Package wire is the bytes of the dialects: it scans a request's head, splices
// the few values that the gateway changes, frames event streams, taps usage from
// answers, and writes and reads errors. It opens no connection.
//
// # Model
//
// A body or an event passes in its provider's own dialect as the bytes that it
// came as. Nothing is decoded into a mirror of a provider's types and encoded
// again, so that fields nobody here has heard of arrive.
//
//	request   Scan → Head: model, bounds, needs, input estimate and where values stand
//	          Head.Splice → a new body for one backend
//	          Head.Prefix → chained hashes of the prompt, for pools that keep to prefixes
//	answer    Events → Event → Tap.Event → Step: what to forward, content or not, the end
//	          Tap.Body for an answer that is not streamed
//	          Tap.Usage, Partial, Delivered: what it took
//	refusal   Error, ErrorEvent: one table from kinds to statuses and words of each dialect
//	          Refused: an upstream's error answer, classified
//
// # Invariants
//
//   - What Scan accepts, every JSON parser reads alike: RFC 8259, valid UTF-8, no
//     lone surrogates, no number beyond float64, no key twice in any object, no
//     top-level key that differs from a known one in case alone, bounded depth. Of a
//     dialect that takes names in two spellings none in both, at any level that counts.
//     Else the gateway meters one model and the upstream runs another.
//   - A Head holds offsets, not bytes. A scan allocates a constant amount, plus a
//     bounded one for images' headers; base64 media are never copied. Of a body
//     beyond 32 KiB it counts an eighth of the text, beyond 64 KiB a sixteenth; see sample.go for the error.
//   - Bound ≥ what any tokenizer makes of the input: a token has at least one byte,
//     so it is the bytes that are not media, room for the template, and the media
//     table's maximum. Where Unbounded is set, only the context length bounds it.
//   - Splice changes the edited values alone and never its argument.
//   - The concatenation of all Event.Raw is the stream, however it was cut.
//   - An event leaves as it came but for usage that was not asked for, "error":null
//     (which breaks client libraries), and bytes that are no UTF-8.
//   - A stream succeeds only by its terminal marker, or in the OpenAI and Gemini
//     dialects by a finish reason for every choice and a clean end. All else is an error.
//   - The classes of a Usage are disjoint and sum to the provider's total. Figures
//     only grow; an impossible one sets Anomalous and counts as not told.
//   - What a client sent never stands in an answer but through a JSON encoder.
//
// # Kept state
//
// Head.Refs is what a request refers to of what a backend keeps between requests, Tap.State
// what an answer says that it keeps. A member that refers to state is read by [reads]; one
// of an answer that makes some by Tap.kept or keptIn, its own id where TapOptions.Stored
// says that it is stored. They are found where they stand by the dialect: what a model or a
// client's tool has written refers to nothing and makes nothing. In a tool that the provider
// runs, and among members that nobody here knows, what refers is told by how its name ends
// (refs.go), so that a tool of tomorrow is read too. An address of Google's has one name,
// [fileName], for what is remembered and for what is looked for.
//
// # Choices
//
// Where two output bounds are named, the larger counts, since which one a backend
// obeys is its own affair; both are lowered. A whole number must be written as one:
// 1e3 is refused. A user label too long for the ledger is replaced by its hash.
//
// All client headers go upstream but those of the connection, credentials and what
// smells of them, traces of the path, the client library's X-Stainless family, and
// those that choose among the operator's accounts (OpenAI-Organization,
// OpenAI-Project, Anthropic-Workspace-Id): a target's configuration sets these.
//
// A rate that frees only after a minute is told with x-should-retry: false, since
// libraries that trust retry-after-ms would sleep for all of it.
//
// # Concurrency
//
// Scan, Splice and the writers are pure functions over their arguments and safe for
// concurrent use. An Events and a Tap belong to one stream's goroutine. Nothing
// here starts a goroutine or holds global state other than tables.
//
// # What it does not do
//
// It does not translate between dialects, learn ratios, choose backends, hold back
// preamble, or decide when a stream is too slow.
package wire
