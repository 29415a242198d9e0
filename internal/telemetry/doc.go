// Package telemetry turns what happens into numbers and lines: Prometheus
// metrics in a registry of its own, and one canonical log line per request.
//
// # Model
//
// The packages below expose hooks, structs of optional functions; this package
// implements them and imports those packages, never the other way round. A
// request is told once, at its end, as a [Request]: it feeds both the counters
// and the log line, so that the two cannot disagree. What is a level rather
// than an event (in flight, queued, health, journal lag) is read at scrape time
// from a function, not maintained by hand.
//
// Money is counted in integer nano-dollars. A float64 counter is exact up to
// 2^53 of them, nine million dollars per series; the ledger, not the metric, is
// the account.
//
// # Invariants
//
// The number of series is bounded whatever clients send ([MaxSeries]):
//
//   - A model, backend or pool name becomes a label only if the routing table
//     declares it ([Metrics.Declare]), at most [MaxModels], [MaxBackends] and
//     [MaxPools] of them; every other name is "other". A name that a client
//     made up can never become a label.
//   - Tenants have metrics of their own, with one series for each of the
//     [MaxTenants] that do the most work and one for "other". A tenant that
//     falls out of the top is folded into "other", so that the sum over the
//     label is always the whole and "other" never falls.
//   - A contract's tenant is a label of the contract's metrics, since the
//     configuration declares it, of at most [MaxContracts] contracts.
//   - Keys, users, runs, tasks and request ids are never labels: they are in
//     the log line and in the ledger.
//
// A log record holds no body, no header and no credential. Strings are bounded
// and cleaned of control and bidirectional characters before they are written.
//
// # Concurrency
//
// All methods are safe for concurrent use. No goroutine is started; a [RequestLog]
// has a timer, which Close stops.
//
// # What it does not do
//
// It decides nothing, keeps no history, and exports no traces.
package telemetry
