//go:build !linux

package proxy

import (
	"context"
	"net"
)

// watchPeer leaves a peer that vanished to the kernel's own retransmission limit.
func watchPeer(ctx context.Context, _ net.Conn) context.Context { return ctx }
