// Package hook is safety from outside: hooks that look into requests and answers, and
// say of each allow, redact, refuse or how risky it is.
//
// # Model
//
// A hook is a service that is called ([Spec].URL), or the built-in redaction of secrets
// and identifiers ([Spec].Redact). Policies and models name the hooks of their requests.
// An [Inspector] has them all; [Inspector.Begin] is those of one request, a [Run]:
//
//	Request  → the body is identified and scanned; nothing is reserved or sent
//	Commit   → before the first content of a stream is delivered
//	Answer   → before a whole answer is delivered
//	Events   → the text of a stream as it comes, a [Stream]
//
// Hooks see texts alone: which values of a document are texts is data, a [Row] for each
// operation, by paths. Requests are read before they are put into another dialect, answers
// after: hooks see what the client wrote and what it is about to get, in its own dialect,
// whatever the backends speak.
//
// # Redaction
//
// A document is edited where a text's bytes stand and is otherwise the bytes that came. A
// text that is JSON itself, the arguments of a tool call, is looked into string by string;
// a number in it becomes 0. Texts of a stream are put together over its events, for each
// index by itself. The built-in redaction decides from left to right by matchers that say
// yes, no, or that more must come ([matcher]): it holds back from where a match may have
// begun, and a match whose rest is open, as that of a private key, is told by its label
// and its rest dropped as it comes. A service is shown windows of bounded bytes and time;
// their last bytes are held back and shown again with what follows, so that nothing
// shorter is missed for being cut. What is held is written into the next event of its
// text, or into an event of its own where the text ends.
//
// # Invariants
//
//   - However a text is cut into events, what comes out is what the redaction of the
//     whole gives; for arguments, up to how strings are escaped.
//   - UTF-8 and JSON stay what they were. An edit of a service that would break them is
//     no verdict.
//   - A request or answer that a hook is to see and that cannot be read is not let pass,
//     nor is one whose hook is not there.
//   - No text of a request or an answer, and nothing that a service says but one word, is
//     in a [Decision], an [Event] or an error's text that is logged.
//   - Everything is bounded: calls at a time, time, bytes both ways, what is held.
//
// # Failure
//
// A call that brings no verdict in time is a refusal, or an allow where the hook fails
// open. After five in a row the service is left alone for a second, doubled up to thirty,
// with the same effect; one call at a time then asks whether it is back. A call ends with
// its request.
//
// # Ownership and concurrency
//
// An Inspector is safe for concurrent use and starts no goroutine; its connections are
// egress's. A Run and its Stream belong to one request's goroutine. The matchers, rows,
// edits, verdicts and the breaker are pure.
//
// # What it does not do
//
// It does not look at images, audio, files or token ids. It reserves, sends and settles
// nothing: exchange does, and keeps a refused answer's usage.
package hook
