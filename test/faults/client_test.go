package faults

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw writes bytes to the data plane and returns the statuses of what it answers
// until it closes the connection.
func (g *gateway) raw(text string) (statuses []int) {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.addr)
	must(g.t, err)
	defer conn.Close()
	must(g.t, conn.SetDeadline(time.Now().Add(patience)))
	go func() { _, _ = io.WriteString(conn, text) }()
	in := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		statuses = append(statuses, resp.StatusCode)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// What two servers may read in two ways reaches nobody, and takes the connection
// with it. The corpus is that of package proxy.
func TestFault_C8_RawSocket(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := start(t, layout{backends: []backend{{name: "a", url: p.url}}})
	body := `{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"x"}]}`
	post := func(head, body string) string {
		return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + g.env[keyVariable(soft)] + "\r\n" + head + "\r\n" + body
	}
	sized := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	smuggled := post(sized, body)
	for name, c := range map[string]struct {
		text string
		want []int
	}{
		"pipelined, and the second with both": {
			post(sized, body) + post(sized+"Transfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), []int{200, 400},
		},
		"both, the encoding first": {post("Transfer-Encoding: chunked\r\n"+sized, "0\r\n\r\n"+smuggled), []int{400}},
		"encoding in HTTP/1.0":     {strings.Replace(post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), "HTTP/1.1", "HTTP/1.0", 1), []int{400}},
		"LF alone":                 {strings.ReplaceAll(post(sized, ""), "\r\n", "\n") + body, []int{400}},
		"LF after one header":      {post("X: y\n"+sized, body), []int{400}},
		"64 KiB head":              {post("X: "+strings.Repeat("y", 64<<10)+"\r\n"+sized, body), []int{431}},
		"sound, pipelined": {
			post(sized, body) + post("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)) + post(sized+"Connection: close\r\n", body), []int{200, 200, 200},
		},
	} {
		if got := g.raw(c.text); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	p.reached(t, 4)
}

// HTTP/2 without TLS is not spoken: a flood of resets ends with its first frame.
func TestFault_C9_RapidReset(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := start(t, layout{backends: []backend{{name: "a", url: p.url}}})
	var flood strings.Builder
	flood.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	frame := func(kind, flags byte, id uint32, payload string) {
		head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
		flood.Write(binary.BigEndian.AppendUint32(head, id))
		flood.WriteString(payload)
	}
	frame(4, 0, 0, "")
	for i := range uint32(10_000) {
		frame(1, 5, 2*i+1, "\x82\x84\x86") // HEADERS: GET /
		frame(3, 0, 2*i+1, "\x00\x00\x00\x08")
	}
	began := time.Now()
	if got := g.raw(flood.String()); len(got) != 1 || got[0] < 400 {
		t.Errorf("got %v", got)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the connection was closed after %v", took)
	}
	if r := g.do(ask{}); !r.whole() {
		t.Errorf("another client got %v", &r)
	}
	p.reached(t, 1)
}
