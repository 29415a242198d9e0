package front

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plain are heads that are served here, with the bodies behind them.
var plain = []string{
	"POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
	"POST /v1/chat HTTP/1.1\r\nhost: 127.0.0.1:80\r\ncontent-length:005\r\nAccept: */*\r\nuser-agent: \ta b\xc3\xa9 \r\nX-Empty:\r\n\r\nhello",
	"POST /v1/chat HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n",
}

// other are heads that are not, right or wrong.
var other = map[string]string{
	"another method":          "GET /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"a blank line before":     "\r\nPOST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.0":                "POST /v1/chat HTTP/1.0\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"a query":                 "POST /v1/chat?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"an escape":               "POST /v1/%63hat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"a whole URL":             "POST http://x/v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"two spaces":              "POST  /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"no host":                 "POST /v1/chat HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
	"an empty host":           "POST /v1/chat HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n",
	"two hosts":               "POST /v1/chat HTTP/1.1\r\nHost: x\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"a host that is none":     "POST /v1/chat HTTP/1.1\r\nHost: x/y\r\nContent-Length: 0\r\n\r\n",
	"no length":               "POST /v1/chat HTTP/1.1\r\nHost: x\r\n\r\n",
	"two lengths":             "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"a length in a list":      "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello",
	"a length with a sign":    "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
	"a length beyond all":     "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n",
	"a header twice":          "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nA: b\r\na: c\r\n\r\n",
	"a space before a colon":  "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length : 0\r\nContent-Length: 0\r\n\r\n",
	"no colon":                "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nA\r\n\r\n",
	"a folded header":         "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nA: b\r\n c\r\n\r\n",
	"LF alone":                "POST /v1/chat HTTP/1.1\r\nHost: x\nContent-Length: 0\r\n\r\n",
	"CR alone":                "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nA: b\rc\r\n\r\n",
	"a NUL":                   "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nA: \x00\r\n\r\n",
	"an encoding":             "POST /v1/chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"an encoding and length":  "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"an expectation":          "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
	"a connection that ends":  "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	"headers of a connection": "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: keep-alive, x\r\nX: y\r\n\r\n",
	"an upgrade":              "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nUpgrade: h2c\r\n\r\n",
	"a head that goes on":     "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n",
}

func TestParse(t *testing.T) {
	for _, s := range plain {
		if _, _, ok := parse([]byte(s)); !ok {
			t.Errorf("not plain: %q", s)
		}
		agrees(t, []byte(s))
	}
	for name, s := range other {
		if h, _, ok := parse([]byte(s)); ok {
			t.Errorf("%s: plain as %+v", name, h)
		}
	}
}

// agrees holds parse against net/http: what is plain here is to be understood there in
// the same way, to the byte at which the body begins.
func agrees(t *testing.T, have []byte) {
	t.Helper()
	h, n, ok := parse(have)
	if !ok {
		return
	}
	from := bytes.NewReader(have)
	r := bufio.NewReaderSize(from, len(have)+16)
	req, err := http.ReadRequest(r)
	if err != nil {
		t.Fatalf("%q is plain, and net/http says %v", have, err)
	}
	if got, want := h.path, req.RequestURI; got != want || req.URL.Path != want || req.Method != http.MethodPost || !req.ProtoAtLeast(1, 1) {
		t.Errorf("%q: path %q, want %q", have, got, want)
	}
	if h.host != req.Host || h.length != req.ContentLength || req.Close || len(req.TransferEncoding) > 0 {
		t.Errorf("%q: %q and %d bytes, want %q and %d", have, h.host, h.length, req.Host, req.ContentLength)
	}
	if d := cmp.Diff(req.Header, h.header); d != "" {
		t.Errorf("%q: headers (-net/http +here)\n%s", have, d)
	}
	rest, _ := io.ReadAll(r)
	if !bytes.Equal(rest, have[n:]) {
		t.Errorf("%q: body from %d, want from %d", have, n, len(have)-len(rest))
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range plain {
		f.Add([]byte(s))
	}
	for _, s := range other {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, have []byte) { agrees(t, have) })
}
