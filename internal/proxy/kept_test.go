package proxy

import (
	"strings"
	"testing"
	"time"
)

// What an answer leaves of its deadlines ends no later one on its connection, however
// long that takes, and whoever serves it.
func TestKeptConnection(t *testing.T) {
	slow := talk{before: 50 * time.Second, first: 50 * time.Second, chunks: 3, gap: 40 * time.Second, usage: usage(9, 3)}
	inBubble(t, setup{places: []place{{handler: slow}}}, func(t *testing.T, r *rig) {
		quick := func() {
			t.Helper()
			if g := r.do(ask{body: `{`}); g.status != 400 || g.err != nil {
				t.Errorf("got %d %v", g.status, g.err)
			}
		}
		for _, pause := range []time.Duration{0, DefaultWriteStall/2 - time.Second, DefaultWriteStall + time.Second} {
			for _, stream := range []bool{true, false} {
				r.client.CloseIdleConnections() // the last one is net/http's by now
				quick()
				time.Sleep(pause)
				if g := r.do(ask{stream: stream}); g.status != 200 || g.err != nil || stream && !strings.HasSuffix(g.body, "data: [DONE]\n\n") {
					t.Errorf("%v after an answer, stream %v: got %d %q %v", pause, stream, g.status, g.body, g.err)
				}
				time.Sleep(pause)
				if g := r.do(ask{method: "GET", path: "/livez"}); g.status != 200 || g.err != nil {
					t.Errorf("%v after it: got %d %v", pause, g.status, g.err)
				}
			}
		}
		if n := r.net.Dials("gateway:80"); n != 3*2 { // one for each turn
			t.Errorf("%d connections", n)
		}
	})
}
