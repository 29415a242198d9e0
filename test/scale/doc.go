// Package scale puts many streams, large bodies and long runs through the gateway's
// binary and counts what comes out.
//
// Client and provider are of this package: they speak HTTP/1.1 by hand, and what a
// stream must consist of follows from its label, so that both ends know it to the
// byte. After each run the ledger is held against what was served, to the token.
//
// The tests are sized for every run of `make test`. SLUICE_SCALE=full makes them as
// large as what they prove: 2,000 streams at a time, 100,000 one after another.
// TestSoak runs for as long as SOAK says, and not at all without. docs/proof.md has
// the commands and the figures.
//
// Bounds of time hold on a machine that does nothing else; on a busy one it is the
// processor time of the gateway's process that is held to them.
package scale
