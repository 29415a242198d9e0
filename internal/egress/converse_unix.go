//go:build unix

package egress

import (
	"io"
	"net"
	"syscall"

	"sluice/internal/socket"
)

// converse writes what is to be sent and waits for the first of the answer, in one
// go: whether the peer is still there is looked at in the same breath as the request
// is written, and before anything can have come nothing is read.
//
// It rests on how the runtime waits: the connection is made ready to be waited for
// first, so that what comes from then on ends the wait.
func (l *link) converse(p []byte) (int, error) {
	l.into = p
	err := l.raw.Read(l.step)
	l.into = nil
	out := l.out
	l.out = nil
	switch {
	case l.stale:
		l.abort()
		return 0, errStale
	case l.wrote < len(out) && l.failed == nil && err == nil:
		n, err := l.Conn.Write(out[l.wrote:]) // which waits for room
		if l.wrote += n; err != nil {
			return 0, err
		}
		return l.Conn.Read(p)
	case l.failed != nil:
		return 0, &net.OpError{Op: "write", Net: "tcp", Addr: l.RemoteAddr(), Err: l.failed}
	case err != nil:
		return 0, err
	case l.readErr != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: l.RemoteAddr(), Err: l.readErr}
	case l.got == 0:
		return 0, io.EOF
	}
	return l.got, nil
}

// next takes the next steps of a conversation. It is false to wait for the peer.
func (l *link) next(fd uintptr) bool {
	empty := false
	if l.used {
		l.used = false
		if _, err := socket.Read(fd, l.peek[:]); err != syscall.EAGAIN {
			l.stale = true // it has left, or speaks unasked
			return true
		}
		empty = true
	}
	if l.wrote < len(l.out) {
		n, err := socket.Write(fd, l.out)
		l.wrote = max(n, 0)
		if err != nil && err != syscall.EAGAIN {
			l.failed = err
		}
		if l.wrote < len(l.out) {
			return true
		}
		if empty { // so it still is, or what has come since ends the wait
			return false
		}
	}
	n, err := socket.Read(fd, l.into)
	if err == syscall.EAGAIN {
		return false
	}
	l.got, l.readErr = max(n, 0), err
	return true
}
