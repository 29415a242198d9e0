// Package app builds the gateway's graph, starts it, reloads its configuration
// and takes it down again.
//
// # Model
//
// New is one straight line on purpose: nearly every step needs what earlier
// steps made, and each registers its clean-up on a named stack as soon as it has
// something to clean up, so that a failure half-way rolls back on the path that
// Stop takes. Ports are bound early, since a port in use should be told before
// anything is written.
//
// # Coming up without a store
//
// A store that does not answer yet (a database that starts later) does not keep
// the process from starting. Until it is there the data plane identifies nobody
// and answers 503 not_ready, never 401. Once it is, the counters of fixed windows
// are seeded from it and from what the journal has yet to bring into it, the drain
// begins, and the gateway is ready. Any other error of the store ends the start.
//
// # Reload
//
// Everything fallible comes first: read, compile, compare with what a running
// process cannot change. Then the snapshot is swapped, and the engine, the keys
// and the metrics are told. A failed reload changes nothing and is remembered for
// the status.
//
// Limits of fixed windows that are new, of the file or of the store, begin with what the
// ledger has in their windows (introduce.go): their counters are made before the limits
// are in force, so that no request is counted twice. A ledger that does not answer soon
// is not waited for.
//
// # Versions
//
// What is put in force, by a reload, a change of routes or a rollback, takes one path
// (putInForce) and is one version in the history (versions.History). A text is compiled
// in the same way whether it is the file or was kept. What is not the file is held
// against the file as it was read last, beside the journal, so that it is known before
// the store is: a start compiles the file, for the directory, and then what is held.
//
// # Stopping
//
// Readiness fails first (lame duck), then the listeners close, running requests
// finish within the drain time and the rest is ended and settled, the journal is
// drained and synced, and the store is closed last.
//
// # Ownership and concurrency
//
// The App owns every goroutine that it starts and joins them in Stop. Snapshot and
// admin handler are behind atomic pointers; reloads are serialised by a mutex.
//
// # What it does not do
//
// It decides nothing and formats nothing but the few lines that a person sees at
// the start.
package app
