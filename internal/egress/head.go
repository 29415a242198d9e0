package egress

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sluice/internal/wire"
)

// answerHead is the head of an answer.
type answerHead struct {
	status  int
	header  http.Header
	length  int64 // declared; -1 if not
	chunked bool
	last    bool // the peer closes the connection after it
}

// readHead reads the head of an answer, interim ones included. http.ReadResponse
// judges it, but where it is as plain as nearly all are.
func readHead(r *bufio.Reader) (answerHead, error) {
	switch _, err := r.Peek(1); err {
	case nil:
		have, _ := r.Peek(r.Buffered())
		if h, n, ok := plainHead(have); ok {
			_, _ = r.Discard(n) // it is there
			return h, nil
		}
	case io.EOF:
		return answerHead{}, io.ErrUnexpectedEOF
	default:
		return answerHead{}, err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return answerHead{}, err
	}
	return answerHead{resp.StatusCode, resp.Header, resp.ContentLength, len(resp.TransferEncoding) > 0, resp.Close}, nil
}

// headEnd is the end of the last line of a head, and the blank one.
var headEnd = []byte("\r\n\r\n")

// plainHead parses a head that has come whole, of which nothing is for a second
// opinion: HTTP/1.1 and an answer with a body, lines that end in CRLF, no header
// twice, one framing, and nothing about the connection. It returns its length, and
// is not ok for any other, right or wrong. All its strings share one.
func plainHead(have []byte) (h answerHead, n int, ok bool) {
	end := bytes.Index(have, headEnd)
	if end < 0 {
		return h, 0, false
	}
	text := string(have[:end])
	line, rest, _ := strings.Cut(text, "\r\n")
	if h.status, ok = plainStatus(line); !ok {
		return h, 0, false
	}
	lines := strings.Count(rest, "\r\n") + 1
	h.header, h.length = make(http.Header, lines), -1
	values := make([]string, 0, lines)
	for rest != "" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !wire.ValidName(name) || !wire.ValidValue(value) {
			return h, 0, false
		}
		name = http.CanonicalHeaderKey(name)
		switch name {
		case "Connection", "Trailer", "Pragma", "Upgrade":
			return h, 0, false
		case "Transfer-Encoding":
			if value != "chunked" || h.chunked {
				return h, 0, false
			}
			h.chunked = true
			continue // it is of this connection alone
		case "Content-Length":
			if h.length, ok = plainLength(value); !ok {
				return h, 0, false
			}
		}
		if h.header[name] != nil {
			return h, 0, false
		}
		values = append(values, value)
		h.header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return h, end + len(headEnd), h.chunked == (h.length < 0)
}

// plainStatus reads the first line.
func plainStatus(line string) (status int, ok bool) {
	const version = "HTTP/1.1 "
	code, found := strings.CutPrefix(line, version)
	if !found || len(code) < 3 || len(code) > 3 && code[3] != ' ' || !wire.ValidValue(code) {
		return 0, false
	}
	for _, c := range []byte(code[:3]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		status = 10*status + int(c-'0')
	}
	return status, status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

func plainLength(value string) (int64, bool) {
	for _, c := range []byte(value) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}
