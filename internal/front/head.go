package front

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"sluice/internal/wire"
)

// maxLength bounds what a plain head may declare, so that no sum overflows.
const maxLength = 1 << 62

// head is the head of a plain request.
type head struct {
	path   string
	host   string
	header http.Header // without Host
	length int64       // of the body
}

// headEnd is the end of the last line of a head, and the blank one.
var headEnd = []byte("\r\n\r\n")

// The first line of a plain request.
const (
	method  = http.MethodPost
	before  = method + " "
	version = " HTTP/1.1"
)

// parse reads a head that has come whole. It returns its length, and is not ok for
// one that is not plain, right or wrong. All its strings share one.
func parse(have []byte) (h head, n int, ok bool) {
	if !bytes.HasPrefix(have, []byte(before)) {
		return h, 0, false
	}
	end := bytes.Index(have, headEnd)
	if end < 0 {
		return h, 0, false
	}
	line, rest, _ := strings.Cut(string(have[:end]), "\r\n")
	h.path, ok = strings.CutSuffix(line[len(before):], version)
	if !ok || !plainPath(h.path) || !h.lines(rest) {
		return h, 0, false
	}
	return h, end + len(headEnd), h.host != "" && h.length >= 0
}

// lines reads the headers.
func (h *head) lines(rest string) bool {
	count := strings.Count(rest, "\r\n") + 1
	h.header, h.length = make(http.Header, count), -1
	values := make([]string, 0, count)
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !wire.ValidName(name) || !wire.ValidValue(value) {
			return false
		}
		name = http.CanonicalHeaderKey(name)
		switch name {
		case "Host":
			if h.host != "" || !plainHost(value) {
				return false
			}
			h.host = value
			continue
		case "Content-Length":
			var ok bool
			if h.length, ok = plainLength(value); !ok {
				return false
			}
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect", "Pragma", "Http2-Settings", "Keep-Alive", "Proxy-Connection":
			return false
		}
		if h.header[name] != nil {
			return false
		}
		values = append(values, value)
		h.header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return true
}

// plainPath reports whether a request's target is a path of which nothing is
// escaped, without a query.
func plainPath(s string) bool {
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '/' && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return len(s) > 0 && s[0] == '/'
}

// plainHost reports whether a host is a name or an address, with a port or without.
func plainHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '.' && c != '-' && c != ':' && c != '_' && c != '[' && c != ']' {
			return false
		}
	}
	return s != ""
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func plainLength(s string) (int64, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < maxLength
}
