// Package bubble runs tests in virtual time: [Test] is synctest.Test, which the
// race detector of Go 1.26 cannot follow on two processors.
//
// All timers of a synctest bubble share one race context, which the runtime
// hands to whoever fires one: the root of the bubble, or a goroutine that looks
// at the channel of a timer that is due. On two processors both may do so at
// once; the shadow stack of the context is torn, and the process dies inside of
// the race detector with SIGSEGV, far from the test that did it
// (https://go.dev/issue/78156). So Test keeps the process to one processor while a
// bubble is open under the race detector, which finds races by what happens
// before what, not by what happens at once; without it, Test changes nothing.
//
// When the runtime is mended, this package goes.
package bubble
