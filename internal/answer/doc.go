// Package answer is an answer as it is kept: the bytes that a client got, and what is
// told beside them, so that another client gets the same later.
//
// # Model
//
//	Recorder   stands between exchange and its client, passes all on and keeps a copy
//	Answer     what was kept of an answer that came whole
//	Replay     delivers it to another client
//
// What is kept is what exchange delivers: the events of a stream in the client's dialect,
// or the body of an answer in one piece, byte for byte. Keep-alive comments, which belong
// to one connection, and error events, which proxy writes, are not in it. A stream is
// replayed as a stream, in parts of whole events.
//
// Of the headers those are kept that exchange's answers give to clients
// ([wire.AnswerHeader]); rates, which are of a moment, are not among them.
//
// # Encoding
//
// [Answer.Append] and [Parse] are one format, which begins with its version. Every length
// is checked against what there is before anything is allocated for it, so that a
// damaged or hostile record costs no more than its own size. There is one encoding of an
// answer: what Parse accepts, Append writes again. It has no checksum: whoever keeps it
// where it may be damaged adds one.
//
// # Invariants
//
//   - A Recorder gives an Answer only if the request ended without an error, every byte
//     was delivered, and all of it fitted into the bound.
//   - A Recorder changes neither what its client gets nor when.
//   - An Answer is not changed once it is made, so that many may replay it at a time.
//
// # Ownership and concurrency
//
// A Recorder belongs to the goroutine of the exchange, as its client does. An Answer is
// safe for concurrent use.
//
// # What it does not do
//
// It keeps nothing by itself, decides not what is worth keeping, and charges nothing.
package answer
