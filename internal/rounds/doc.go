// Package rounds asks backends something, each in an interval of its own.
//
// # Model
//
// [Start] asks in rounds: those that are due are asked side by side, a few at a time,
// and the next round comes when the next is due. What an ask returns is handed to the
// next one of the same backend; it is forgotten with the backend. Who is asked is
// looked up at each round, at least once a second, so that a reload is seen.
//
// # Concurrency
//
// [Rounds] has one goroutine, and at most AtOnce more while a round lasts; Close
// joins them all. A backend that hangs costs its own answer alone, and delays the next
// round by at most Patience.
//
// # What it does not do
//
// It opens no connection and understands no answer: scrape and probe do.
package rounds
