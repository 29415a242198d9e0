// Package live proves the queue behind the real gateway: every request goes over
// HTTP through proxy, exchange, admit and engine to a simulated provider, over a
// network in memory, in a synctest bubble, so that hours pass in seconds.
//
// # Driver
//
// A site is one gateway: a routing table, tenants, the provider with one simulated
// engine for each backend, and the admin API, which is where the tests read what
// the gateway says of itself. What the provider says is its own book. What happened
// is in a log that the hooks of admit and exchange write and in what clients saw;
// the verdicts come from these.
//
// # Controls
//
// Where a test judges the order of service, the same load is played with
// sched.Policy.FIFO, and the test fails if FIFO passes. The noisy tenant's control
// is a naive gateway: requests per minute, FIFO, and no bound on tokens or memory.
// The retry wave's is the naive policy: two retries, whatever happens.
// The tests of the books hold two sources against each other instead.
//
// # The tabletop
//
// One load is played through the gateway and by package tabletop, and both must tell
// the same. The provider then tells its usage as it goes, one token in an event, so
// that the gateway sees what the rehearsal sees.
//
// # Sizes
//
// Virtual time costs what happens in it. Rates are scaled down where nothing but the
// ratios counts, and the test says by how much.
package live
