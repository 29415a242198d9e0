package front

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post is a plain request.
func post(body string) string {
	return fmt.Sprintf("POST /here HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// unseen hides from the server that a connection has a descriptor.
type unseen struct{ net.Conn }

func (c unseen) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// blindly is a listener of such connections.
type blindly struct{ net.Listener }

func (l blindly) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return unseen{c}, nil
}

// stand is a server before a handler of /here, and net/http for the rest.
type stand struct {
	t    *testing.T
	s    *Server
	http *http.Server
	at   string
}

// onBoth runs a test with the kernel's watch and without.
func onBoth(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, s *stand)) {
	for _, seen := range []bool{true, false} {
		t.Run(fmt.Sprintf("seen=%v", seen), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &stand{t: t, at: l.Addr().String()}
			s.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "net/http: %s %s %q", r.Method, r.URL, body)
			})}
			s.s = New(Options{
				Base: context.WithoutCancel(t.Context()), Idle: time.Minute, Rest: s.http.Serve,
				Find: func(path string) http.Handler {
					if path == "/here" {
						return handler
					}
					return nil
				},
			})
			if !seen {
				l = blindly{l}
			}
			served := make(chan error)
			go func() { served <- s.s.Serve(l) }()
			test(t, s)
			s.end()
			if err := <-served; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
	}
}

func (s *stand) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(s.s.Shutdown(ctx), s.http.Shutdown(ctx)); err != nil {
		s.t.Errorf("Shutdown: %v", err)
	}
}

// client is one connection to the server.
type client struct {
	t *testing.T
	*net.TCPConn
	r *bufio.Reader
}

func (s *stand) dial() *client {
	s.t.Helper()
	c, err := net.Dial("tcp", s.at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return &client{s.t, c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c *client) send(text string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// answer reads an answer and its body.
func (c *client) answer() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Errorf("after %q: %v", body, err)
	}
	return resp, string(body)
}

// wants reads an answer of 200 with a body.
func (c *client) wants(body string) *http.Response {
	c.t.Helper()
	resp, got := c.answer()
	if resp.StatusCode != http.StatusOK || got != body {
		c.t.Errorf("got %d %q, want 200 %q", resp.StatusCode, got, body)
	}
	return resp
}

// ends wants the connection to end.
func (c *client) ends() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.r); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("got %q, %v, want the end of the connection", rest, err)
	}
	c.Close()
}

// echo answers with the body.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header()["Content-Length"] = []string{fmt.Sprint(len(body))}
	w.Write(body)
}

// A connection serves one request after another, however they come.
func TestKept(t *testing.T) {
	onBoth(t, echo, func(t *testing.T, s *stand) {
		c := s.dial()
		c.send(post("one")).wants("one")
		c.send(post("two") + post("") + post("three"))
		c.wants("two")
		c.wants("")
		c.wants("three")
		head, body, _ := strings.Cut(post("in two parts"), "two")
		c.send(head)
		time.Sleep(time.Millisecond) // likely to be read by itself; right in any case
		c.send("two" + body).wants("in two parts")
		long := strings.Repeat("long ", 100_000)
		resp := c.send(post(long)).wants(long)
		if resp.Close || len(resp.Header["Date"]) != 1 {
			t.Errorf("got %v", resp.Header)
		}
	})
}

// With the first request that is not plain the connection is net/http's.
func TestHandedOver(t *testing.T) {
	onBoth(t, echo, func(t *testing.T, s *stand) {
		for name, request := range map[string]string{
			`net/http: POST /there "x"`: "POST /there HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
			`net/http: GET /here ""`:    "GET /here HTTP/1.1\r\nHost: x\r\n\r\n",
			`net/http: POST /here "xy"`: "POST /here HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n",
		} {
			c := s.dial()
			c.send(post("one")).wants("one")
			c.send(post("two") + request + request + post("three"))
			c.wants("two")
			c.wants(name)
			c.wants(name)
			c.wants(`net/http: POST /here "three"`)
		}
		c := s.dial().send("POST /there HTTP/1.1\r\nHo")
		time.Sleep(time.Millisecond) // likely to be read by itself; right in any case
		c.send("st: x\r\nContent-Length: 0\r\n\r\n").wants(`net/http: POST /there ""`)
	})
}

// A client that leaves ends the context of its request, whichever way it goes.
func TestClientLeaves(t *testing.T) {
	began, ended := make(chan bool), make(chan error)
	handler := func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		began <- true
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	}
	onBoth(t, handler, func(t *testing.T, s *stand) {
		for name, leave := range map[string]func(*client){
			"closes":       func(c *client) { c.Close() },
			"half":         func(c *client) { c.CloseWrite() },
			"resets":       func(c *client) { c.SetLinger(0); c.Close() },
			"not at first": func(c *client) { time.Sleep(5 * time.Millisecond); c.Close() },
		} {
			c := s.dial().send(post("x"))
			<-began
			leave(c)
			if err := <-ended; err != context.Canceled {
				t.Errorf("%s: got %v", name, err)
			}
		}
		c := s.dial().send(post("x")) // before the handler begins
		c.CloseWrite()
		<-began
		<-ended
	})
}

