package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
)

// TestCallerAsksForItsPlace asks for a stream that waits and that has, by its first
// keep-alive, told the client its id.
func TestCallerAsksForItsPlace(t *testing.T) {
	stranger := "slk_test_of-somebody-else"
	inBubble(t, setup{
		places: []place{{handler: talk{chunks: 2, gap: 20 * time.Second, usage: usage(9, 2)}}},
		policy: sluice.Policy{Limits: limits(sluice.Limit{Dimension: sluice.Concurrency, Amount: 1})},
		options: func(o *Options) {
			identify := o.Identify
			o.Identify = func(credential string) (sluice.Principal, error) {
				if credential == stranger {
					return sluice.Principal{Tenant: "other", Project: sluice.DefaultProject, Key: "x"}, nil
				}
				return identify(credential)
			}
		},
	}, func(t *testing.T, r *rig) {
		r.proxy.o.Look = r.gate.Look
		var wg sync.WaitGroup
		wg.Go(func() { r.do(ask{stream: true}) })
		synctest.Wait()
		resp, err := r.client.Do(r.request(ask{stream: true})) // returns with the first comment
		if err != nil {
			t.Fatal(err)
		}
		id := resp.Header.Get("Sluice-Request-Id")
		look := func(credential, id string) (int, map[string]any) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://gateway/v1/sluice/requests/"+id, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+credential)
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var body map[string]any
			if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, body
		}
		status, body := look(clientSecret, id)
		if status != 200 || body["state"] != "waiting" || body["position"] != 0.0 || body["waited_ms"] != float64(DefaultKeepAliveAfter/time.Millisecond) || body["max_wait_ms"] != 30000.0 {
			t.Errorf("got %d %v", status, body)
		}
		for name, c := range map[string]struct {
			credential, id string
			status         int
		}{
			"another's id": {stranger, id, 404}, "no such id": {clientSecret, "req_nosuch", 404}, "nobody": {"slk_x", id, 401},
			"too long": {clientSecret, strings.Repeat("x", 5000), 404},
		} {
			if status, body := look(c.credential, c.id); status != c.status {
				t.Errorf("%s: got %d %v, want %d", name, status, body, c.status)
			}
		}
		time.Sleep(10 * time.Second) // the first has ended, and the second runs
		if status, body := look(clientSecret, id); status != 200 || body["state"] != "running" || body["attempt"] != 1.0 || body["position"] != nil {
			t.Errorf("while it runs: got %d %v", status, body)
		}
		resp.Body.Close()
		wg.Wait()
	})
}
