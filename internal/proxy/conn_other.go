//go:build !linux

package proxy

import "net"

// watchPeer leaves a peer that vanished to the kernel's own retransmission limit.
func watchPeer(net.Conn) {}
