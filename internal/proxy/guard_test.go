package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/test/bubble"
)

// pieces is a connection that is read in pieces of the given sizes, over and over.
type pieces struct {
	net.Conn
	s     []byte
	sizes []byte
	next  int
}

func (c *pieces) Read(p []byte) (int, error) {
	if len(c.s) == 0 {
		return 0, io.EOF
	}
	n := len(c.s)
	if len(c.sizes) > 0 {
		n = min(n, max(int(c.sizes[c.next%len(c.sizes)]), 1))
		c.next++
	}
	n = copy(p, c.s[:n])
	c.s = c.s[n:]
	return n, nil
}

// through is what net/http would read of s.
func through(s, sizes []byte) ([]byte, *guard) {
	g := &guard{Conn: &pieces{s: s, sizes: sizes}}
	out, _ := io.ReadAll(g)
	return out, g
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func post(head, body string) string {
	return "POST / HTTP/1.1\r\nHost: x\r\n" + head + "\r\n" + body
}

const headlike = "GET / HTTP/1.1\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n\n"

// sound are requests that pass untouched.
var sound = []string{
	get,
	post("Content-Length: 5\r\n", "hello") + get,
	post("content-length:5 \r\n", "a\nb\nc") + post("CONTENT-LENGTH: 05\r\n", "hello"),
	post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
	post("Content-Length: 0\r\n", "") + get,
	post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n") + get,
	post("transfer-encoding:chunked\r\n", "A;x=1\r\nhello\nabcd\r\n1\r\n\n\r\n0\r\nTrailer: 1\r\n\r\n") + get,
	// A body may hold what looks like a head.
	post(fmt.Sprintf("Content-Length: %d\r\n", len(headlike)), headlike) + get,
	post("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(headlike), headlike)) + get,
	"GET / HTTP/1.0\r\n\r\n",
	post("X-Content-Length: 5\r\nX: Transfer-Encoding: chunked\r\n Content-Length: 9\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
}

// hostile are requests that are refused, none of which reaches a handler.
var hostile = map[string]string{
	"encoding and length":         post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
	"length and encoding":         post("Content-Length: 5\r\nX: y\r\ntRANSFER-eNCODING:chunked\r\n", "0\r\n\r\n"),
	"encoding folded, and length": post("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
	"encoding in HTTP/1.0":        "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"length folded":               post("Content-Length:\r\n 5\r\n", "hello"),
	"length far away":             post("Content-Length:"+strings.Repeat(" ", 100)+"5\r\n", "hello"),
	"two lengths":                 post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"),
	"length in a list":            post("Content-Length: 5, 5\r\n", "hello"),
	"length with a sign":          post("Content-Length: +5\r\n", "hello"),
	"LF after the first line":     "POST / HTTP/1.1\nHost: x\r\n\r\n",
	"LF after a header":           "GET / HTTP/1.1\r\nHost: x\n\r\n",
	"LF at the end of a head":     "GET / HTTP/1.1\r\nHost: x\r\n\n",
	"LF alone":                    "GET / HTTP/1.1\nHost: x\n\n",
	"LF after a chunk's size":     post("Transfer-Encoding: chunked\r\n", "5\nhello\r\n0\r\n\r\n"),
	"LF after a trailer":          post("Transfer-Encoding: chunked\r\n", "0\r\nX: y\n\r\n"),
	"size of a chunk with a sign": post("Transfer-Encoding: chunked\r\n", "+5\r\nhello\r\n0\r\n\r\n"),
}

func TestGuardPassesWhatIsSound(t *testing.T) {
	for _, s := range sound {
		for _, sizes := range [][]byte{nil, {1}, {2, 7}, {64, 1}} {
			if out, g := through([]byte(s), sizes); string(out) != s || g.refused || g.at != atRequest {
				t.Errorf("%q in pieces of %v: became %q, at part %d", s, sizes, out, g.at)
			}
		}
	}
}

// The verdict does not depend on how the bytes arrive, and what stands before the
// mistake arrives.
func TestGuardRefuses(t *testing.T) {
	for name, s := range hostile {
		whole, _ := through([]byte(get+s), nil)
		for _, sizes := range [][]byte{nil, {1}, {3, 5}, {64, 1}} {
			out, g := through([]byte(get+s), sizes)
			if !g.refused || !bytes.Equal(out, whole) || !bytes.HasPrefix(out, []byte(get)) || !bytes.HasSuffix(out, []byte("\x00\r\n\r\n")) {
				t.Errorf("%s in pieces of %v: refused %v, became %q", name, sizes, g.refused, out)
			}
		}
	}
}

// C8: one request of the connection is answered, the hostile one behind it is
// refused, and no third is read.
func TestFault_C8_SmuggledRequest(t *testing.T) {
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
				conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				live := "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
				go io.WriteString(conn, live+strings.Replace(s, " / ", " /livez ", 1)+live)
				var got []int
				replies := bufio.NewReader(conn)
				for {
					resp, err := http.ReadResponse(replies, nil)
					if err != nil {
						break
					}
					io.Copy(io.Discard, resp.Body)
					got = append(got, resp.StatusCode)
				}
				// A chunk's mistake comes after the head, whose answer may be under way.
				if want := "[200 400]"; fmt.Sprint(got) != want && !(strings.Contains(name, "chunk") || strings.Contains(name, "trailer")) || len(got) == 0 || got[0] != 200 || len(got) > 2 {
					t.Errorf("got %v, want %s", got, want)
				}
			})
		})
	}
}

