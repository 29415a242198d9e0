// Package wire is the bytes of the dialects: it scans a request's head, splices
// the few values that the gateway changes, frames event streams, taps usage from
// answers and writes errors.
package wire
