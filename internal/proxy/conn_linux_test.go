package proxy

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// C7: the kernel is told to give up a peer that acknowledges nothing.
func TestC7DeadPeer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	watchPeer(server)
	raw, err := server.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if err != nil || got != int(deadPeer.Milliseconds()) || deadPeer.Seconds() > 60 {
			t.Errorf("got %d ms, %v", got, err)
		}
	})
}
