// Package upstream calls a backend: one attempt over HTTP.
//
// # Model
//
// A [Target] says where a backend is, how it is spoken to and how long it may
// take. [Client.Do] sends one request to it and returns an [Answer] once the
// headers are there, or an [Error] whose Reason is one of sluice's and whose
// Sent says whether the backend can have begun to work.
//
// An answer that is not 2xx has its body read whole, bounded, within a few
// seconds. The body of a 2xx is read by the caller: streams through
// [Answer.Read], others through [Answer.ReadAll].
//
// # Deadlines
//
// Each has its own cause, because each means something else. They are measured
// on one watch, which has one timer and is moved on by storing the next
// deadline, not by re-arming the timer, so that a token costs two atomic
// stores.
//
//	connect      look-up, connect, TLS                 upstream_connect
//	headers      from the send, for streams            upstream_timeout
//	first token  from the send, for streams            upstream_timeout
//	idle         between two events of the stream      upstream_stalled
//	rate         tokens within a window                upstream_stalled
//	total        from the send                         upstream_timeout
//
// An answer in one piece has its headers and its first token when it has
// everything, so that total alone bounds it. The rate asks that every
// Rate × Window tokens arrive within one Window of the moment when the last such
// lot was complete, or of the first token. Idle and rate count only the time that
// is spent waiting for the backend: while a slow client holds up the pump, its
// upstream is not the one that stalls.
//
// # Addresses and credentials
//
// How an operation becomes a path and a query, and what then stands elsewhere than in
// its dialect's body, is a row of endpoints, by service and operation ([Target.At]). A
// credential is a secret in the header that its service or dialect has for it; a token,
// which the Client gets and keeps by [Login]; or a signature of the call as it is sent.
// A token is got once for all that wait for it, on a goroutine that Close joins, and
// renewed early beside the calls that use it. An endpoint that fails is left alone for a
// while, doubled each time; the error has Credential set, and nothing was sent. A refusal
// that another token, or the time that the service tells, may mend is tried once more.
//
// # Invariants
//
//   - The body is sent from memory with its length, so that nothing of the
//     client's connection is involved and a connection found dead before a byte
//     was written is replaced.
//   - Of the client's headers those in a short list are sent on, never a
//     credential, an address, a cookie, anything hop-by-hop or a sluice-* one.
//   - Cancelling the context closes the connection or resets the stream at once.
//   - Redirects and content encodings are refused, never followed or unpacked.
//
// # Ownership and concurrency
//
// A Client is safe for concurrent use. An Answer belongs to one goroutine, which
// must Close it. The client's goroutines are those of token
// endpoints; the transports' end with their connections, see [Client.Close].
//
// # What it does not do
//
// It does not parse events, decide on retries or know prices.
package upstream
