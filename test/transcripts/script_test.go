package transcripts

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sluice/internal/egress/egresstest"
	"sluice/internal/wire"
)

// part is what the upstream does next: send bytes, which are one write or one chunk,
// or one of the things that ⟨…⟩ names.
type part struct {
	data []byte
	wait time.Duration
	end  string // "close" or "reset"
}

// answer is one scripted answer.
type answer struct {
	status string   // the rest of the status line
	header []string // lines
	parts  []part
}

// parseAnswer reads an answer of a transcript: its status line, its headers, a blank
// line, and its body in parts.
func parseAnswer(text string) (*answer, error) {
	head, body, ok := strings.Cut(text, "\n\n")
	if !ok {
		return nil, fmt.Errorf("an answer has a status, headers, a blank line and a body")
	}
	lines := strings.Split(head, "\n")
	a := &answer{status: lines[0], header: lines[1:]}
	if len(a.status) < 3 {
		return nil, fmt.Errorf("the first line is a status such as 200 OK, not %q", a.status)
	}
	var err error
	a.parts, err = parseParts(strings.TrimSuffix(body, "\n"))
	return a, err
}

// parseParts reads a body: text, in which ⟨cut⟩ ends a chunk, ⟨cr⟩ is a carriage
// return, ⟨hex e7 bd⟩ are bytes, ⟨frame metadata {}⟩ and ⟨exception throttlingException
// {}⟩ are binary frames, ⟨wait 30s⟩ is silence, ⟨close⟩ and ⟨reset⟩ end the connection.
func parseParts(text string) (parts []part, err error) {
	var data []byte
	flush := func() {
		if len(data) > 0 {
			parts = append(parts, part{data: data})
			data = nil
		}
	}
	for {
		before, rest, found := strings.Cut(text, "⟨")
		data = append(data, before...)
		if !found {
			flush()
			return parts, nil
		}
		word, after, closed := strings.Cut(rest, "⟩")
		if !closed {
			return nil, fmt.Errorf("⟨%.20s is not closed", rest)
		}
		name, arg, _ := strings.Cut(word, " ")
		switch name {
		case "cut":
			flush()
		case "cr":
			data = append(data, '\r')
		case "hex":
			b, err := hex.DecodeString(strings.Join(strings.Fields(arg), ""))
			if err != nil {
				return nil, fmt.Errorf("⟨%s⟩: %w", word, err)
			}
			data = append(data, b...)
		case "frame", "exception":
			kind, payload, _ := strings.Cut(arg, " ")
			data = appendFrame(data, name, kind, payload)
			after = strings.TrimPrefix(after, "\n")
		case "wait":
			d, err := time.ParseDuration(arg)
			if err != nil {
				return nil, fmt.Errorf("⟨%s⟩: %w", word, err)
			}
			flush()
			parts = append(parts, part{wait: d})
		case "close", "reset":
			flush()
			parts = append(parts, part{end: name})
		default:
			return nil, fmt.Errorf("⟨%s⟩ is none of cut, cr, hex, frame, exception, wait, close and reset", word)
		}
		text = after
	}
}

// appendFrame appends a frame of Bedrock's as the service writes them: an event of a
// type, or an exception that ends the stream.
func appendFrame(dst []byte, what, kind, payload string) []byte {
	message, named := "event", ":event-type"
	if what == "exception" {
		message, named = what, ":exception-type"
	}
	return wire.AppendFrame(dst, []wire.FrameHeader{
		{Name: named, Value: kind}, {Name: ":content-type", Value: "application/json"}, {Name: ":message-type", Value: message},
	}, []byte(payload))
}

// escaped writes bytes as a transcript does.
func escaped(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\r':
			out.WriteString("⟨cr⟩")
		case r == utf8.RuneError && n == 1, r < ' ' && r != '\n' && r != '\t':
			fmt.Fprintf(&out, "⟨hex %02x⟩", b[0])
		default:
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}

// write says the answer on a connection. It reports whether the connection can carry
// another.
func (a *answer) write(c *egresstest.Conn) (again bool) {
	chunked := slices.ContainsFunc(a.header, func(h string) bool { return strings.EqualFold(h, "Transfer-Encoding: chunked") })
	size, ends := 0, true
	for _, p := range a.parts {
		size += len(p.data)
		ends = ends && p.end == ""
	}
	head := "HTTP/1.1 " + a.status + "\r\n" + strings.Join(append(slices.Clone(a.header), ""), "\r\n")
	if !chunked && ends {
		head += fmt.Sprintf("Content-Length: %d\r\n", size)
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		return false
	}
	for _, p := range a.parts {
		time.Sleep(p.wait)
		switch {
		case p.end == "reset":
			time.Sleep(time.Millisecond) // what was sent arrives
			c.Reset()
			return false
		case p.end == "close":
			return false
		case len(p.data) == 0:
			continue
		}
		data := p.data
		if chunked {
			data = fmt.Appendf(nil, "%x\r\n%s\r\n", len(p.data), p.data)
		}
		if _, err := c.Write(data); err != nil {
			return false
		}
		time.Sleep(time.Millisecond) // it is read before the next comes
	}
	if chunked {
		_, _ = io.WriteString(c, "0\r\n\r\n")
	}
	return ends
}

// upstream is every provider of a transcript: it says its answers in turn, whatever it
// is asked, and notes what it was sent.
type upstream struct {
	mu      sync.Mutex
	answers []*answer
	sent    []string
	wg      sync.WaitGroup
}

// serve accepts connections at a host until its listener is closed.
func (u *upstream) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		u.wg.Go(func() {
			defer c.Close()
			in := bufio.NewReader(c)
			for u.exchange(in, c.(*egresstest.Conn)) {
			}
		})
	}
}

// exchange answers one request.
func (u *upstream) exchange(in *bufio.Reader, c *egresstest.Conn) (again bool) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	u.mu.Lock()
	u.sent = append(u.sent, sentText(r, body))
	var a *answer
	if len(u.answers) > 0 {
		a, u.answers = u.answers[0], u.answers[1:]
	}
	u.mu.Unlock()
	return a != nil && a.write(c)
}

// quietRequest are headers of a request that no transcript tells.
var quietRequest = []string{"Content-Length", "Accept-Encoding", "User-Agent", "Connection"}

// sentText is a request as a transcript tells it.
func sentText(r *http.Request, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\nHost: %s\n", r.Method, r.URL.RequestURI(), r.Host)
	writeHeader(&b, r.Header, quietRequest)
	b.WriteString("\n" + escaped(body) + "\n")
	return b.String()
}

// writeHeader writes headers in order, without some.
func writeHeader(b *strings.Builder, h http.Header, without []string) {
	names := make([]string, 0, len(h))
	for name := range h {
		if !slices.Contains(without, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			fmt.Fprintf(b, "%s: %s\n", name, v)
		}
	}
}

// parseRequest reads a client's request of a transcript: method and path, headers, a
// blank line, the body.
func parseRequest(text string) (*http.Request, error) {
	head, body, _ := strings.Cut(text, "\n\n")
	body = strings.TrimSuffix(body, "\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	method, path, ok := strings.Cut(lines[0], " ")
	if !ok {
		return nil, fmt.Errorf("the first line is a method and a path, not %q", lines[0])
	}
	parts, err := parseParts(body)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, p := range parts {
		all = append(all, p.data...)
	}
	r, err := http.NewRequest(method, "http://gateway"+path, bytes.NewReader(all))
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r, nil
}
