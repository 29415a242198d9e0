package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// pair is two ends of a connection over loopback, the first wrapped.
func pair(t testing.TB) (wrapped, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	wrapped = Wrap(c)
	if _, ok := wrapped.(*Conn); ok != (runtime.GOOS == "linux") {
		t.Fatalf("Wrap made a %T", wrapped)
	}
	t.Cleanup(func() {
		wrapped.Close()
		other.Close()
	})
	return wrapped, other
}

// TestMoreThanTheKernelHolds writes and reads more than one call takes, and waits
// on both sides.
func TestMoreThanTheKernelHolds(t *testing.T) {
	wrapped, other := pair(t)
	want := make([]byte, 9<<20)
	for i := range want {
		want[i] = byte(i >> 9)
	}
	echoed := make(chan error, 1)
	go func() {
		got := make([]byte, len(want))
		_, err := io.ReadFull(other, got)
		if err == nil {
			_, err = other.Write(got)
		}
		echoed <- errors.Join(err, other.(*net.TCPConn).CloseWrite())
	}()
	if n, err := wrapped.Write(want); n != len(want) || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	got, err := io.ReadAll(wrapped)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, %v, want the %d that were sent", len(got), err, len(want))
	}
	if err := <-echoed; err != nil {
		t.Error(err)
	}
}

// TestErrorsAreThoseOfNet: net/http and the rooms above tell errors apart by what the
// net package makes of them.
func TestErrorsAreThoseOfNet(t *testing.T) {
	var p [8]byte
	for _, c := range []struct {
		name string
		op   string
		do   func(c, other net.Conn) error
		want error
	}{
		{"the peer has closed", "", func(c, other net.Conn) error {
			other.Close()
			_, err := c.Read(p[:])
			return err
		}, io.EOF},
		{"the peer has reset, read", "read", func(c, other net.Conn) error {
			_ = other.(*net.TCPConn).SetLinger(0)
			other.Close()
			_, err := c.Read(p[:])
			return err
		}, syscall.ECONNRESET},
		{"the read deadline passes", "read", func(c, _ net.Conn) error {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := c.Read(p[:])
			return err
		}, os.ErrDeadlineExceeded},
		{"the read deadline has passed", "read", func(c, other net.Conn) error {
			_, _ = other.Write(p[:])
			_ = c.SetReadDeadline(time.Unix(1, 0))
			_, err := c.Read(p[:])
			return err
		}, os.ErrDeadlineExceeded},
		{"the write deadline passes", "write", func(c, _ net.Conn) error {
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			n, err := c.Write(make([]byte, 64<<20))
			if n == 64<<20 {
				return errors.New("all of it was written")
			}
			return err
		}, os.ErrDeadlineExceeded},
		{"read when closed", "read", func(c, _ net.Conn) error {
			c.Close()
			_, err := c.Read(p[:])
			return err
		}, net.ErrClosed},
		{"write when closed", "write", func(c, _ net.Conn) error {
			c.Close()
			_, err := c.Write(p[:])
			return err
		}, net.ErrClosed},
		{"closed while it is read", "read", func(c, _ net.Conn) error {
			time.AfterFunc(time.Millisecond, func() { c.Close() })
			_, err := c.Read(p[:])
			return err
		}, net.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrapped, other := pair(t)
			plain, plainOther := pair(t)
			plain = unwrapped(plain)
			got, net := c.do(wrapped, other), c.do(plain, plainOther)
			if !errors.Is(got, c.want) || !errors.Is(net, c.want) {
				t.Fatalf("got %v, and %v of package net, want %v", got, net, c.want)
			}
			if op := opOf(got); op != c.op || op != opOf(net) || timeout(got) != timeout(net) {
				t.Errorf("got %#v, and %#v of package net", got, net)
			}
		})
	}
}

// unwrapped is what Wrap was given.
func unwrapped(c net.Conn) net.Conn {
	if e, ok := c.(interface{ inner() net.Conn }); ok {
		return e.inner()
	}
	return c
}

func opOf(err error) string {
	if e, ok := err.(*net.OpError); ok {
		return e.Op
	}
	return ""
}

func timeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// TestEmpty does not wait.
func TestEmpty(t *testing.T) {
	wrapped, _ := pair(t)
	if n, err := wrapped.Read(nil); n != 0 || err != nil {
		t.Errorf("Read = %d, %v", n, err)
	}
	if n, err := wrapped.Write(nil); n != 0 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
}

// TestAllocatesNothing: both are on the path of each chunk of a stream.
func TestAllocatesNothing(t *testing.T) {
	wrapped, other := pair(t)
	var p, q [64]byte
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := wrapped.Write(p[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(other, q[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Write(q[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := wrapped.Read(p[:]); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("a write and a read allocate %v times", allocs)
	}
}

// TestOthersAreLeftAsTheyAre wraps no connection of another kind.
func TestOthersAreLeftAsTheyAre(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if got := Wrap(a); got != a {
		t.Errorf("Wrap made a %T", got)
	}
}
