// Package ladder is the degradation ladder of a pool: what is given up, in which order,
// while there is less capacity than demand, and when it is given back.
//
// # Model
//
//	tier       what requests feel                                       from tier
//	1 clamp    an answer has at most Output tokens                      1 on
//	2 context  an input that would wait has at most Input tokens        2 on
//	3 defer    batch waits                                              3 on
//	4 smaller  a smaller model, for those who consent; others are       4 on
//	           refused if they would wait for long, and offered the
//	           asynchronous path
//	5 shed     batch is refused; then standard too; then of interactive 5 on
//	           what is beyond its share: what the fair queue would not
//	           serve at once
//
// A [Ladder] stands on a [Rung], which is a tier, or one of the three of the last. The
// driver tells it the signals of a moment ([Ladder.Observe]) and asks what is done to
// requests ([Policy.Acts]). Signals are the age of what waits longest, the part of the
// memory in use while something waits, and the part of arrivals refused for want of
// room. Batch is in none of them, since it is there to wait; nor is what the ladder
// itself refuses, since then it would never come down.
//
//	up    one of the next tier's Enter bounds is reached at every look for Rise,
//	      and Rise has passed since the last move
//	      (for the last rung, of what waits of interactive)
//	down  all of this tier's Exit bounds are kept at every look for Hold, and Hold has
//	      passed since the last move
//	else  it stays
//
// Exit bounds are less than Enter bounds, so that a signal that stands still moves it
// to at most one place. A degraded pool may be calm only because it is degraded. Then
// leaving a rung brings the overload back, and the rung is entered again: each time that
// happens within MaxHold of leaving it, its hold doubles, to MaxHold.
//
// # Flapping
//
// Whatever the signals are, a rung is left in a time T at most
//
//	(k + 1) · (1 + T ÷ MaxHold),  k = ⌈log2(MaxHold ÷ Hold)⌉
//
// times. A cycle is from one leaving of the rung to the next. In any k + 1 cycles in a
// row, either the rung was away once for MaxHold, or it was entered again within that
// each time: then its hold has doubled k times and it stood on MaxHold in the last. In
// both cases they take MaxHold together. And between any two moves lies the less of
// Rise and Hold.
//
// # Pins
//
// An operator's [Pin] keeps it on a tier, with author, reason and expiry. Then it goes on
// from there as from anywhere, one rung at a time. A pin is felt where the ladder itself
// only says what it would do (Watch).
//
// # Invariants
//
//   - One rung at a time, but for an operator's pin and a change of the configuration.
//   - It returns to 0 within the sum of its holds after the signals have become calm.
//   - The same calls give the same answers: no clock, chance, map order or floats.
//
// # Ownership
//
// A Ladder and a Window are values of their driver's, with no lock and no goroutine.
//
// # What it does not do
//
// It measures nothing and touches no request: the engine does.
package ladder