// What is said of an answer is what is sent.
func TestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    string // body
		length  int64
		cut     bool // the client sees that it was
		keeps   bool
	}{
		"chunks": {handler: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 3 {
				fmt.Fprintf(w, "chunk %d;", i)
				http.NewResponseController(w).Flush()
			}
			w.Write([]byte(strings.Repeat("x", 2*writeRoom)))
		}, want: "chunk 0;chunk 1;chunk 2;" + strings.Repeat("x", 2*writeRoom), length: -1, keeps: true},
		"nothing": {handler: func(http.ResponseWriter, *http.Request) {}, keeps: true},
		"long": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			w.Write([]byte(strings.Repeat("x", 50000)))
			w.Write([]byte(strings.Repeat("y", 50000)))
			if _, err := w.Write([]byte("z")); err != http.ErrContentLength {
				panic(err)
			}
		}, want: strings.Repeat("x", 50000) + strings.Repeat("y", 50000), length: 100000, keeps: true},
		"short": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.Write([]byte("xy"))
		}, cut: true},
		"closed": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			w.Write([]byte("x"))
		}, want: "x", length: -1},
		"aborted": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("x"))
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, length: -1, cut: true},
		"another panic": {handler: func(http.ResponseWriter, *http.Request) { panic("x") }, cut: true},
		"folded": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-A"] = []string{"a\r\nX-B: b"}
			w.Header()["X B"] = []string{"c"}
			w.Header().Set("Content-Length", "0")
		}, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, tt.handler, func(t *testing.T, s *stand) {
				c := s.dial().send(post("hello"))
				resp, err := http.ReadResponse(c.r, nil)
				if err != nil {
					if !tt.cut {
						t.Fatal(err)
					}
					return
				}
				body, err := io.ReadAll(resp.Body)
				if tt.cut != (err != nil) || !tt.cut && (string(body) != tt.want || resp.ContentLength != tt.length) {
					t.Errorf("got %d bytes of %d, %v", len(body), resp.ContentLength, err)
				}
				if a := resp.Header.Get("X-A"); a != "" && a != "a  X-B: b" || resp.Header["X-B"] != nil {
					t.Errorf("got %v", resp.Header)
				}
				if !tt.keeps {
					c.ends()
					return
				}
				if resp.Close {
					t.Error("the connection is not kept")
				}
				c.send(post(""))
				if _, err := http.ReadResponse(c.r, nil); err != nil {
					t.Errorf("the connection does not serve another: %v", err)
				}
			})
		})
	}
}

// A body that a handler does not read is read behind its answer, or the connection ends
// such that the client has the answer.
func TestUnreadBody(t *testing.T) {
	onBoth(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("no")) }, func(t *testing.T, s *stand) {
		c := s.dial()
		for _, size := range []int{10, restRead / 2, 10} {
			c.send(post(strings.Repeat("x", size))).wants("no")
		}
		c.send(post(strings.Repeat("x", 2*restRead)))
		if resp := c.wants("no"); !resp.Close {
			t.Error("the connection is kept")
		}
		c.ends()
	})
}

// A body that ends before its length is told from one that is whole.
func TestCutBody(t *testing.T) {
	got := make(chan error)
	onBoth(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		got <- err
	}, func(t *testing.T, s *stand) {
		c := s.dial().send(strings.TrimSuffix(post("hello"), "o"))
		c.CloseWrite()
		if err := <-got; err != io.ErrUnexpectedEOF {
			t.Errorf("got %v", err)
		}
	})
}

// A server that shuts down lets requests end, says that the connection does too, and
// closes those on which nothing is served.
func TestShutdown(t *testing.T) {
	began, goOn := make(chan bool), make(chan bool)
	onBoth(t, func(w http.ResponseWriter, _ *http.Request) { began <- true; <-goOn; w.Write([]byte("x")) }, func(t *testing.T, s *stand) {
		idle := s.dial().send(post(""))
		<-began
		goOn <- true
		idle.wants("x")
		busy := s.dial().send(post(""))
		<-began
		s.s.LameDuck()
		idle.ends()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := s.s.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("Shutdown: %v", err)
		}
		var ended sync.WaitGroup
		ended.Go(s.end)
		goOn <- true
		if resp := busy.wants("x"); !resp.Close {
			t.Error("the connection is kept")
		}
		busy.ends()
		ended.Wait()
	})
}

// Close ends what is served.
func TestClose(t *testing.T) {
	began := make(chan bool)
	onBoth(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		began <- true
		<-r.Context().Done()
	}, func(t *testing.T, s *stand) {
		s.dial().send(post("x"))
		<-began
		s.s.Close()
	})
}

// A client that cannot be written to has left.
func TestUnwritable(t *testing.T) {
	ended := make(chan error)
	onBoth(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		for {
			if _, err := w.Write(make([]byte, 2*writeRoom)); err != nil {
				<-r.Context().Done()
				ended <- err
				return
			}
		}
	}, func(t *testing.T, s *stand) {
		s.dial().send(post("x"))
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// BenchmarkServe is a request on a kept connection, here and by net/http.
func BenchmarkServe(b *testing.B) {
	for _, by := range []string{"here", "net/http"} {
		b.Run(by, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			httpServer := &http.Server{Handler: http.HandlerFunc(echo)}
			s := New(Options{Base: b.Context(), Idle: time.Minute, Rest: httpServer.Serve, Find: func(string) http.Handler {
				if by == "here" {
					return http.HandlerFunc(echo)
				}
				return nil
			}})
			var served sync.WaitGroup
			served.Go(func() { _ = s.Serve(l) })
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			r, request := bufio.NewReader(c), post(strings.Repeat("x", 1000))
			b.ReportAllocs()
			for b.Loop() {
				io.WriteString(c, request)
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
			}
			c.Close()
			s.Close()
			httpServer.Close()
			served.Wait()
		})
	}
}
