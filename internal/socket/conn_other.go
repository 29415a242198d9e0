//go:build !linux

package socket

import "net"

// Wrap returns the connection as it is.
func Wrap(c net.Conn) net.Conn { return c }
