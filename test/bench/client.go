package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// request is one request as it is sent, all but the address of the gateway.
type request struct {
	bytes  []byte
	events int // that a right answer has; 0 is an answer in one piece
}

// newRequest makes a chat request for a model, with a prompt of about size bytes
// in turns of at most 5 KB.
func newRequest(model, key string, size int) request {
	var body strings.Builder
	stream := model != modelWhole
	fmt.Fprintf(&body, `{"model":%q,"stream":%t,"max_tokens":512,"temperature":0.7,"messages":[{"role":"system","content":"You answer questions about water."}`, model, stream)
	role, seed := "user", uint32(1)
	for body.Len() < size-2 {
		n := min(size-2-body.Len()-40, 5<<10)
		fmt.Fprintf(&body, `,{"role":%q,"content":"`, role)
		prose(&body, max(n, 16), &seed)
		body.WriteString(`"}`)
		role = map[string]string{"user": "assistant", "assistant": "user"}[role]
	}
	body.WriteString("]}")
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json\r\nUser-Agent: bench/1\r\nContent-Length: %d\r\n\r\n", key, body.Len())
	r := request{bytes: []byte(head + body.String())}
	switch model { // the role, the chunks, the finish, the marker
	case modelBurst:
		r.events = burstChunks + 3
	case modelPaced:
		r.events = pacedChunks + 3
	}
	return r
}

// prose writes words that look like English, the same each time.
func prose(b *strings.Builder, n int, seed *uint32) {
	words := strings.Fields("the water of a river that comes down from hills in spring is let through gate by gate while keepers write what they have seen into books and measure how high it stands , mill wheels turn for flour or timber ; nobody counts drops but everyone knows Whether fields below are dry .")
	for end := b.Len() + n; b.Len() < end; {
		*seed = *seed*1664525 + 1013904223
		b.WriteString(words[*seed>>16%uint32(len(words))])
		if *seed>>28 == 0 {
			b.WriteString(`\n`)
		} else {
			b.WriteByte(' ')
		}
	}
}

// conn is one connection to a gateway, which is used for one request at a time.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReaderSize(c, 8<<10)}, nil
}

// send writes a request.
func (c *conn) send(r *request) error {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err := c.Write(r.bytes)
	return err
}

// do sends a request, reads its answer and judges it. first, if any, is called
// when the body begins.
func (c *conn) do(r *request, first func()) (events int, err error) {
	if err := c.send(r); err != nil {
		return 0, err
	}
	return c.receive(r, first)
}

// receive reads an answer and judges it.
func (c *conn) receive(r *request, first func()) (events int, err error) {
	size, err := c.head()
	if err != nil {
		return 0, err
	}
	if first != nil {
		first()
	}
	if size >= 0 {
		if _, err := c.r.Discard(size); err != nil {
			return 0, err
		}
		if r.events > 0 || size < 500 {
			return 0, fmt.Errorf("the answer is in one piece of %d bytes", size)
		}
		return 0, nil
	}
	t := tally{}
	if err := c.chunks(&t); err != nil {
		return t.events, err
	}
	if t.events != r.events || !t.done() {
		return t.events, fmt.Errorf("the stream had %d events, want %d, and ended with %q", t.events, r.events, t.tail())
	}
	return t.events, nil
}

// head reads an answer's head; size is -1 where its body comes in chunks.
func (c *conn) head() (size int, err error) {
	size = -2
	for n := 0; ; n++ {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case n == 0:
			if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
				return 0, c.refused(line)
			}
		case len(line) == 0:
			if size == -2 {
				return 0, fmt.Errorf("the answer has no length")
			}
			return size, nil
		}
		if v, ok := headerValue(line, "content-length"); ok {
			size, err = strconv.Atoi(string(v))
			if err != nil {
				return 0, err
			}
		}
		if v, ok := headerValue(line, "transfer-encoding"); ok && string(v) == "chunked" {
			size = -1
		}
	}
}

// refused is the error of an answer that is no 200.
func (c *conn) refused(status []byte) error {
	status = bytes.Clone(status)
	rest, _ := c.r.Peek(c.r.Buffered())
	return fmt.Errorf("%s: %s", status, rest)
}

// chunks reads a chunked body.
func (c *conn) chunks(t *tally) error {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimRight(line, "\r\n")), 16, 32)
		if err != nil {
			return err
		}
		for left := int(n); left > 0; {
			if _, err := c.r.Peek(1); err != nil {
				return err
			}
			part, _ := c.r.Peek(min(left, c.r.Buffered()))
			t.add(part)
			left -= len(part)
			_, _ = c.r.Discard(len(part)) // it is there
		}
		if _, err := c.r.Discard(2); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// tally counts the events of a stream, however they are cut.
type tally struct {
	events int
	last   [16]byte // the last n bytes
	n      int
}

func (t *tally) tail() []byte { return t.last[:t.n] }

func (t *tally) add(p []byte) {
	if t.n > 0 && t.last[t.n-1] == '\n' && p[0] == '\n' {
		t.events++
	}
	t.events += bytes.Count(p, []byte("\n\n"))
	if len(p) < len(t.last) {
		p = append(append(make([]byte, 0, 2*len(t.last)), t.tail()...), p...)
	}
	t.n = copy(t.last[:], p[max(0, len(p)-len(t.last)):])
}

func (t *tally) done() bool { return bytes.HasSuffix(t.tail(), []byte("data: [DONE]\n\n")) }
