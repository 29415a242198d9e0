// Package probe asks backends outside of requests how they are.
//
// # Model
//
// A [Prober] asks each backend for a path once in an interval and hands the
// [Outcome] on: what answers 2xx is [Up], what does not answer in time, or with 5xx, is
// [Down]. Any other answer, such as 404, says that the path is wrong and nothing of the
// backend: it is [Unknown], and told of to the operator. What comes of them is for route
// to say: a success takes a backend that was left alone back through its ramp, failures
// count in a row.
//
// # Concurrency
//
// That of package rounds: one goroutine, and a few more while a round lasts.
//
// # What it does not do
//
// It opens no connection: it is given the function that does. It keeps no history but
// of what was told, and decides nothing.
package probe
