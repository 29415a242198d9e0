// Package socket reads and writes TCP connections by system calls that the Go
// scheduler is not told of.
//
// # Model
//
// The net package announces each system call to the scheduler, since it might
// block: the processor may be taken away meanwhile, and the runtime's monitor is
// woken if it slept. The descriptors of the net package never block. To announce
// a call on one costs more than many of the calls do, and in a process that wakes
// for each chunk of a stream the monitor is woken, and runs, for each.
//
// [Wrap] makes a [Conn] of a connection. It waits as the net package does, in the
// runtime's poller and under the same deadlines, and only what it does to the
// descriptor in between is done without a word.
//
// # Invariants
//
//   - A call is made only while the descriptor is held, and on descriptors that do
//     not block: it copies at most [Most] bytes and returns. That long the runtime
//     may have to wait for this goroutine, to collect garbage say.
//   - Errors are what the net package's would be: *net.OpError of "read" and "write",
//     io.EOF, deadlines, net.ErrClosed.
//
// # Concurrency
//
// As any net.Conn: many goroutines may use it, and those that read wait for each
// other, as do those that write.
//
// # What it does not do
//
// Other connections than TCP, and other systems than Linux, are left as they are. So
// are all under the race detector, which takes from package syscall what orders two
// goroutines. docs/adr/0009 has the reasons.
package socket

// Most is how many bytes one call reads or writes.
const Most = 64 << 10
