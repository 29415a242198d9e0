// Package byname finds what the cores have very many of by its name: requests, callers,
// accounts, lines of a queue.
//
// # Model
//
// An [Index] is open addressing with linear probing over slots of 16 bytes, a hash and
// a pointer. The name itself stays where it is, in what it names, and is compared only
// where all 64 bits of the hash are equal. So a look-up that finds reads one cache line
// of the index and then what it was asked for, and one that does not reads one line. A
// Go map, whose groups hold keys of 16 to 40 bytes, reads three to five: with a hundred
// thousand of each, which no cache holds, its look-ups were a sixth of a decision.
//
// # Invariants
//
//   - Every element is reached from the slot of its hash without passing a free one:
//     a removal moves those behind it up.
//   - At most three quarters of the slots are in use. When more would be, their number
//     doubles, from the hashes alone, in about ten nanoseconds an element.
//
// Hashes are seeded anew in every index, since callers choose some of the names. As
// with a map, nothing that is decided may depend on the order of All.
//
// # What it does not do
//
// It owns no element, and never shrinks: its memory is bounded by the most that there
// were at a time.
package byname
