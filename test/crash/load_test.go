package crash

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/test/gateway"
)

// The tenants: one whose spend is hard and whose records are on disk before the
// dial, one whose records are synced in groups.
const (
	hard = "hard"
	soft = "soft"
)

// answered is one request whose client had the whole answer.
type answered struct {
	user string
	at   time.Time
}

// load keeps streams running until it is stopped or the gateway is gone.
type load struct {
	g      *gateway.Gateway
	client *http.Client
	rnd    func() *rand.Rand // one for each worker
	make   func(rnd *rand.Rand, user string) (path, body, marker string)

	sent atomic.Int64 // so far, and the number in the label
	mu   sync.Mutex
	done []answered
}

func newLoad(g *gateway.Gateway, seed uint64) *load {
	var n atomic.Uint64
	return &load{
		g: g, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		rnd:  func() *rand.Rand { return rand.New(rand.NewPCG(seed, n.Add(1))) },
		make: request,
	}
}

// run keeps n requests in flight until ctx ends or each of them has failed to
// reach the gateway.
func (l *load) run(ctx context.Context, n int) {
	defer l.client.CloseIdleConnections()
	var wg sync.WaitGroup
	for range n {
		rnd := l.rnd()
		wg.Go(func() {
			for ctx.Err() == nil {
				reached, whole, user := l.one(ctx, rnd)
				if !reached {
					return
				}
				if whole {
					l.mu.Lock()
					l.done = append(l.done, answered{user, time.Now()})
					l.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// one sends one request. It reports whether the gateway was there at all, and
// whether the whole answer came.
func (l *load) one(ctx context.Context, rnd *rand.Rand) (reached, whole bool, user string) {
	tenant := []string{hard, soft}[rnd.IntN(2)]
	user = fmt.Sprintf("%s-%d", tenant, l.sent.Add(1))
	path, body, marker := l.make(rnd, user)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.g.URL(path), strings.NewReader(body))
	if err != nil {
		return false, false, user
	}
	r.Header.Set("Authorization", "Bearer "+l.g.Key(tenant))
	resp, err := l.client.Do(r)
	if err != nil {
		return !strings.Contains(err.Error(), "refused"), false, user
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body)
		return true, false, user
	}
	return true, readAnswer(resp.Body, marker), user
}

// readAnswer reads an answer and reports whether its end came; a stream's is its
// marker, after which its client need not read on.
func readAnswer(body io.Reader, marker string) bool {
	seen := false
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if marker != "" && strings.HasPrefix(line, marker) {
			seen = true
		}
		if err != nil {
			return seen || marker == "" && err == io.EOF
		}
	}
}

// request makes a request of a mix: many are long streams, some have checkpoints,
// many are short, some are no streams, some speak the other dialect.
func request(rnd *rand.Rand, user string) (path, body, marker string) {
	tokens, extra, stream := 150+rnd.IntN(500), "", true
	switch n := rnd.IntN(10); {
	case n < 1:
		tokens, extra = 2500, "!gap=1ms"
	case n < 5:
		tokens = 5 + rnd.IntN(20)
	case n < 6:
		tokens, stream = 30, false
	}
	path, body, marker = ask(rnd.IntN(5) == 0, stream, user, fmt.Sprintf("tokens=%d%s", tokens, extra))
	if !stream {
		marker = ""
	}
	return path, body, marker
}

// ask is a request in one of the dialects, and the line that ends its stream. say
// tells the provider what to do.
func ask(other, stream bool, user, say string) (path, body, marker string) {
	prompt := "Tell me of the water and its gates, at some length. [[" + say + "]]"
	if other {
		return "/v1/messages", fmt.Sprintf(`{"model":"claude","max_tokens":8000,"stream":%t,"metadata":{"user_id":%q},"messages":[{"role":"user","content":%q}]}`, stream, user, prompt), "event: message_stop"
	}
	return "/v1/chat/completions", fmt.Sprintf(`{"model":"fast","max_tokens":8000,"stream":%t,"user":%q,"messages":[{"role":"user","content":%q}]}`, stream, user, prompt), "data: [DONE]"
}

// hold has one request of a tenant open at the provider until the returned
// function gives it up.
func (l *load) hold(t *testing.T, tenant string) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	user := fmt.Sprintf("%s-%d", tenant, l.sent.Add(1))
	body := fmt.Sprintf(`{"model":"fast","max_tokens":1,"user":%q,"messages":[{"role":"user","content":"[[hang-headers]]"}]}`, user)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.g.URL("/v1/chat/completions"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+l.g.Key(tenant))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := l.client.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	for deadline := time.Now().Add(gateway.Patience); l.g.Status().Running == 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the request that holds a place did not come to run")
		}
	}
	return func() {
		cancel()
		<-done
		for l.g.Status().Open > 0 {
			time.Sleep(2 * time.Millisecond)
		}
	}
}
