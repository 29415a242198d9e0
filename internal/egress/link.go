package egress

import (
	"bufio"
	"errors"
	"math"
	"net"
	"syscall"
	"time"
)

// noBound is a link's left where nothing bounds what is read.
const noBound = math.MaxInt

// link is one connection of a Clear, at one request at a time.
type link struct {
	net.Conn
	r     *bufio.Reader
	left  int       // bytes that may still be read: of headers
	since time.Time // idle

	raw    syscall.RawConn // nil if there is none
	end    func()          // abort, made once
	peek   [1]byte
	silent bool

	// Of a conversation, see converse:
	step    func(fd uintptr) bool // next, made once
	out     []byte                // still to be sent, before anything is read
	used    bool                  // it has served another request: look whether the peer is still there
	stale   bool                  // it is not
	wrote   int                   // bytes of out
	failed  error                 // why no more was written
	into    []byte                // what is read
	got     int
	readErr error
}

// errStale is the error of a request that found its connection left by the peer.
// Another has to be taken.
var errStale = errors.New("the peer has left the connection")

func newLink(c net.Conn) *link {
	l := &link{Conn: c, left: noBound}
	l.end, l.step = l.abort, l.next
	l.r = bufio.NewReaderSize((*bounded)(l), clearBuffer)
	if tcp, ok := c.(syscall.Conn); ok {
		l.raw, _ = tcp.SyscallConn()
	}
	return l
}

// abort closes the connection. It may be called more than once and at any time.
func (l *link) abort() { _ = l.Close() }

// ask has b sent when the answer is read. It looks whether the peer is still there
// if this is not the connection's first request. REQUIRES: raw is not nil.
func (l *link) ask(b []byte, used bool) {
	l.out, l.used = b, used
	l.stale, l.wrote, l.failed, l.got, l.readErr = false, 0, nil, 0, nil
}

// quiet reports whether an idle connection is open and nothing has come on it: a
// request on one that the peer has left would be lost.
func (l *link) quiet() bool {
	if l.r.Buffered() > 0 {
		return false
	}
	if l.raw != nil {
		l.silent = false
		err := l.raw.Read(l.look)
		return err == nil && l.silent
	}
	if c, ok := l.Conn.(interface{ Quiet() bool }); ok {
		return c.Quiet()
	}
	return true
}

// bounded is a link as its reader reads it.
type bounded link

func (b *bounded) Read(p []byte) (int, error) {
	if b.left != noBound {
		if b.left <= 0 {
			return 0, ErrHeaderBound
		}
		p = p[:min(len(p), b.left)]
	}
	var n int
	var err error
	if b.out != nil {
		n, err = (*link)(b).converse(p)
	} else {
		n, err = b.Conn.Read(p)
	}
	if b.left != noBound {
		b.left -= n
	}
	return n, err
}
