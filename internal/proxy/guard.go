package proxy

import (
	"bytes"
	"net"
	"strconv"
	"time"
)

// guard is a client's connection. It follows the framing of the requests on it
// and makes malformed what net/http would mend and another server might read in
// another way (C8): a head with a transfer encoding and a length, or with a
// transfer encoding in HTTP/1.0, and lines that end in LF alone. net/http answers
// 400 in its turn and closes; of what follows nothing is read.
//
// Bodies are skipped by their length, so that the cost is that of the heads. One
// goroutine reads at a time. Connections whose requests are as plain as nearly all
// are never come here: package front serves them.
type guard struct {
	net.Conn
	until time.Time // the write deadline in force; zero for none

	at      part
	line    [64]byte // how the line begins
	tail    [9]byte  // how it ends so far
	long    int      // its bytes
	rest    int64    // bytes of a body, or of a chunk and its line end, still to come
	size    int64    // of the body that the head declares; -1 if it does not
	encoded bool     // it declares a transfer encoding
	old     bool     // it is of HTTP/1.0
	refused bool
	poison  []byte // what is read in place of the connection
}

// part is what of a request comes next.
type part uint8

const (
	atRequest  part = iota // the first line of a head
	atHeader               // another line of it
	atBody                 // rest bytes of a body
	atSize                 // the line of a chunk's size
	atChunk                // rest bytes of a chunk
	atTrailers             // a line after the last chunk
)

// CloseWrite lets net/http say its last word before it closes.
func (g *guard) CloseWrite() error {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// SetWriteDeadline sets the write deadline.
func (g *guard) SetWriteDeadline(t time.Time) error {
	g.until = t
	return g.Conn.SetWriteDeadline(t)
}

// WriteUntil is the write deadline that is in force, zero for none.
func (g *guard) WriteUntil() time.Time { return g.until }

// Whole reports whether the request that is served has come to its end, so that to
// read it cannot wait. It is for who reads the request, while nobody else does.
func (g *guard) Whole() bool { return g.at == atRequest && !g.refused }

// Read reads from the connection, up to what it refuses.
func (g *guard) Read(p []byte) (int, error) {
	if g.refused {
		return g.after(p)
	}
	n, err := g.Conn.Read(p)
	for i := 0; i < n; {
		if g.at == atBody || g.at == atChunk {
			i += g.skip(n - i)
			continue
		}
		end := bytes.IndexByte(p[i:n], '\n')
		if end < 0 {
			g.take(p[i:n])
			break
		}
		g.take(p[i : i+end])
		if !g.ended() {
			return g.refuse(p, i+end), nil
		}
		g.long = 0
		i += end + 1
	}
	return n, err
}

// after reads what was put in place of the connection. Of what comes behind that
// nothing is handed out, but its end: that the client is still there is what the
// requests before go on for.
func (g *guard) after(p []byte) (int, error) {
	if n := copy(p, g.poison); n > 0 || len(p) == 0 {
		g.poison = g.poison[n:]
		return n, nil
	}
	for {
		if _, err := g.Conn.Read(p); err != nil {
			return 0, err
		}
	}
}

// skip passes over at most n bytes of a body.
func (g *guard) skip(n int) int {
	passed := min(g.rest, int64(n))
	if g.rest -= passed; g.rest == 0 {
		if g.at == atBody {
			g.at = atRequest
		} else {
			g.at = atSize
		}
	}
	return int(passed)
}

// take notes a part of the line.
func (g *guard) take(b []byte) {
	if g.long < len(g.line) {
		copy(g.line[g.long:], b)
	}
	g.long += len(b)
	if len(b) >= len(g.tail) {
		copy(g.tail[:], b[len(b)-len(g.tail):])
		return
	}
	copy(g.tail[:], g.tail[len(b):])
	copy(g.tail[len(g.tail)-len(b):], b)
}

// refuse writes what no head has over the line end at p[i], and returns how much
// of p is to be read. The line stays as it is: were it changed, net/http might
// drop it with the error in it.
func (g *guard) refuse(p []byte, i int) int {
	g.refused, g.poison = true, []byte("\n\x00\r\n\r\n")
	if g.long == 0 { // LF would end the head
		g.poison = g.poison[1:]
	}
	n := copy(p[i:], g.poison)
	g.poison = g.poison[n:]
	return i + n
}

// ended takes the line, which is whole. It reports whether reading goes on.
func (g *guard) ended() bool {
	if g.long == 0 || g.tail[len(g.tail)-1] != '\r' {
		return false
	}
	blank := g.long == 1
	switch g.at {
	case atRequest:
		g.size, g.encoded, g.old = -1, false, string(g.tail[:]) == "HTTP/1.0\r"
		if !blank { // else net/http refuses it
			g.at = atHeader
		}
	case atHeader:
		if !blank {
			return g.header()
		}
		g.body()
	case atSize:
		return g.chunk()
	case atTrailers:
		if blank {
			g.at = atRequest
		}
	}
	return true
}

// body is what follows a head.
func (g *guard) body() {
	switch {
	case g.encoded:
		g.at = atSize
	case g.size > 0:
		g.at, g.rest = atBody, g.size
	default:
		g.at = atRequest
	}
}

const (
	encodingName = "transfer-encoding:"
	lengthName   = "content-length:"
)

// header takes a line of a head. It reports whether the head may still be sound.
func (g *guard) header() bool {
	begins := g.line[:min(g.long, len(g.line))]
	if hasName(begins, encodingName) {
		g.encoded = true
	} else if hasName(begins, lengthName) {
		// A length that does not fit here, or is written twice, is one that two
		// servers may read in two ways.
		v := bytes.Trim(begins[len(lengthName):], " \t\r")
		n, err := strconv.ParseUint(string(v), 10, 62)
		if err != nil || g.long > len(g.line) || g.size >= 0 && g.size != int64(n) {
			return false
		}
		g.size = int64(n)
	}
	return !g.encoded || g.size < 0 && !g.old
}

// hasName reports whether a line begins with a name, which is in lower case.
func hasName(line []byte, name string) bool {
	if len(line) < len(name) {
		return false
	}
	for i := range len(name) {
		c := line[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// chunk takes the line of a chunk's size.
func (g *guard) chunk() bool {
	digits, _, _ := bytes.Cut(g.line[:min(g.long, len(g.line))], []byte{';'})
	n, err := strconv.ParseUint(string(bytes.Trim(digits, " \t\r")), 16, 62)
	switch {
	case err != nil:
		return false
	case n == 0:
		g.at = atTrailers
	default:
		g.at, g.rest = atChunk, int64(n)+2
	}
	return true
}