// C8: a head beyond the bound is refused as such.
func TestFault_C8_LargeHead(t *testing.T) {
	inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
		for name, head := range map[string]string{
			"one line": "X-Long: " + strings.Repeat("x", 64<<10) + "\r\n", "many lines": strings.Repeat("X-Short: x\r\n", 64<<10/12),
		} {
			conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
			if err != nil {
				t.Fatal(err)
			}
			go io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n"+head+"\r\n")
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 431 {
				t.Errorf("%s: got %v, %v", name, resp, err)
			}
			conn.Close()
		}
	})
}

// P13: as many connections are served as have a place; the next one waits, and is
// served when one ends.
func TestDoor(t *testing.T) {
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 3, gap: time.Second, usage: usage(9, 3)}}}, options: func(o *Options) { o.MaxConns = 2 },
	}, func(t *testing.T, r *rig) {
		r.client.Transport.(*http.Transport).DisableKeepAlives = true
		first, second := make(chan got, 1), make(chan got, 1)
		go func() { first <- r.do(ask{stream: true}) }()
		go func() { second <- r.do(ask{stream: true}) }()
		synctest.Wait()
		third := r.do(ask{})
		if third.status != 200 || third.took != 2*time.Second {
			t.Errorf("the third got %d after %v, want it after 2 s", third.status, third.took)
		}
		for _, g := range []got{<-first, <-second} {
			if g.status != 200 || g.err != nil {
				t.Errorf("got %d %v", g.status, g.err)
			}
		}
	})
}

// A door whose listener fails keeps no place, and one that is closed lets nobody
// wait.
func TestDoorEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := newDoor(failing{}, 1)
		for range 3 {
			if _, err := d.Accept(); err != errAccept {
				t.Errorf("got %v", err)
			}
		}
		d.places <- struct{}{}
		ended := make(chan error)
		go func() { _, err := d.Accept(); ended <- err }()
		synctest.Wait()
		d.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

var errAccept = errors.New("accept")

type failing struct{ net.Listener }

func (failing) Accept() (net.Conn, error) { return nil, errAccept }
func (failing) Close() error              { return nil }

// However the bytes arrive, the same are read, and no head that net/http accepts of
// them is one that two servers may read in two ways.
func FuzzGuard(f *testing.F) {
	for _, s := range sound {
		f.Add([]byte(s), []byte{1})
	}
	for _, s := range hostile {
		f.Add([]byte(s), []byte{3, 1})
	}
	f.Fuzz(func(t *testing.T, s, sizes []byte) {
		whole, g := through(s, nil)
		cut, h := through(s, sizes)
		if !bytes.Equal(whole, cut) || g.refused != h.refused || g.at != h.at {
			t.Fatalf("in pieces of %v: %q refused %v, else %q refused %v", sizes, cut, h.refused, whole, g.refused)
		}
		if !g.refused && !bytes.Equal(whole, s) {
			t.Fatalf("%q became %q", s, whole)
		}
		if head, req := headOf(whole); req != nil {
			lower := bytes.ToLower(head)
			if bytes.Contains(lower, []byte("\ntransfer-encoding:")) && bytes.Contains(lower, []byte("\ncontent-length:")) {
				t.Fatalf("passed with both: %q", head)
			}
			if bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n")) {
				t.Fatalf("passed with a bare LF: %q", head)
			}
		}
	})
}

// headOf is what net/http takes for the head of the first request, nil if it finds
// none.
func headOf(s []byte) ([]byte, *http.Request) {
	in := bufio.NewReaderSize(bytes.NewReader(s), len(s)+16)
	req, err := http.ReadRequest(in)
	if err != nil {
		return nil, nil
	}
	return s[:len(s)-in.Buffered()], req
}

// endless is a connection that says the same request for ever.
type endless struct {
	net.Conn
	s string
}

func (c endless) Read(p []byte) (int, error) { return copy(p, c.s), nil }

// To watch a request costs no garbage.
func TestGuardAllocs(t *testing.T) {
	g := &guard{Conn: endless{s: sound[1]}}
	buf := make([]byte, 4096)
	if got := testing.AllocsPerRun(1000, func() { g.Read(buf) }); got > 0 || g.refused {
		t.Errorf("%v allocations, refused %v", got, g.refused)
	}
}

func BenchmarkGuard(b *testing.B) {
	head := "Authorization: Bearer " + strings.Repeat("k", 60) + "\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
	g := &guard{Conn: endless{s: post(head, strings.Repeat("x", 1000))}}
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		g.Read(buf)
	}
}

// A connection that a client has opened in advance is there when it is needed,
// within the time of an idle one; once something has come, the rest of the head is
// waited for as ever.
func TestSpareConnection(t *testing.T) {
	for _, tt := range []struct {
		wait  time.Duration
		send  string
		after time.Duration // the end of the connection, from the send
		want  string
	}{
		{idleTimeout - time.Second, "GET /nosuch HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 0, "HTTP/1.1 404"},
		{time.Minute, "GET / HT", readHeaderTimeout, "HTTP/1.1 400"},
		{idleTimeout + time.Second, "GET / HT", 0, ""},
	} {
		inBubble(t, setup{places: []place{{handler: talk{}}}}, func(t *testing.T, r *rig) {
			conn, err := r.net.Dial(t.Context(), "tcp", "gateway:80")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			time.Sleep(tt.wait)
			sent := time.Now()
			_, _ = io.WriteString(conn, tt.send)
			got, _ := io.ReadAll(conn)
			if !strings.HasPrefix(string(got), tt.want) || tt.want == "" && len(got) > 0 || time.Since(sent) != tt.after {
				t.Errorf("after %v: got %q after %v", tt.wait, got, time.Since(sent))
			}
		})
	}
}
