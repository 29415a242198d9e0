//go:build unix && (!linux || race)

package socket

import "syscall"

// Other systems have no calls but through their library, and the race detector
// takes from package syscall that what was read was written before.

// Read reads from a descriptor that does not block.
func Read(fd uintptr, p []byte) (int, error) { return call(syscall.Read, fd, p) }

// Write writes to a descriptor that does not block.
func Write(fd uintptr, p []byte) (int, error) { return call(syscall.Write, fd, p) }

func call(do func(int, []byte) (int, error), fd uintptr, p []byte) (int, error) {
	p = p[:min(len(p), Most)]
	for {
		n, err := do(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
