package egress

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
)

// What was written to a connection is known, in the clear and under TLS, on a new
// one and on one that is used again.
func TestWrites(t *testing.T) {
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	clear, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer clear.Close()
	defer secure.Close()
	tr := New(Options{}).Transport(TransportOptions{AllowPrivate: true})
	defer tr.CloseIdleConnections()
	tr.TLSClientConfig.RootCAs = secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for _, url := range []string{clear.URL, clear.URL, secure.URL, secure.URL} {
		var on net.Conn
		var before int64
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			on, before = i.Conn, Writes(i.Conn)
		}})
		req, _ := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader("{}"))
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		after := Writes(on)
		if after <= before {
			t.Errorf("%s: %d writes before, %d after", url, before, after)
		}
		if strings.HasPrefix(url, "http:") {
			on.Close()
			if _, err := on.Write([]byte("x")); err == nil || Writes(on) != after {
				t.Errorf("a write that failed counts: %v, %d after %d", err, Writes(on), after)
			}
		}
	}
	if one, other := net.Pipe(); Writes(one) != 0 || Writes(other) != 0 {
		t.Error("the writes of a stranger are known")
	}
}
