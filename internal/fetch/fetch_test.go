package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/test/bubble"
)

const (
	png  = "\x89PNG\r\n\x1a\nxxxx"
	jpeg = "\xff\xd8\xff\xe0xxxx"
	page = "<html><body>secret</body></html>"
)

// world is a network with one public server, and names that lead where they like.
type world struct {
	net   egresstest.Net
	names map[string]string
	looks atomic.Int64
	f     *Fetcher
	asked atomic.Int64
	inner atomic.Int64 // requests that reached what is not public

	mu     sync.Mutex
	events map[Outcome]int // guarded by mu
	bytes  int             // guarded by mu
	took   time.Duration   // guarded by mu
}

const public, inside = "93.184.216.34", "127.0.0.1"

func newWorld(t *testing.T, serve http.HandlerFunc) *world {
	w := &world{events: map[Outcome]int{}, names: map[string]string{"a.example": public, "b.example": public, "inner.example": inside, "meta.example": "169.254.169.254", "six.example": "::ffff:10.0.0.1"}}
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == "rebinds.example" { // what a check of the name alone would see is public
			n := w.looks.Add(1)
			return []netip.Addr{netip.MustParseAddr([]string{public, inside}[min(n-1, 1)])}, nil
		}
		to, ok := w.names[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr(to)}, nil
	}
	w.f = New(egress.New(egress.Options{Dial: w.net.Dial, Lookup: lookup}), func(e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events[e.Outcome]++
		w.bytes, w.took = w.bytes+e.Bytes, w.took+e.Took
	})
	run := func(addr string, h http.HandlerFunc) {
		s := &http.Server{Handler: h, ErrorLog: nil}
		l := w.net.Listen(addr)
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close(); <-done })
	}
	run(public+":80", func(rw http.ResponseWriter, r *http.Request) { w.asked.Add(1); serve(rw, r) })
	for _, addr := range []string{"127.0.0.1:80", "169.254.169.254:80", "[::ffff:10.0.0.1]:80", "[::ffff:127.0.0.1]:80", "[::1]:80", "10.0.0.1:80", "100.100.100.200:80"} {
		run(addr, func(rw http.ResponseWriter, _ *http.Request) { w.inner.Add(1); _, _ = io.WriteString(rw, png) })
	}
	return w
}

func image(rw http.ResponseWriter, kind, body string) {
	rw.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(rw, body)
}

// usual serves a piece for each way in which a server can answer.
func usual(rw http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/a.png":
		image(rw, "image/png", png)
	case "/mistaken": // one kind of image for another
		image(rw, "image/png", jpeg)
	case "/unnamed":
		image(rw, "application/octet-stream", jpeg)
	case "/a.pdf":
		image(rw, "application/pdf; charset=binary", "%PDF-1.7 xx")
	case "/page":
		image(rw, "text/html", page)
	case "/page.png":
		image(rw, "image/png", page)
	case "/called-page":
		image(rw, "text/html", png)
	case "/packed":
		rw.Header().Set("Content-Encoding", "gzip")
		image(rw, "image/png", png)
	case "/large":
		rw.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(rw, png+strings.Repeat("x", MaxBytes))
	case "/half":
		image(rw, "image/png", png+strings.Repeat("x", MaxBytes*7/10))
	case "/said-large":
		rw.Header().Set("Content-Length", fmt.Sprint(MaxBytes+1))
		rw.WriteHeader(http.StatusOK)
	case "/slow":
		<-r.Context().Done()
	case "/drips":
		for r.Context().Err() == nil {
			_, _ = io.WriteString(rw, "x")
			_ = http.NewResponseController(rw).Flush()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
		}
	case "/to":
		http.Redirect(rw, r, r.URL.Query().Get("u"), http.StatusFound)
	case "/nowhere":
		rw.WriteHeader(http.StatusFound)
	case "/round":
		http.Redirect(rw, r, "/round", http.StatusMovedPermanently)
	default:
		http.NotFound(rw, r)
	}
}

