// Package scrape reads what inference engines tell of their load.
//
// # Model
//
// A [Poller] asks each engine for its metrics once in an interval and hands what it
// said on as a signal; [Report] reads the same figures from the header that an
// engine adds to its answers (endpoint-load-metrics). What comes of them is
// for route to say: they are hints with an age, and only lower.
//
// [Parse] takes the few series that matter from a Prometheus text: requests that
// run and wait are summed over the series of a model, memory is that of the
// fullest. It knows the names of vLLM, old and new, and of SGLang. It is no parser of
// that format: a line that it does not understand is skipped, and nothing in it
// is unbounded.
//
// # Concurrency
//
// That of package rounds: one goroutine, and a few more while a round lasts. An engine
// that does not answer in time costs its own figures alone.
//
// # What it does not do
//
// It opens no connection: it is given the function that does. It keeps no
// history, and judges nothing by what it has read.
package scrape
