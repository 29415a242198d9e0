package scale

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/fakellm"
	"sluice/test/gateway"
)

// TestAborts is cD4: of 2,000 calls a quarter is given up, at any moment, and the
// ledger is within 2 % of what the provider counts.
func TestAborts(t *testing.T) {
	n := int64(sized(t, 300, 2000))
	fleet, url := scripted(t, fakellm.Options{Speed: 6, Seed: 4, Book: 1 << 16})
	g := gateway.New(t, gateway.Options{
		Config:  strings.Replace(strings.ReplaceAll(configuration(url, ""), "model: up", "model: sim-small"), "{dialect: openai,", "{dialect: openai, engine: vllm,", 1),
		Tenants: map[string]string{plain: plain},
	})
	g.Start()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	rnd := rand.New(rand.NewPCG(4, 4))
	var next, gone, failed atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				mu.Lock()
				tokens, words, after := 20+rnd.IntN(400), rnd.IntN(2000), time.Duration(rnd.IntN(400))*time.Millisecond
				mu.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				if i%4 == 0 {
					time.AfterFunc(after, cancel)
				}
				switch err := ask(ctx, client, g, i, tokens, words); {
				case ctx.Err() != nil:
					gone.Add(1)
				case err != nil:
					failed.Add(1)
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), gateway.Patience)
	defer cancel()
	if err := fleet.Await(ctx, func(total fakellm.Total) bool { return total.Running == 0 }); err != nil {
		t.Fatal(err)
	}
	g.Quiet()
	g.Verify()
	var input, output int64
	for _, e := range g.Entries() {
		input, output = input+e.Input, output+e.Output
	}
	total := fleet.Account(fakellm.Filter{Limit: 1}).Total
	off := func(got, want int64) float64 { return 100 * float64(got-want) / float64(want) }
	inOff, outOff := off(input, int64(total.Input)), off(output, int64(total.Output))
	t.Logf("%d calls, of which %d were given up: the ledger has %d in (%+.2f %%) and %d out (%+.2f %%)", n, gone.Load(), input, inOff, output, outOff)
	if max(inOff, -inOff, outOff, -outOff) > 2 {
		t.Errorf("the ledger is %+.2f %% in input and %+.2f %% in output from what the provider counts", inOff, outOff)
	}
	if gone.Load() < n/8 {
		t.Errorf("only %d calls were given up", gone.Load())
	}
}

// ask sends one streamed request and reads its answer.
func ask(ctx context.Context, client *http.Client, g *gateway.Gateway, i int64, tokens, words int) error {
	body := fmt.Sprintf(`{"model":"fast","stream":true,"user":"c-%d","max_tokens":1000,"messages":[{"role":"user","content":%q}]}`, i, prose(words)+fmt.Sprintf("[[tokens=%d]]", tokens))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL("/v1/chat/completions"), strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+g.Key(plain))
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !strings.HasSuffix(string(b), "data: [DONE]\n\n")) {
		return fmt.Errorf("call %d: %d, and its answer ends with %q", i, resp.StatusCode, b[max(0, len(b)-100):])
	}
	return err
}

// scripted serves a scripted provider that counts for itself.
func scripted(t *testing.T, o fakellm.Options) (*fakellm.Server, string) {
	t.Helper()
	fleet, err := fakellm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: fleet, ErrorLog: log.New(io.Discard, "", 0)}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		fleet.Close()
		served.Wait()
	})
	return fleet, "http://" + l.Addr().String()
}
