// Package dialect puts requests and answers of one dialect into another, so that a
// client of one is served by backends of the other. What cannot be put is refused or
// told, never lost in silence.
//
// # Model
//
//	request   Translate: the client's body → Request → the backend's body, with a Report
//	answer    Whole: the backend's body → Answer → the client's
//	stream    Stream: the backend's events → Event … → the client's
//
// Request, Answer and Event belong to no dialect. They have a typed place for what
// two dialects share (text, images, documents, tool calls and their fragments,
// results, reasoning with its signature, refusals, sampling, bounds, structure,
// labels) and nothing is flattened into text to fit. All else that a request asks for
// travels as an Ask: a Feature and where it stands. Members that nobody knows are
// asks too.
//
// A codec is one operation of a dialect that requests are translated from and into:
// what its clients call each feature (fields), where it stands in their requests (path
// and names), what becomes of each feature in requests to its backends (carries), what
// becomes elsewhere of those that it alone has (elsewhere), and the readers and
// writers, one file each. What all say alike of another provider's own is in foreign. Another is another codec, its files and its rig_test.go row;
// it touches no other, since codecs meet in Request, Answer and Event alone, and the
// tests hold every ordered pair to the same properties. docs/dialects.md is generated
// from fields, carries, elsewhere and foreign, and the translation refuses by the same tables.
//
// # Fates
//
// A feature is kept, approximated, dropped or refused. Refused is what changes cost,
// safety, determinism or structure: no setting sends such a request. Under the strict
// policy every loss refuses; under warn approximations and drops are told in
// sluice-dropped. A member that is not known is refused, since nobody can say what
// leaving it out would change. A member that is null, or has the value that leaving
// it out means, asks for nothing.
//
// # Invariants
//
//   - What Translate returns without Err passes wire.Scan of the target operation.
//   - A translated stream, assembled by the client's rules, is the translated whole
//     answer, however the backend cut its events and fragments.
//   - Events end with a blank line; Anthropic's carry their names; "error": null is
//     never written.
//   - Figures are not translated: usage comes from the tap, in disjoint classes, and
//     each writer tells it by its dialect's rules.
//   - An answer that has what the client's dialect has no place for (another kind of
//     block, a stop reason that nobody knows) is an error and not a part of an answer.
//
// # Speed
//
// Nearly all events of a stream differ from the one before in one text, in their number
// and in figures that the tap reads: likeness replaces the text, and the number, in what
// the one before became, without reading JSON.
//
// # Concurrency
//
// Translate and Whole are pure functions over their arguments. A Stream belongs to
// its goroutine.
//
// # What it does not do
//
// It opens no connection (an image's URL is passed on, or fetched by others: see Wants), counts nothing, finds no
// errors in streams (wire.Tap does), and has no state between requests: reasoning
// and its signatures come back with the client's next turn or not at all.
package dialect
