package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchPeer lets the kernel end a connection whose peer has acknowledged nothing
// for deadPeer: one that vanished without a word (C7). A keep-alive probe would
// not tell, since it is not sent while data waits to be acknowledged, and a
// write deadline would not either, until the kernel's buffer is full.
func watchPeer(c net.Conn) {
	if tcp, ok := c.(syscall.Conn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) {
				unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadPeer.Milliseconds()))
			})
		}
	}
}
