// Package egresstest is a network in memory for tests.
//
// # Model
//
// A [Net] has listeners by address. A dial makes two [Conn] ends joined by two
// pipes of a bounded size, so that a reader that stops makes its writer wait,
// as TCP does. An end has deadlines, can be closed for writing alone and can be
// reset. An address may also be a black hole, which accepts and never answers a
// dial, or refuse, as all that nobody listens at do.
//
// # Concurrency
//
// All waiting is on condition variables, so a goroutine that waits for the
// network is durably blocked in the sense of testing/synctest and time in a
// bubble moves on. Make the Net inside the bubble.
package egresstest
