// Package prefetch tells the processor which memory will be read soon, so that it comes
// while something else is done.
//
// # Model
//
// A decision beside a hundred thousand requests that wait is made of steps to memory that
// no cache holds, and each takes as long as some hundred instructions. To read a word ahead
// makes those come together whose addresses are known, but waits for the last of them. A
// prefetch waits for nothing: it names an address, and is done. So what follows from what
// is asked for now can be asked for a step later, in the middle of other work; see
// [sluice/internal/engine] for what is asked for when.
//
// # Invariants
//
//   - Nothing depends on it but time. No value is read, no address faults, whether anything
//     is there or not, and an address keeps nothing alive: so it is of no matter whether
//     what is asked for has been forgotten, or is of others by now.
//   - It allocates nothing, and takes about two nanoseconds and half a one for each line of
//     64 bytes that is in a cache already.
//
// Go has no word for the instruction, so that it is a line of assembly, for amd64 and arm64;
// elsewhere nothing happens. It is the one package below the cores that may know addresses.
//
// # What it does not do
//
// It does not know what is worth it. Asked for too late it gains nothing, and too early, or
// more than some dozens of lines at once, it drives out what is in use.
package prefetch
