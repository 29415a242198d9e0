package egress

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"sluice/internal/wire"
)

// ClearRequest is one request. Nothing of it is changed.
type ClearRequest struct {
	Method string
	Host   string      // as the Host header has it; the address is it with port 80 if it has none
	Path   string      // escaped, with the query if there is one
	Header http.Header // canonical names; no Host, Content-Length or connection header
	Body   [][]byte    // in pieces
	Cut    *Cut        // ends the request too; may be nil
	// Sent, if it is not nil, is set before the first byte of it is written.
	Sent *atomic.Bool
}

func (r *ClearRequest) size() (n int) {
	for _, p := range r.Body {
		n += len(p)
	}
	return n
}

func (r *ClearRequest) address() string {
	if _, _, err := net.SplitHostPort(r.Host); err == nil {
		return r.Host
	}
	host := r.Host
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	return net.JoinHostPort(host, "80")
}

// appendHead writes the request line and the headers.
func appendHead(b []byte, r *ClearRequest, size int) ([]byte, error) {
	b = append(append(append(b, r.Method...), ' '), r.Path...)
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), r.Host...), "\r\nContent-Length: "...)
	b = append(strconv.AppendInt(b, int64(size), 10), "\r\n"...)
	for name, values := range r.Header {
		for _, v := range values {
			if !wire.ValidName(name) || !wire.ValidValue(v) {
				return b, fmt.Errorf("header %q has a name or a value that HTTP does not allow", name)
			}
			b = append(append(append(append(b, name...), ": "...), v...), "\r\n"...)
		}
	}
	return append(b, "\r\n"...), nil
}
