//go:build unix

package egress

import "syscall"

// look asks the kernel whether there is anything to read, and takes nothing.
func (l *link) look(fd uintptr) bool {
	_, _, err := syscall.Recvfrom(int(fd), l.peek[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	l.silent = err == syscall.EAGAIN
	return true
}
