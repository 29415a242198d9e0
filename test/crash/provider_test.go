package crash

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/fakellm"
)

// call is one upstream call as the provider saw it.
type call struct {
	user  string // the client's own label, which names the request
	model string
	at    time.Time
	id    string // the provider's, "" while it runs
}

// provider is the provider that survives. It keeps, beside its own book, which
// request of which client each call was for.
type provider struct {
	*fakellm.Server
	url string

	mu    sync.Mutex
	calls []*call
	open  int
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	fleet, err := fakellm.New(fakellm.Options{Book: 1 << 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{Server: fleet, url: "http://" + l.Addr().String()}
	server := &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0)}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		fleet.Close()
		served.Wait()
	})
	return p
}

// ServeHTTP enters the call and lets the scripted provider answer it. What asks an
// engine how busy it is is none.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		p.Server.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // the gateway died while it sent the request: nobody saw it
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var asked struct {
		Model, User string
		Metadata    struct {
			User string `json:"user_id"`
		}
	}
	_ = json.Unmarshal(body, &asked)
	c := &call{user: asked.User + asked.Metadata.User, model: asked.Model, at: time.Now()}
	p.mu.Lock()
	p.calls = append(p.calls, c)
	p.open++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
		c.id = w.Header().Get("X-Request-Id") + w.Header().Get("Request-Id")
	}()
	p.Server.ServeHTTP(w, r)
}

// settled waits until no call runs and returns all, with what the book says of
// each.
func (p *provider) settled(t *testing.T) ([]*call, map[string]*fakellm.Served) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		p.mu.Lock()
		open, calls := p.open, p.calls
		p.mu.Unlock()
		if open == 0 {
			book := map[string]*fakellm.Served{}
			account := p.Account(fakellm.Filter{})
			for i := range account.Served {
				book[account.Served[i].ID] = &account.Served[i]
			}
			return calls, book
		}
		if time.Now().After(deadline) {
			t.Fatalf("the provider still has %d calls", open)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// upstreamName is the model of a call without the faults in its name.
func upstreamName(model string) string {
	name, _, _ := strings.Cut(model, "!")
	return name
}
