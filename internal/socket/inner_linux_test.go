package socket

import "net"

func (c *Conn) inner() net.Conn { return c.Conn }
