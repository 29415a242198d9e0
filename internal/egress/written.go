package egress

import (
	"net"
	"sync/atomic"
)

// counted is a connection that counts the writes on it.
type counted struct {
	net.Conn
	writes atomic.Int64
}

// Write counts a write when it begins, so that none that may have reached the
// peer is ever missing, and takes back one that failed whole.
func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		c.writes.Add(-1)
	}
	return n, err
}

// Writes is how many writes of a transport's connection have reached the network,
// or are about to; under TLS these are records. A request during which it has not
// risen was never sent, whatever net/http says of it: that a request was written
// means there that it is in a buffer. 0 for other connections.
func Writes(c net.Conn) int64 {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	if own, ok := c.(*counted); ok {
		return own.writes.Load()
	}
	return 0
}
