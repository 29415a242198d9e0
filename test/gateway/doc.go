// Package gateway runs `sluice serve` as a process of its own, for tests that
// kill, starve or measure it.
//
// The binary is built from this tree once for each test binary; a test binary
// that uses the package calls [Main] from its TestMain. A [Gateway] has a
// directory, a configuration and one life after another in it: Start, then Kill,
// Crash or Stop, then Start again. What it says of itself comes from where an
// operator would look: the admin API, /metrics, /proc, and, for the ledger, the
// database file.
//
// Methods fail the test that owns the Gateway rather than return errors, but for
// those whose failure may be what the test wants to see.
package gateway
