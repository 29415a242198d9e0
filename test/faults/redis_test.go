package faults

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"sluice"
)

// A cache whose Redis is gone is none: requests are run and answered as without it, each
// is told that it was a miss, and the gateway stays ready.
func TestFault_R1_CacheInRedisGone(t *testing.T) {
	t.Parallel()
	for name, listens := range map[string]bool{"refuses": false, "says nothing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t)
			g := start(t, layout{
				backends: []backend{{name: "a", url: p.url}},
				top:      fmt.Sprintf("cache: {store: redis, redis: %q, secret: 0123456789abcdef0123456789abcdef}", "redis://"+noRedis(t, listens)+"/0"),
				soft:     ", output_cache: {ttl: 10m}",
			})
			const asks = 5
			for range asks { // the same each time: a cache that worked would give it again
				if r := g.do(ask{prompt: "the same"}); !r.whole() || r.header.Get("Sluice-Cache") != "miss" {
					t.Fatalf("got %v with sluice-cache %q", &r, r.header.Get("Sluice-Cache"))
				}
			}
			if status := g.ready(); status != http.StatusOK {
				t.Errorf("readyz says %d", status)
			}
			g.quiet()
			if b := g.books(); len(b) != asks {
				t.Errorf("the ledger has %d requests, want %d", len(b), asks)
			} else {
				for id, es := range b {
					if e := es[0]; e.Outcome != sluice.Completed || e.Attempt != 1 || e.Usage.Source != sluice.UsageReported || e.Cost <= 0 {
						t.Errorf("%s: %v, attempt %d, %+v at %v", id, e.Outcome, e.Attempt, e.Usage, e.Cost)
					}
				}
			}
		})
	}
}

// noRedis is the address of a Redis that is gone: nobody listens there, or who does never
// says a word.
func noRedis(t *testing.T, listens bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if !listens {
		must(t, l.Close())
		return l.Addr().String()
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		var held []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			held = append(held, c)
		}
		for _, c := range held {
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
	})
	return l.Addr().String()
}
