package egress

import (
	"bufio"
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
	peek   [1]byte
	silent bool
}

func newLink(c net.Conn) *link {
	l := &link{Conn: c, left: noBound}
	l.r = bufio.NewReaderSize((*bounded)(l), clearBuffer)
	if tcp, ok := c.(*net.TCPConn); ok {
		l.raw, _ = tcp.SyscallConn()
	}
	return l
}

// abort closes the connection. It may be called more than once and at any time.
func (l *link) abort() { _ = l.Close() }

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
	n, err := b.Conn.Read(p)
	if b.left != noBound {
		b.left -= n
	}
	return n, err
}

// validName and validValue are RFC 9110 §5: what else stands in a header could be
// read as another one.
func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || separator[c] {
			return false
		}
	}
	return s != ""
}

var separator = [128]bool{
	'(': true, ')': true, '<': true, '>': true, '@': true, ',': true, ';': true, ':': true, '\\': true, '"': true,
	'/': true, '[': true, ']': true, '?': true, '=': true, '{': true, '}': true,
}

func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
