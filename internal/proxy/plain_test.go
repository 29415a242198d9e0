package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/egress/egresstest"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
)

// chatOf is a request as it is written on a connection: headers that are added end in
// CRLF.
func chatOf(added, body string) string {
	return chatAs("Content-Length: "+fmt.Sprint(len(body))+"\r\n"+added, body)
}

// chatAs is one that declares its length, or not, by itself.
func chatAs(added, body string) string {
	return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + clientSecret + "\r\n" + added + "\r\n" + body
}

const (
	askBody    = `{"model":"m","messages":[]}`
	streamBody = `{"model":"m","messages":[],"stream":true}`
)

// conversations are what clients may say on one connection.
func conversations() map[string]string {
	ask := chatOf("", askBody)
	said := map[string]string{
		"one": ask, "three": ask + chatOf("", streamBody) + ask, "a stream": chatOf("", streamBody), "other, then one": chatOf("Pragma: x\r\n", askBody) + ask,
		"one, then another": ask + "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" + ask, "no key": strings.Replace(ask, clientSecret, "wrong", 1) + ask,
		"no JSON": chatOf("", "{") + ask, "no body": chatOf("", "") + ask, "an unknown path": strings.Replace(ask, "/chat", "/chut", 1) + ask,
		"a body too large": chatAs("Content-Length: 33554433\r\n", "xyz"), "a large body unread": strings.Replace(chatOf("", strings.Repeat("x", 10_000)), clientSecret, "wrong", 1) + ask,
		"a larger body unread": strings.Replace(chatOf("", strings.Repeat("x", 300_000)), clientSecret, "wrong", 1) + ask,
		"an encoded body":      chatOf("Content-Encoding: gzip\r\n", askBody) + ask, "a body that goes on": ask + "xyz" + ask, "a blank line between": ask + "\r\n" + ask,
		"a body that is short": chatAs("Content-Length: 40\r\n", askBody), "a head that is short": ask + ask[:100], "HTTP/1.0": strings.Replace(ask, "1.1", "1.0", 1),
		"1.0 kept": strings.Replace(chatOf("Connection: keep-alive\r\n", askBody), "1.1", "1.0", 1) + ask, "closed": chatOf("Connection: close\r\n", askBody) + ask,
		"kept": chatOf("Connection: keep-alive\r\n", askBody) + ask, "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "expects": chatOf("Expect: 100-continue\r\n", askBody) + ask,
		"expects, no key": strings.Replace(chatOf("Expect: 100-continue\r\n", askBody), clientSecret, "wrong", 1), "upgrade": chatOf("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", askBody) + ask,
		"a blank line before": "\r\n" + ask, "dropped": chatOf("Sluice-Class: x\r\n", askBody) + ask, "Host missing": strings.Replace(ask, "Host: x\r\n", "", 1), "chunks": chatAs("Transfer-Encoding: chunked\r\n", "5\r\n{\"mod\r\n3\r\nel\"\r\n0\r\n\r\n") + ask,
	}
	for _, n := range []int{4094, 4095, 4096, 4097, 8000, 32 << 10, 64 << 10} {
		said[fmt.Sprintf("a head of %d", n)] = chatOf("X: "+strings.Repeat("x", n-len(chatOf("X: \r\n", ""))+1)+"\r\n", askBody) + ask
		said[fmt.Sprintf("head and body of %d", n)] = chatOf("", strings.Repeat(" ", n-len(chatOf("", ""))-len(fmt.Sprint(n))+1-len(askBody))+askBody) + ask
	}
	for _, header := range []string{
		"Content-Length: +0", "Content-Length:  27", "Content-Length: 027", "Content-Length: 27, 27", "Content-Length: 99999999999999999999", "Content-Length: ", "Content-Length: -1", "Content-Length: 0x1b", "Content-Length: 2_7",
		"Content-Length: 27\r\nContent-Length: 27", "Content-Length: 27\r\nContent-Length: 28", "Content-Length: 27\r\ncontent-length: 5", "Content-Length: 27\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 27",
		"Transfer-Encoding: identity\r\nContent-Length: 27", "Transfer-Encoding:\r\nContent-Length: 27", "Transfer-Encoding\r\nContent-Length: 27", "Content-Length: 27\r\nTransfer-Encoding : chunked", "Content_Length: 5\r\nContent-Length: 27", "Content-Length : 5\r\nContent-Length: 27",
	} {
		said["framed by "+header] = chatAs(header+"\r\n", askBody) + ask
	}
	for _, header := range []string{
		"A: b\nC: d", "A: b\rC: d", "A: b\r\n c", "A: b\r\n\tc", "\tA: b", " A: b", "A : b", ": b", "A", "A:", "A: ", "A: \x00", "A: \x7f", "A: \x01", "A: b\tc", "A: é", "é: b", "A: \xff\xfe", "A\x00: b", "a: 1\r\nA: 2", "Host: x", "host: y", "A:: b", "A b: c", "A(: b",
		"Content-Type: text/plain", "X-Forwarded-For: 1", "Trailer: A", "Te: trailers", "Keep-Alive: 5", "Proxy-Connection: keep-alive", "Connection: keep-alive, A", "Connection: a", "Connection:", "Pragma: no-cache", "Expect: x", "Cookie: a=b", "Accept-Encoding: gzip", "Range: bytes=0-1", "If-Match: x", "Date: x", "Method: GET", "X-HTTP-Method-Override: GET",
		strings.Repeat("A: b\r\n", 100) + "A: c", func() (s string) {
			for i := range 200 {
				s += fmt.Sprintf("X-%d: y\r\n", i)
			}
			return s + "Z: z"
		}(),
	} {
		said["with "+header[:min(len(header), 40)]] = chatOf(header+"\r\n", askBody) + ask
	}
	for _, line := range []string{
		"POST http://x/v1/chat/completions HTTP/1.1", "POST * HTTP/1.1", "POST //v1/chat/completions HTTP/1.1", "POST /v1/../v1/chat/completions HTTP/1.1", "POST /v1/chat/completions/ HTTP/1.1", "POST /v1/chat%2fcompletions HTTP/1.1", "POST /v1/%63hat/completions HTTP/1.1",
		"POST /v1/chat/completions? HTTP/1.1", "POST /v1/chat/completions?a=b HTTP/1.1", "POST /v1/chat/completions#a HTTP/1.1", "post /v1/chat/completions HTTP/1.1", "Post /v1/chat/completions HTTP/1.1", "PUT /v1/chat/completions HTTP/1.1", "OPTIONS /v1/chat/completions HTTP/1.1", "POST  /v1/chat/completions HTTP/1.1",
		"POST /v1/chat/completions  HTTP/1.1", "POST /v1/chat/completions HTTP/1.1 ", "POST\t/v1/chat/completions HTTP/1.1", " POST /v1/chat/completions HTTP/1.1", "POST /v1/chat/completions HTTP/1.2", "POST /v1/chat/completions HTTP/2.0", "POST /v1/chat/completions HTTP/01.1", "POST /v1/chat/completions http/1.1", "POST /v1/chat/completions", "POST v1/chat/completions HTTP/1.1", "CONNECT /v1/chat/completions HTTP/1.1", "POST /v1/chat/completions;a HTTP/1.1", "POST /V1/chat/completions HTTP/1.1", "POST /v1/./chat/completions HTTP/1.1",
	} {
		said["by "+line] = strings.Replace(ask, "POST /v1/chat/completions HTTP/1.1", line, 1) + ask
	}
	for _, host := range []string{"", " ", "x:y", "x y", "x/y", "[::1]", "[", ":", "é", "x,y", "x:1:2", "user@x", "x\t", "%41", "*", "-", "_"} {
		said["to "+host] = strings.Replace(ask, "Host: x", "Host: "+host, 1) + ask
	}
	return said
}

