//go:build !unix

package egress

// converse writes what is to be sent and reads the first of the answer.
func (l *link) converse(p []byte) (int, error) {
	out := l.out
	l.out = nil
	n, err := l.Conn.Write(out)
	if l.wrote = n; err != nil {
		return 0, err
	}
	return l.Conn.Read(p)
}

// next is not called.
func (l *link) next(uintptr) bool { return true }
