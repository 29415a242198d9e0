// Command bench measures the gateway beside a plain httputil.ReverseProxy:
//
//	go run ./test/bench [-json] [-rounds N] [-only load,…] [-profile DIR]
//
// # Model
//
// Three other processes run on loopback: a scripted upstream, the reverse proxy,
// and `sluice serve`, built from this tree, with everything on: keys, limits at
// every scope, journal, ledger in SQLite, metrics, a log file. One client, in
// this process, drives both gateways by turns with the same requests, and who
// goes first changes from round to round. Upstream and client speak HTTP/1.1 by
// hand over raw sockets, so that they leave the processors to what is measured.
//
// What counts is processor time, user and system, of the gateway's process
// alone, from before the first request until its journal is drained, divided by
// the requests or the chunks that the client received. Every answer is checked:
// status, number of events, terminal marker. One wrong answer fails the run.
//
// docs/bench.md tells the loads, the targets and the figures.
//
// # What it does not do
//
// It does not compare runs: figures of two machines, or of one machine at two
// times, do not compare; ratios within one run do.
package main
