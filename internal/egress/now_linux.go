package egress

import "golang.org/x/sys/unix"

// writeNow writes as much as the kernel takes at once and returns how much that was.
// What went wrong is found by who writes the rest.
func (l *link) writeNow(pieces [][]byte) (n int) {
	if l.raw == nil {
		return 0
	}
	_ = l.raw.Write(func(fd uintptr) bool {
		n, _ = unix.Writev(int(fd), pieces)
		return true
	})
	return max(n, 0)
}
