// Package storetest is the conformance suite of the store: every engine runs all
// of it, each test on a database of its own.
//
// It judges by oracles in Go (sums over the entries that were appended), never by
// a second SQL statement. [Run] takes a function that makes a fresh database and
// returns its address; [SQLite] and [Postgres] are such functions, and Postgres
// skips the test when SLUICE_TEST_POSTGRES is not set.
//
// The package is for tests only and is not linked into the binary.
package storetest
