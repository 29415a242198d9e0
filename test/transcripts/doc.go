// Package transcripts runs golden transcripts of providers: what a client asks, what
// the provider is sent, what it answers byte by byte, what the client gets, and what
// is settled. README.md says how one is written; a new one is a file, not code.
//
// # Model
//
// A transcript runs in a bubble of its own: a gateway of config, admission, exchange
// and proxy, over a network in memory at which every host is the same scripted
// upstream. The configuration is one that an operator would write, with the
// provider's own address and credentials; only the scheme is taken down to http,
// since the upstream speaks in the clear. So a transcript holds the provider's
// configuration, address, authentication, translation, tap and settlement to its
// documented contract at once.
//
// # Invariants
//
//   - Transcripts are written from documented contracts. -update rewrites what the
//     gateway does (sent, client, outcome), never what the provider does; what it
//     wrote is to be read against the contract before it is kept.
//   - However the upstream's bytes are cut, the client gets the same bytes and the
//     same is settled: TestAnyChunking runs them all again, cut otherwise.
//   - What holds of every answer, whoever gave it, is judged of all of them (see
//     rules_test.go).
//
// # What it does not do
//
// It judges no decision of routing: each transcript has the backends that it needs.
// Reports of time, and ids that the gateway mints, are left out of what is compared.
package transcripts