func get(t *testing.T, w *world, kind Kind, urls ...string) (map[string]Got, *sluice.Error) {
	t.Helper()
	var pieces []Piece
	for i, u := range urls {
		pieces = append(pieces, Piece{Path: fmt.Sprintf("messages[0].content[%d].image_url.url", i), URL: u, Kind: kind})
	}
	got, err := w.f.Get(t.Context(), pieces)
	w.f.Close()
	if err == nil {
		return got, nil
	}
	e, ok := err.(*sluice.Error)
	if !ok || e.Kind != sluice.KindInvalid || e.Reason != sluice.Untranslatable || e.Hint == "" || !strings.HasPrefix(e.Param, "messages[0].content[") {
		t.Fatalf("got the error %#v", err)
	}
	return nil, e
}

func TestPiecesAreWhatTheirBytesAre(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, usual)
		got, err := get(t, w, Image, "http://a.example/a.png", "http://a.example/mistaken", "http://b.example/unnamed#here", "http://a.example/to?u=/to%3Fu=http://b.example/a.png", "http://a.example/a.png")
		if err != nil {
			t.Fatal(err)
		}
		for url, want := range map[string]Got{
			"http://a.example/a.png": {"image/png", []byte(png)}, "http://a.example/mistaken": {"image/jpeg", []byte(jpeg)}, "http://b.example/unnamed#here": {"image/jpeg", []byte(jpeg)},
			"http://a.example/to?u=/to%3Fu=http://b.example/a.png": {"image/png", []byte(png)},
		} {
			if g := got[url]; g.Type != want.Type || string(g.Data) != string(want.Data) {
				t.Errorf("%s: got %q, want %q", url, g, want)
			}
		}
		if n := w.asked.Load(); n != 6 {
			t.Errorf("the server was asked %d times, want 6: the same URL once", n)
		}
		if got, err := get(t, w, Document, "http://a.example/a.pdf"); err != nil || got["http://a.example/a.pdf"].Type != "application/pdf" {
			t.Errorf("a PDF: got %v, %v", got, err)
		}
	})
}

// What cannot be had is told by the path of its field, within bounds of time and bytes,
// and what is not public is never reached.
func TestPiecesThatAreRefused(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.example/none":                                     "its server answered 404",
		"http://a.example/page":                                     "is neither a PNG",
		"http://a.example/page.png":                                 "is neither a PNG",
		"http://a.example/called-page":                              "is not what its server calls it",
		"http://a.example/a.pdf":                                    "is a PDF, and no image",
		"http://a.example/packed":                                   "encoding",
		"http://a.example/large":                                    "larger than the 10 MiB",
		"http://a.example/said-large":                               "larger than the 10 MiB",
		"http://a.example/slow":                                     "within 10s",
		"http://a.example/drips":                                    "within 10s",
		"http://a.example/round":                                    "more than 3 times",
		"http://a.example/nowhere":                                  "redirected to nowhere",
		"http://unknown.example/":                                   "not known",
		"http://a.example:8080/a.png":                               "another port",
		"https://a.example:80/a.png":                                "another port",
		"http://u:p@a.example/a.png":                                "credentials",
		"file:///etc/passwd":                                        "neither https nor http",
		"gopher://a.example/":                                       "neither https nor http",
		"http:///a.png":                                             "without a host",
		"http://a b/":                                               "is no URL",
		"http://127.0.0.1/":                                         "not public",
		"http://[::1]/":                                             "not public",
		"http://[::ffff:127.0.0.1]/":                                "not public",
		"http://[::ffff:a00:1]/":                                    "not public",
		"http://10.0.0.1/":                                          "not public",
		"http://169.254.169.254/latest/meta-data/":                  "not public",
		"http://100.100.100.200/":                                   "not public",
		"http://inner.example/":                                     "not public",
		"http://meta.example/":                                      "not public",
		"http://six.example/":                                       "not public",
		"http://a.example/to?u=http://127.0.0.1/":                   "not public",
		"http://a.example/to?u=http://inner.example/":               "not public",
		"http://a.example/to?u=http://[::ffff:127.0.0.1]/":          "not public",
		"http://a.example/to?u=http://169.254.169.254/latest":       "not public",
		"http://a.example/to?u=http://a.example:22/":                "redirected to what is a URL with another port",
		"http://a.example/to?u=ftp://a.example/":                    "redirected to what is a URL that is neither",
		"http://a.example/to?u=http://rebinds.example/to":           "not public",
		"http://rebinds.example/to?u=http://rebinds.example/a.png":  "not public",
		"http://rebinds.example/to?u=http://inner.example/rebounds": "not public",
	} {
		t.Run(url, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, usual)
				if strings.Contains(url, "rebinds.example/to") && strings.HasPrefix(url, "http://a.") {
					w.looks.Add(1) // it was public when it was looked at
				}
				start := time.Now()
				got, err := get(t, w, Image, "http://a.example/a.png", url)
				if time.Since(start) > MaxTime {
					t.Errorf("it took %v", time.Since(start))
				}
				if n := w.inner.Load(); n != 0 {
					t.Errorf("%d requests reached what is not public", n)
				}
				switch {
				case err == nil:
					t.Errorf("got %v, %v", got, err)
				case !strings.Contains(err.Msg, want) || err.Param != "messages[0].content[1].image_url.url":
					t.Errorf("got %s %q, want %q", err.Param, err.Msg, want)
				case strings.Contains(err.Msg, "127.0.0.1") || strings.Contains(err.Msg, "refused"):
					t.Errorf("%q tells of the network", err.Msg)
				}
			})
		})
	}
}

