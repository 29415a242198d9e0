// Package front serves the connections of clients: requests that are as plain as
// nearly all are by itself, every other one by net/http.
//
// # Model
//
// [Server.Serve] accepts connections and reads requests on a goroutine of each. A
// request is plain when its head has come whole with one read, is a POST to a path
// that Options.Find knows, in HTTP/1.1, declares its length, and has nothing in it
// for a second opinion: lines that end in CRLF, no header twice, and none that
// tells about the connection, an encoding or an expectation. Its handler gets an
// [http.Request] as net/http would make it and a [Response].
//
// With the first request that is not plain, right or wrong, the connection goes to
// Options.HTTP with all that was read of it, and stays there. So there is one
// judge of what is malformed, and what this package does is bounded by what it
// understands in full.
//
// What is gained: net/http reads each connection from a goroutine of its own while
// a handler runs, to know when the client leaves, which costs a goroutine, two
// changes of threads and a read for nothing per request; it copies and sorts the
// headers of each answer, and sets four deadlines.
//
// # A client that leaves
//
// The context of a request ends when its client has closed its side, as it does
// under net/http. On Linux the kernel tells of it: one goroutine waits for all
// connections (EPOLLRDHUP), and is not woken by data. Connections that have no
// descriptor, and other systems, are read from beside the handler.
//
// # Invariants
//
//   - Of a request that is handed over nothing has been consumed, but an empty line
//     before it, which net/http would take behind a request of its own alone.
//   - An answer's framing is this package's: a declared length is kept, or the
//     connection is closed; without one the answer is in chunks. No header of a
//     handler breaks a line.
//   - A connection is kept only when its request has been read and its answer
//     written, both to the end.
//
// # Deadlines
//
// A connection that waits for a request does so for Options.Idle, and at most a
// quarter longer: the deadline is moved on only when it has come closer than that,
// not with each request. Those of body and answer are the handler's; what it
// leaves of the write deadline stays in force, see [Response.WriteUntil], until the
// connection goes to net/http, which lifts none that it has not set.
//
// # Ownership and concurrency
//
// A Server is safe for concurrent use. A connection and its Response belong to one
// goroutine, which ends with the connection; Shutdown waits for all of them.
//
// # What it does not do
//
// TLS, HTTP/2, HTTP/1.0, upgrades, trailers: net/http does what of it is served.
package front
