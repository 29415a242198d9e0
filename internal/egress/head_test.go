package egress

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzHead proves that what is taken for a plain head is one to net/http, and the
// same.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\nx-request-id:  a b \r\n\r\nhello",
		"HTTP/1.1 429\r\nContent-Length: 0\r\nretry-after: 1\r\n\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "HTTP/1.1 200 OK\r\nX: \r\nContent-Length: 1\r\n\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, n, ok := plainHead([]byte(text))
		if !ok {
			return
		}
		r := bufio.NewReader(strings.NewReader(text))
		want, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%q: net/http says %v", text, err)
		}
		if got.status != want.StatusCode || got.length != want.ContentLength || got.chunked != (len(want.TransferEncoding) > 0) || want.Close || len(want.Trailer) > 0 {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
		if d := cmp.Diff(want.Header, got.header); d != "" {
			t.Errorf("%q: headers (-want +got):\n%s", text, d)
		}
		if len(text)-n != r.Buffered() {
			t.Errorf("%q: got a head of %d bytes, want %d", text, n, len(text)-r.Buffered())
		}
	})
}

func TestPlainHead(t *testing.T) {
	const plain = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Sun, 29 Nov 2026 12:00:00 GMT\r\nX-Request-Id: r\r\n"
	for _, framing := range []string{"Content-Length: 5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"} {
		if _, n, ok := plainHead([]byte(plain + framing)); !ok || n != len(plain+framing) {
			t.Errorf("%q is not plain", plain+framing)
		}
	}
	if _, _, ok := plainHead([]byte(plain)); ok {
		t.Error("half a head is plain")
	}
	h, _, _ := plainHead([]byte(plain + "Content-Length: 5\r\n\r\n"))
	h.header.Add("Date", "x")
	if h.header.Get("X-Request-Id") != "r" {
		t.Error("a value that was added is another header's")
	}
}
