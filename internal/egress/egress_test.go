package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"sluice/test/bubble"
)

func TestCheck(t *testing.T) {
	const (
		public  = "public"
		private = "private"
		never   = "never"
	)
	for ip, want := range map[string]string{
		"8.8.8.8": public, "2606:4700::1111": public, "172.32.0.1": public, "100.128.0.1": public,
		"127.0.0.1": private, "127.8.8.8": private, "::1": private, "10.0.0.5": private, "172.16.0.1": private,
		"172.31.255.255": private, "192.168.1.1": private, "100.64.0.1": private, "fd12:3456::1": private, "fc00::1": private,
		"0.0.0.0": never, "0.1.2.3": never, "::": never, "169.254.169.254": never, "169.254.170.2": never,
		"100.100.100.200": never, "168.63.129.16": never, "192.0.0.192": never, "fd00:ec2::254": never, "fd20:ce::254": never,
		"fe80::1": never, "fe80::1%eth0": never, "fec0::1": never, "224.0.0.1": never, "ff02::1": never,
		"255.255.255.255": never, "240.0.0.1": never, "::ffff:10.0.0.1": never, "::ffff:169.254.169.254": never,
		"::ffff:8.8.8.8": never, "::8.8.8.8": never, "64:ff9b::a9fe:a9fe": never, "64:ff9b:1::1": never,
		"2002:a9fe:a9fe::1": never, "2001:0:1::1": never, "2001:db8::1": never, "198.51.100.7": never,
	} {
		addr := netip.MustParseAddr(ip)
		got := never
		switch {
		case Check(addr, false) == nil:
			got = public
		case Check(addr, true) == nil:
			got = private
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", ip, got, want)
		}
	}
	if err := Check(netip.Addr{}, true); !errors.Is(err, ErrForbidden) {
		t.Errorf("invalid address: got %v", err)
	}
}

func TestNamesPrivate(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "[::1]": true, "10.0.0.5": true, "api.localhost": true,
		"api.openai.com": false, "169.254.169.254": false, "8.8.8.8": false, "localhost.evil.example": false,
	} {
		if got := NamesPrivate(host); got != want {
			t.Errorf("%s: got %v, want %v", host, got, want)
		}
	}
}

// A name that resolves to loopback is refused by the address it resolved to,
// before a byte is sent.
func TestDialJudgesResolvedAddress(t *testing.T) {
	reached := false
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	url := "http://localhost:" + port

	d := New(Options{})
	closed := d.Transport(TransportOptions{})
	defer closed.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if _, err := closed.RoundTrip(req); !errors.Is(err, ErrForbidden) || reached {
		t.Errorf("got error %v, reached %v; want forbidden", err, reached)
	}
	open := d.Transport(TransportOptions{AllowPrivate: true})
	defer open.CloseIdleConnections()
	resp, err := open.RoundTrip(req)
	if err != nil || !reached {
		t.Fatalf("allowed: got %v, reached %v", err, reached)
	}
	resp.Body.Close()
}

func TestRedirectIsNotFollowed(t *testing.T) {
	srv := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/", http.StatusFound))
	defer srv.Close()
	tr := New(Options{}).Transport(TransportOptions{AllowPrivate: true})
	defer tr.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("got status %d, want the redirect itself", resp.StatusCode)
	}
}

func TestConnectDeadline(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := New(Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		start := time.Now()
		_, err := d.dial(t.Context(), "tcp", "hole:80", TransportOptions{Connect: 2 * time.Second})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		if _, err := d.dial(t.Context(), "tcp", "169.254.169.254:80", TransportOptions{AllowPrivate: true}); !errors.Is(err, ErrForbidden) {
			t.Errorf("injected dial to metadata: got %v", err)
		}
	})
}

// U3: the last address stands in for 30 s, and for the name that failed alone.
func TestLastGoodAddress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := New(Options{})
		ip := netip.MustParseAddr("198.41.0.4")
		d.remember("api.example", net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 443)))
		if _, ok := d.lastGood("other.example", "api.example"); ok {
			t.Error("another name's failure used the address")
		}
		time.Sleep(time.Hour)
		got, ok := d.lastGood("api.example", "api.example")
		if !ok || got != ip {
			t.Errorf("first failure: got %v %v", got, ok)
		}
		time.Sleep(LastGood)
		if _, ok := d.lastGood("api.example", "api.example"); !ok {
			t.Error("at 30 s: refused")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := d.lastGood("api.example", "api.example"); ok {
			t.Error("after 30 s: still used")
		}
		d.remember("api.example", net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 443)))
		if _, ok := d.lastGood("api.example", "api.example"); !ok {
			t.Error("after it resolved again: refused")
		}
	})
}
