// Package pins keeps operators' pins of degradation ladders in the store, so that a restart
// takes none off and every replica has them.
//
// # Model
//
// The store has one [Record] for each pool that is pinned. An order goes to the ladder
// first, which judges it, and then to the store. Each look at the store puts in force here
// what it has, and takes off what it had and has no more: another replica's orders. What a
// pin is made again by is its moment, tier and author, so that a look that finds nothing
// new moves nothing.
//
// A store that does not answer keeps nobody from pinning: the order is in force here, its
// answer says that it is not recorded, and the next look that finds the store records it.
// Until then what the store says of that pool is not listened to.
//
// # Invariants
//
//   - A pin ends at its expiry wherever it is in force: ladders see to that themselves, and
//     a record that is over is as none.
//   - Of two orders for one pool the later in the store's order is in force everywhere
//     within a look.
//   - Nothing of a pool that is not there, or whose ladder is off, is forgotten: the pin is
//     in force when that comes back before the pin is over.
//
// # Ownership
//
// The Keeper has one goroutine, which Close joins. Orders and looks take turns.
package pins
