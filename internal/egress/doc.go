// Package egress is the only package that opens a connection to anywhere.
//
// # Model
//
// A [Dialer] connects, and two speak HTTP over it: the net/http transport of
// [Dialer.Transport], and [Clear], made by [Dialer.Clear], for HTTP/1.1 without
// TLS, as engines beside the gateway have it. All judge the address that a name has resolved to, at the moment of
// the dial: a check of the name proves nothing, since the name may resolve
// differently a second later (rebinding), may be spelt in another way (octal,
// mapped into IPv6) or may be the target of a redirect.
//
// Addresses fall into three sets, see [Check]. Public ones may be dialled.
// Private ones (loopback, RFC 1918, unique local, carrier-grade NAT) may be
// dialled by a transport whose AllowPrivate is set, which the caller derives
// from the operator's configuration having named that very host. All others
// never are: cloud metadata services, link-local, unspecified, multicast,
// reserved, and every range that wraps an IPv4 address in an IPv6 one.
//
// # Invariants
//
//   - No connection exists to an address that Check refuses.
//   - Nothing follows a redirect, honours a proxy variable of the environment,
//     or unpacks a compressed answer on its own.
//   - Everything that a peer can make long is bounded: connect, TLS handshake,
//     answer headers, idle connections.
//
// # A name that stops resolving
//
// For LastGood (30 s) after the first failed look-up the address that the name
// had last is used instead, so that a flapping resolver is not an outage. It
// passes the same check.
//
// # Ownership and concurrency
//
// A Dialer is safe for concurrent use and starts no goroutine. A transport or a
// Clear belongs to its caller, who closes its idle connections. A Clear works on
// its caller's goroutine; what of a request beyond 16 KiB the kernel does not take at
// once is written on another one, which the answer's Close joins.
//
// # What it does not do
//
// It sends no request, holds no credential and knows no deadline of a request:
// upstream does. Tests replace the network through Options.Dial; egresstest has
// an in-memory one.
package egress
