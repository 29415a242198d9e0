// Package tabletop rehearses overload: a scenario is run under virtual time on the
// engine that serves production, against a model of the fleet, and judged by what
// was expected of it.
//
// # Model
//
// A [Scenario] is who asks for what ([Source]), what serves ([Machine]), how
// requests are admitted, queued and routed ([Variant]), what happens meanwhile
// ([Event], [Act]) and what is expected ([Expectation]). [Scenario.Run] plays it:
//
//	sources ──▶ client ──▶ control (estimate, engine, settle) ──▶ machines (fleet)
//	              ▲ patience, retries                                 │ first token, 64 more, end
//	              └────────────────────── measure ◀───────────────────┘
//
// Nothing happens between events: the next of the timers, of the machines and of
// the engine's own deadlines is when time goes on. A machine speaks of a first token,
// an end, and of what the gateway would tell its engine: every 64 tokens, or the
// first one a second after the last report. So a request costs some events, however
// long its answer.
//
// # The boundary
//
// What is true of a request (its length, its prompt's blocks) is drawn at its source
// and known to its client and its machine. The control side (package control) gets
// what a gateway gets, and cannot name the rest: it imports neither this package nor
// the fleet.
//
// # Chance
//
// Every source draws from streams of its own, by its name; what is drawn for a
// request depends on the seed, the source, the request's number in it and what it is
// for. So the same request has the same lengths under every policy, with and without
// an act, and whatever becomes of other sources. Arrivals are a renewal process of
// mean 1 in the integral of the rate: changing a rate bends time and draws nothing
// anew.
//
// # What is counted
//
// A request is what a person waits for: it belongs to the phase in which it was first
// submitted, its resubmissions are the same request, and its times count from the
// first. It is good if it completed within every target of its source. Percentiles
// are read off log-linear histograms of all samples; those of a tenant are merged
// from its sources', never averaged. Output served, work and shares count when they
// are delivered. The series has at most 240 buckets and lines for the classes and the
// 20 tenants that are expected to ask for most, the rest together.
//
// Fair shares are those of max-min fairness, by weight and demand, of what each pool
// delivered in each bucket; the fairness gap is judged as the run goes on, see the
// comment of fairness. Recovery is defined at the comment of recovery.
//
// # Invariants
//
//   - Every request ends exactly once, or is unfinished when the run ends.
//   - Every submission that the gateway takes is settled exactly once; what is open
//     at the end is settled then, and nothing stays held.
//   - Time never goes back; nothing happens to a request before it comes up.
//   - The same scenario, policy, acts and seed give the same Result, byte for byte:
//     no clock, no map order, one goroutine.
//   - Memory grows with what is open, with sources, phases and buckets, not with
//     requests.
//
// # Mutations
//
// What the tests are for, found by breaking the code on purpose:
//
//	broken                                              fails
//	the gateway is told the answer's length             TestTrueLengthsAreNotRead
//	what it is told of the input depends on it          TestTrueLengthsAreNotRead
//	a report runs ahead of what has been generated      TestTrueLengthsAreNotRead
//	a request is lost when its client leaves            TestProperties, TestPatience
//	a machine goes on for a client that has left        TestProperties
//	arrivals come when the run is over                  TestProperties
//	a client leaves though its answer has begun         TestPatience, TestRetryWave
//	who leaves by its own will counts as badly served   TestLeaving
//	sources draw alike                                  TestDice
//	a change of the rate waits for the next arrival     TestRateChangesAtOnce
//	a cut answer is charged what was seen alone         control TestEnds
//	a failed attempt is not charged                     control TestFurtherAttempt
//	nothing is learned                                  control TestEstimatesAreLearned
//	the bound looks at what is in flight now            TestFairnessAgainstModel
//	what was taken does not replace the estimate        TestFairnessAgainstModel
//	one good second is a recovery                       TestExpectations
//
// # What it does not do
//
// It reads no file (config does), draws no chart (report does) and opens no
// connection. Deadlines of upstream calls, a network's latency and a gateway's own
// cost are left out.
package tabletop
