package front

import "time"

// listener reads a byte of a connection that the kernel does not watch, beside the
// handler, to know when the client leaves.
type listener struct {
	heard [1]byte
	n     int
	done  chan struct{} // closed when it has ended
}

// aloud is a time that has passed.
var aloud = time.Unix(1, 0)

// listen begins to look whether the client leaves, when the request has been read.
func (c *conn) listen() {
	if c.watched != 0 || c.ears != nil || c.w > c.r { // what follows was sent before it can have left
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	l := &listener{done: make(chan struct{})}
	c.ears = l
	go func() {
		defer close(l.done)
		var err error
		if l.n, err = c.Conn.Read(l.heard[:]); err == nil {
			return
		}
		if timeout, ok := err.(interface{ Timeout() bool }); !ok || !timeout.Timeout() {
			c.leave()
		}
	}()
}

// hush ends the listening. What was heard comes first of what is read.
func (c *conn) hush() {
	l := c.ears
	if l == nil {
		return
	}
	c.ears = nil
	_ = c.SetReadDeadline(aloud)
	<-l.done
	_ = c.SetReadDeadline(time.Time{})
	if l.n > 0 {
		c.buf[c.w] = l.heard[0]
		c.w++
		c.half = true
	}
}