// short answers in no time, and streams with a pause in it.
func short(ctx context.Context, r *exchange.Request, c exchange.Client) (res exchange.Result) {
	head := &exchange.Head{Status: http.StatusOK}
	res.Final = ledger.Entry{Request: r.ID, Final: true}
	if !r.Head.Stream {
		_ = c.Answer(head, fmt.Appendf(nil, `{"bytes":%d}`, len(r.Body)))
		return res
	}
	for i := range 3 {
		select {
		case <-ctx.Done():
			return res
		case <-time.After(time.Second):
		}
		if c.Events(head, fmt.Appendf(nil, "data: %d\n\n", i)) != nil {
			return res
		}
	}
	return res
}

// chance is what differs from one request to the next.
var chance = regexp.MustCompile(`req_[0-9a-f-]+`)

// script is what a server answers on a connection, by what is said on it in parts.
func (r *rig) script(t *testing.T, at string, parts []string, half bool) string {
	t.Helper()
	conn, err := r.net.Dial(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	heard := make(chan string)
	go func() {
		var out strings.Builder
		defer func() { heard <- chance.ReplaceAllString(out.String(), "req_") }()
		_ = conn.SetReadDeadline(began.Add(100 * time.Second))
		in := bufio.NewReader(conn)
		for {
			if _, err := in.Peek(1); err != nil {
				fmt.Fprintf(&out, "%v: %s\n", time.Since(began), ending(err))
				return
			}
			at := time.Since(began)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				fmt.Fprintf(&out, "%v: no answer: %v\n", at, err)
				return
			}
			body, err := io.ReadAll(resp.Body)
			resp.Header.Del("Date")
			var head bytes.Buffer
			_ = resp.Header.Write(&head)
			fmt.Fprintf(&out, "%v–%v: %s close=%v %v %d %q %v\n", at, time.Since(began), resp.Status, resp.Close, resp.TransferEncoding, resp.ContentLength, head.String()+string(body), err)
		}
	}()
	for _, part := range parts {
		_, _ = io.WriteString(conn, part)
		synctest.Wait()
	}
	if half {
		_ = conn.(*egresstest.Conn).CloseWrite()
	}
	return <-heard
}

