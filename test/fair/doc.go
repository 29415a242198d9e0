// Package fair proves that the queue shares: it drives the engine and models of
// what serves its requests through virtual time, writes down what happens, and
// judges the log.
//
// # Driver
//
// [Run] plays a [World]: pools, machines (fleet.Replica, fleet.Hosted), clients
// with arrivals, sizes, weights, classes, limits and patience, faults of backends,
// and tables that come into force. It calls the engine as the gateway does: Arrive,
// Advance after every event and at NextWake, Progress at the first token and every
// 64 tokens, AttemptEnded where a backend fails, Settle at every end, Cancel. It
// gives the engine what the gateway knows before a request runs, never its true
// length, unless the predictor is [Exact]. The same World gives the same [Log],
// which is all that an oracle reads: they share no code with the queue.
//
// # Controls
//
// [FIFO] is the engine's own queue in order of arrival; [Naive] limits requests per
// minute before it. Every test of a share or of a wait has a
// control that must fail it, so that a test that judges nothing is noticed.
//
// # Oracles
//
//   - [Conservation]: every request goes through its life in order and ends once;
//     after every event enqueued = dispatched + shed + left + waiting for every
//     pool, no hold outlives its request, what is in use of a backend is the sum
//     over the requests on it and within its capacity, and the engine says the same.
//   - [Fairness]: the bound on the difference of service between any two flows over
//     any interval in which both are eligible. With D = S_f/w_f − S_g/w_g the worst
//     interval of a span is max D − min D, so one pass over the log judges all; the
//     work in flight is the maximum since the span began, by a stack of falling
//     peaks. Between tenants of a class and between projects of a tenant.
//   - [BoundedWait]: how much work others may be given while a head waits.
//   - [WorkConserving]: no head waits that could run, but for other classes'
//     headroom, what is gathered for a large head, and meanwhile what the queue says is
//     kept back behind a head of its class that fits nowhere.
//   - [MaxMin]: long-run shares against water-filling, an independent division.
//   - [Turn]: how long running work of a head's size takes to end, from the log.
//   - [Log.AccumulatedDifference]: the measure of the published runs in [Anchors].
//
// # Published runs
//
// [Anchors] are the workloads of the artifact of VTC (Sheng et al., OSDI 2024) in
// which clients want more than their share, with its measure: a request's whole
// work, input + 2 × output, counts evenly from its first token to its end; at ticks
// until the last arrival the largest sum of any client less the smallest; the
// maximum of that. It was read at 19 ticks; every half second is stricter. The
// arrivals are the published ones themselves: drawn by the same generator from the
// same seed. Served first come first served, fleet.Llama7BOnA10G has the published
// throughput within 1 % and the published difference within 3 %.
//
// That measure counts what one client had while another asked for nothing. In the
// Poisson workloads that is most of it: one client has nothing waiting for the first
// 25 s. [Log.BackloggedDifference] is the same over any interval in which both have
// something waiting throughout, and is what those are judged by. [RunCounter] plays
// the counter itself on our model, to be read beside both. It charges output as it
// is delivered, and so keeps what has been delivered closer than a charge up front
// does where one client's answers are long and the other's short: by what is in
// flight.
//
// Sizes: ordinary runs take CI's; SLUICE_FAIR=full those of `make proof`;
// SLUICE_FAIR_SOAK=n makes the random histories n times as long.
package fair
