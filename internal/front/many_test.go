package front

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Of many clients that come and go at once, each tells of itself alone: descriptors
// are used again at once.
func TestManyLeave(t *testing.T) {
	const clients, rounds = 16, 40
	var mu sync.Mutex
	gone := map[string]chan error{} // what waits for its client to leave
	handler := func(w http.ResponseWriter, r *http.Request) {
		name, _ := io.ReadAll(r.Body)
		if err := r.Context().Err(); err != nil && strings.HasPrefix(string(name), "stays") {
			t.Errorf("%s: %v", name, err)
		}
		mu.Lock()
		told := gone[string(name)]
		mu.Unlock()
		if told != nil {
			w.Header().Set("Content-Length", "1000000")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			told <- context.Cause(r.Context())
		}
		w.Write(name)
		if err := r.Context().Err(); err != nil && strings.HasPrefix(string(name), "stays") {
			t.Errorf("%s: %v", name, err)
		}
	}
	onBoth(t, handler, func(t *testing.T, s *stand) {
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for j := range rounds {
					switch name := fmt.Sprint(i, "-", j); j % 4 {
					case 0:
						stays := s.dial()
						for range 3 {
							stays.send(post("stays" + name)).wants("stays" + name)
						}
						stays.Close()
					case 1: // no request
						s.dial().Close()
					case 2: // another server's
						c := s.dial().send("GET /here HTTP/1.1\r\nHost: x\r\n\r\n")
						c.wants(`net/http: GET /here ""`)
						c.Close()
					default:
						told := make(chan error, 1)
						mu.Lock()
						gone[name] = told
						mu.Unlock()
						c := s.dial().send(post(name))
						if _, err := http.ReadResponse(c.r, nil); err != nil {
							t.Errorf("%s: %v", name, err)
						}
						if j%8 == 3 {
							_ = c.SetLinger(0)
						}
						c.Close()
						if err := <-told; err != context.Canceled {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			})
		}
		all.Wait()
	})
}
