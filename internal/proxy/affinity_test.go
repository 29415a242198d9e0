package proxy

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"sluice"
	"sluice/internal/route"
)

// heard is a backend that keeps what it was sent.
type heard struct {
	talk
	mu     sync.Mutex
	bodies []string
}

func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.bodies = append(h.bodies, string(b))
	h.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(b)))
	h.talk.ServeHTTP(w, r)
}

// The turns of a conversation go where its first one went, its tenant's salt with
// them, and what was believed is recorded.
func TestConversationsKeepToTheirBackend(t *testing.T) {
	backends := make([]*heard, 4)
	s := setup{choice: route.ByAffinity, salt: "operator's"}
	for i := range backends {
		backends[i] = &heard{talk: talk{chunks: 3, usage: usage(3000, 3)}}
		s.places = append(s.places, place{handler: backends[i], engine: "vllm"})
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		where := make(map[int]sluice.BackendID)
		for turn := range 4 {
			for c := range 6 {
				var b strings.Builder
				fmt.Fprintf(&b, `{"model":"m","max_tokens":100,"messages":[{"role":"system","content":"conversation %d %s"}`, c, strings.Repeat(fmt.Sprint("all of it is said again ", c), 400))
				for k := range turn {
					fmt.Fprintf(&b, `,{"role":"user","content":"turn %d"}`, k)
				}
				b.WriteString("]}")
				if g := r.do(ask{body: b.String()}); g.status != 200 {
					t.Fatalf("status %d: %s", g.status, g.body)
				}
				rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
				if turn == 0 {
					where[c] = rec.Final.Backend
					continue
				}
				if rec.Final.Backend != where[c] {
					t.Errorf("turn %d of conversation %d went to %s, want %s", turn, c, rec.Final.Backend, where[c])
				}
				if !regexp.MustCompile(`"backend":"` + string(where[c]) + `","cached":[1-9][0-9]{3},"cost_us":[0-9]+}`).Match(rec.Final.Detail) {
					t.Errorf("turn %d: the record does not tell what was believed cached: %s", turn, rec.Final.Detail)
				}
			}
		}
		salts := map[string]bool{}
		for _, b := range backends {
			for _, body := range b.bodies {
				m := regexp.MustCompile(`"cache_salt":"([A-Za-z0-9_-]{43})"`).FindStringSubmatch(body)
				if m == nil {
					t.Fatalf("a backend was sent no salt: %.200s", body)
				}
				salts[m[1]] = true
			}
		}
		if len(salts) != 1 {
			t.Errorf("one tenant has the salts %v", salts)
		}
	})
}
