//go:build amd64 || arm64

package prefetch

// lines asks for every cache line that holds one of n bytes from an address on, and for
// the first if n is 0.
func lines(at, n uintptr)
