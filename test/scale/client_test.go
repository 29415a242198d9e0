package scale

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"sluice/test/gateway"
)

// conn is one connection to the gateway.
type conn struct {
	net.Conn
	in  *bufio.Reader
	buf []byte
}

func dial(g *gateway.Gateway) (*conn, error) { return dialTo(g.Addr) }

func dialTo(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, gateway.Patience)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 4<<10), buf: make([]byte, 4<<10)}, nil
}

// send writes a request for a chat completion.
func (c *conn) send(key string, body [2]string) error {
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		key, len(body[0])+len(body[1]), body[0])
	if len(body[1]) < 16<<10 {
		_, err := io.WriteString(c, head+body[1])
		return err
	}
	_, err := io.WriteString(c, head)
	if err == nil {
		_, err = io.WriteString(c, body[1])
	}
	return err
}

// answer reads the head of an answer. What is not a 200 is an error, with the
// status in front.
func (c *conn) answer() (*http.Response, error) {
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		return nil, fmt.Errorf("%d: %s", r.StatusCode, b)
	}
	return r, nil
}

// stream sends a request and judges the stream that comes. first, if any, is told
// when its first bytes are there.
func (c *conn) stream(key string, s script, size int, first func()) error {
	if err := c.send(key, s.request(size)); err != nil {
		return err
	}
	r, err := c.answer()
	if err != nil {
		return err
	}
	return c.read(r, s, first)
}

func (c *conn) read(r *http.Response, s script, first func()) error {
	t := newTally()
	for {
		n, err := r.Body.Read(c.buf)
		if n > 0 && first != nil {
			first()
			first = nil
		}
		_, _ = t.Write(c.buf[:n])
		if err == io.EOF {
			return t.judge(s)
		}
		if err != nil {
			return fmt.Errorf("stream %s after %d events: %w", s.id, t.events, err)
		}
	}
}

// timed is how long f takes.
func timed(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}