// ending is how a connection ends for its client.
func ending(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "it stays"
	}
	return "it ends"
}

// cuts are ways to say s in parts: whole, byte by byte and in two, of which step tells
// how many.
func cuts(s string, step int) (all [][]string) {
	all = [][]string{{s}}
	if len(s) > 2000 {
		for _, at := range []int{1, 100, 4094, 4095, 4096, 4097, len(s) - 1} {
			if at < len(s) {
				all = append(all, []string{s[:at], s[at:]})
			}
		}
		return all
	}
	if step == 1 {
		all = append(all, strings.Split(s, ""))
	}
	for at := 1 + len(s)%step; at < len(s); at += step {
		all = append(all, []string{s[:at], s[at:]})
	}
	return all
}

// onBoth has a proxy that is served as always and, beside, by net/http alone: both says
// the same to each and returns what is heard.
func onBoth(t *testing.T, f func(t *testing.T, both func(parts []string, half bool) (plain, by string))) {
	inBubble(t, setup{options: func(o *Options) { o.Run = short }}, func(t *testing.T, r *rig) {
		other := newDoor(r.net.Listen("other:80"), 0)
		ended := make(chan error)
		go func() { ended <- r.proxy.server.Serve(guards{other}) }()
		f(t, func(parts []string, half bool) (plain, by string) {
			return r.script(t, "gateway:80", parts, half), r.script(t, "other:80", parts, half)
		})
		other.Close()
		<-ended
	})
}

// Whoever serves a request, its client hears the same, however it is written.
func TestPlainAsOther(t *testing.T) {
	step := 97
	if s := os.Getenv("SLUICE_PLAIN_STEP"); s != "" {
		step, _ = strconv.Atoi(s)
	}
	onBoth(t, func(t *testing.T, both func([]string, bool) (plain, by string)) {
		said, n := conversations(), 0
		for _, name := range slices.Sorted(maps.Keys(said)) {
			for _, parts := range cuts(said[name], step) {
				for _, half := range []bool{false, true} {
					if half && name == "three" { // net/http hears it by how much it has read ahead
						continue
					}
					n++
					plain, by := both(parts, half)
					if plain != by {
						t.Errorf("%s, %d parts, the first of %d, half %v:\n%s\nby net/http:\n%s", name, len(parts), len(parts[0]), half, plain, by)
					}
				}
			}
		}
		t.Logf("%d scripts of %d conversations", n, len(said))
	})
}

// A body that does not come holds no connection, whoever reads it or does not.
func TestBodyThatDoesNotCome(t *testing.T) {
	held := Mount{Pattern: "POST /v1/held", Operation: "held", Serve: func(http.ResponseWriter, *http.Request, Caller) error { return nil }}
	inBubble(t, setup{options: func(o *Options) { o.Run, o.Mounts = short, []Mount{held} }}, func(t *testing.T, r *rig) {
		ask := chatAs("Content-Length: 40\r\n", askBody)
		for name, said := range map[string]string{
			"plain": ask, "other": chatAs("Pragma: x\r\nContent-Length: 40\r\n", askBody), "chunks": chatAs("Transfer-Encoding: chunked\r\n", "5\r\n{\"mod\r\n"),
			"chunks beyond the bound": chatAs("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n", DefaultMaxBody+3<<20)+strings.Repeat(" ", DefaultMaxBody+2<<20)),
			"unread, plain":           strings.Replace(ask, clientSecret, "wrong", 1), "unread, other": strings.Replace(ask, clientSecret, "wrong\r\nPragma: x", 1),
			"none wanted": strings.Replace(ask, "POST /v1/chat/completions", "GET /v1/models", 1), "live": strings.Replace(ask, "POST /v1/chat/completions", "GET /livez", 1),
			"no such path": strings.Replace(ask, "/chat", "/chut", 1), "mounted": strings.Replace(ask, "/chat/completions", "/held", 1),
		} {
			conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			go io.WriteString(conn, said)
			_ = conn.SetReadDeadline(began.Add(time.Minute))
			got, err := io.ReadAll(conn)
			if took := time.Since(began); took > DefaultBodyGrace+time.Second || len(got) == 0 {
				t.Errorf("%s: %q, then %v after %v", name, got, err, took)
			}
			conn.Close()
		}
	})
}