// Each URL that is gone after is told once, by what became of it.
func TestOutcomesAreTold(t *testing.T) {
	for url, want := range map[string]Outcome{
		"http://a.example/a.png":                  Fetched,
		"http://a.example:8080/a.png":             BadURL,
		"http://10.0.0.1/":                        Forbidden,
		"http://a.example/none":                   Unanswered,
		"http://unknown.example/":                 Unanswered,
		"http://a.example/round":                  Redirected,
		"http://a.example/to?u=ftp://a.example/":  Redirected,
		"http://a.example/to?u=http://127.0.0.1/": Forbidden,
		"http://a.example/large":                  TooLarge,
		"http://a.example/page":                   Unfit,
		"http://a.example/packed":                 Unfit,
		"http://a.example/slow":                   TimedOut,
	} {
		t.Run(url, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, usual)
				_, _ = get(t, w, Image, url, url)
				if w.events[want] != 1 || len(w.events) != 1 {
					t.Errorf("told %v, want one %s", w.events, want)
				}
				if want == Fetched && w.bytes != len(png) || want != Fetched && w.bytes != 0 {
					t.Errorf("told of %d bytes", w.bytes)
				}
				if want == TimedOut && w.took != MaxTime {
					t.Errorf("told that it took %v", w.took)
				}
			})
		})
	}
	bubble.Test(t, func(t *testing.T) { // what another's failure ends is no failure of its own
		w := newWorld(t, usual)
		_, _ = get(t, w, Image, "http://a.example/slow", "http://a.example/none")
		if want := map[Outcome]int{Ended: 1, Unanswered: 1}; !maps.Equal(w.events, want) {
			t.Errorf("told %v, want %v", w.events, want)
		}
	})
}

// The pieces of one request are bounded in number and together.
func TestPiecesAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, usual)
		if _, err := get(t, w, Image, "http://a.example/half?1", "http://a.example/half?2", "http://a.example/half?3"); err == nil || !strings.Contains(err.Msg, "more than the 20 MiB") {
			t.Errorf("three large ones: got %v", err)
		}
		many := make([]string, MaxPieces+1)
		for i := range many {
			many[i] = fmt.Sprintf("http://a.example/a.png?%d", i)
		}
		was := w.asked.Load()
		if _, err := get(t, w, Image, many...); err == nil || !strings.Contains(err.Msg, "at most 20") || w.asked.Load() != was {
			t.Errorf("too many: got %v", err)
		}
	})
}

// A client that leaves ends what is fetched for it.
func TestPiecesEndWithTheirRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, usual)
		gone := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		start := time.Now()
		_, err := w.f.Get(ctx, []Piece{{Path: "a", URL: "http://a.example/slow"}})
		w.f.Close()
		if !errors.Is(err, gone) || time.Since(start) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}
