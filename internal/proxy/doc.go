// Package proxy is the data plane over HTTP: read, identify, exchange, write.
//
// # Model
//
// [Proxy.Handler] serves the operations of both dialects. One request is
// [call.serve], which reads on one screen: find who calls, read the body whole,
// scan its head, run the exchange, tell the client what it has not been told.
// Every request ends in one [Record], handed to Options.Log, and in the answer
// of its own dialect, errors included.
//
// A body is bounded and read at a least rate, before anything is reserved. It is
// read into a buffer of its declared size, which is allocated only once a first
// part has come, so that a declaration costs nothing.
//
// # Streams
//
// The sink sends each event with its own flush, under a write deadline that
// slides, and counts on the kernel's buffer alone: a client that does not read
// stops its own upstream and is cut when the deadline passes. While nothing has
// been written for KeepAliveAfter a comment is sent. The first one, before any
// content, commits status 200 with sluice-request-id alone; what is decided
// later follows in one comment, ": sluice {…}". An error of a request that is
// committed is the dialect's error event and then an aborted connection, since
// most clients take a clean end for success.
//
// # Headers
//
// sluice-class, sluice-max-wait, sluice-task, sluice-labels, sluice-risk, sluice-run,
// sluice-run-limits and sluice-session are obeyed or refused with 400 or 403, and so is
// one that is misspelt or comes twice. docs/headers.md has all of them.
// An Idempotency-Key is checked here and obeyed by what stands in front of the exchange
// (package idempotency), and by those mounts and Later that make something; on what other
// mounts serve it has no effect, which sluice-dropped says.
//
// # Connections
//
// At most MaxConns are inside at a time; further ones wait in the kernel, so that
// descriptors are left for backends and the store. Package front serves operations
// whose requests are as plain as nearly all are; with the first other one a connection
// is net/http's. That reads it through a guard, which refuses what two servers may read
// in two ways and net/http would mend: a request with both a transfer encoding and a
// length, and lines that end in LF alone. HTTP/2 is not spoken: there is no TLS here.
//
// # Where a request stands
//
// GET /v1/sluice/requests/{id} tells the caller about an open request of its own
// project: position, expected wait, what was predicted. A client knows the id from
// sluice-request-id, which a stream gets with the first comment.
//
// # Mounts
//
// What other faces serve below the same address is a [Mount]: the caller is identified
// here, the body bounded and held to the same least rate but not read ahead, errors told
// in the dialect, and the request recorded under the mount's own word.
//
// # Shutdown
//
// [Proxy.LameDuck] makes readiness fail and connections close after their
// answer. [Proxy.Shutdown] stops listening, lets requests finish until its
// context ends and then ends the rest with shutting_down.
//
// # Ownership and concurrency
//
// A Proxy is safe for concurrent use. The goroutines are front's and net/http's; a stream
// has one timer, whose writes and the handler's are under the sink's mutex.
//
// # What it does not do
//
// It decides nothing about admission, routing or money, and holds no state of a
// tenant.
package proxy
