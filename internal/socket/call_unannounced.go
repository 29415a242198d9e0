//go:build linux && !race

package socket

import (
	"syscall"
	"unsafe"
)

// Read reads from a descriptor that does not block. REQUIRES: p is not empty.
func Read(fd uintptr, p []byte) (int, error) { return call(syscall.SYS_READ, fd, p) }

// Write writes to a descriptor that does not block. REQUIRES: p is not empty.
func Write(fd uintptr, p []byte) (int, error) { return call(syscall.SYS_WRITE, fd, p) }

func call(trap, fd uintptr, p []byte) (int, error) {
	p = p[:min(len(p), Most)]
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
