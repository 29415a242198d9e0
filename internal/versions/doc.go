// Package versions keeps what has been in force: every configuration that a
// gateway routed by, with who put it there and why.
//
// # Model
//
// A [Version] is a whole configuration and the event that put it in force: a file
// that was read, a change made through the API, or a rollback to an earlier one. It
// is known by its hash, which is recorded with every request and is of what the
// configuration means, without its secrets; and by its number, which counts such
// events in the store. Two versions with one hash route alike.
//
// Its [Content] is the text of a file and the changes that were made to it through
// the API. Secrets that stood in the text are not in it: the configuration takes
// them out before it gets here.
//
// A file is followed: what it says is in force once it has been read. A rollback and
// a change through the API put something else in force, which is [Held] against the
// file as it is then, by the hash of its bytes. The hold is kept beside the journal,
// outlives the process, needs no store, and ends when the file is changed.
//
// # Invariants
//
//   - Exactly one version is in force at a time; the one before is remembered whole,
//     so that it can be gone back to while the store is down.
//   - Recording never delays or refuses a change: a version that the store does not
//     take is kept and offered again, in order, until it does. One that is added
//     twice is there once, by its id.
//   - A file whose hash is that of the newest version is that version: a restart, and
//     a second replica that reads the same file, add nothing.
//   - Everything is bounded: the store by [MaxStored] and [MaxStoredBytes], of which
//     the oldest goes first; the memory by a few versions and [maxHeldBytes].
//
// # Ownership and concurrency
//
// A [History] has one goroutine, from Start to Close, which offers what the store has
// not taken. Its methods are safe for concurrent use. What it hands out is not changed.
//
// # What it does not do
//
// It reads no configuration and puts nothing in force: app does.
package versions
