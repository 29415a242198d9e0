package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sluice"
	"sluice/internal/route"
)

// deaf is a backend that keeps the headers that must not come to it.
type deaf struct {
	talk
	mu    sync.Mutex
	heard []string
}

func (d *deaf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	for name := range r.Header {
		if strings.HasPrefix(name, "Sluice-") {
			d.heard = append(d.heard, name)
		}
	}
	d.mu.Unlock()
	d.talk.ServeHTTP(w, r)
}

// A session stays with one backend, whichever header names it and whatever the rule of
// the pool; one of another tenant by the same name is another, and what names none is
// spread.
func TestSessionsKeepToTheirBackend(t *testing.T) {
	for _, rule := range []route.Choice{route.ByLoad, route.ByCost, route.ByAffinity} {
		t.Run(rule.String(), func(t *testing.T) { sessionsKeep(t, rule) })
	}
}

func sessionsKeep(t *testing.T, rule route.Choice) {
	tenant := sluice.TenantID("acme")
	s := setup{choice: rule, sticky: route.BySession}
	backends := make([]*deaf, 4)
	for i := range backends {
		backends[i] = &deaf{talk: talk{chunks: 3, usage: usage(100, 3)}}
		s.places = append(s.places, place{handler: backends[i]})
	}
	var policy *sluice.Policy
	s.options = func(o *Options) {
		o.Identify = func(string) (sluice.Principal, error) {
			return sluice.Principal{Tenant: tenant, Project: sluice.DefaultProject, Key: "ci", Policy: policy}, nil
		}
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		policy = r.policy
		n := 0
		send := func(h http.Header) Record {
			n++ // prompts have nothing in common
			body := fmt.Sprintf(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"%d"}]}`, n)
			if g := r.do(ask{body: body, header: h}); g.status != 200 {
				t.Fatalf("status %d: %s", g.status, g.body)
			}
			return r.want(sluice.Completed, sluice.ReasonNone, 200)
		}
		homes := map[string]sluice.BackendID{}
		for turn := range 4 {
			for i := range 8 {
				id := fmt.Sprint("session-", i)
				header := [...]string{"Sluice-Session", "X-Session-Id", "X-Session-Affinity"}[(turn+i)%3]
				rec := send(http.Header{header: {id}})
				if strings.Contains(string(rec.Final.Detail), id) {
					t.Fatalf("the record has the session's id: %s", rec.Final.Detail)
				}
				if turn == 0 {
					homes[id] = rec.Final.Backend
					continue
				}
				if rec.Final.Backend != homes[id] {
					t.Errorf("turn %d of %s went to %s, want %s", turn, id, rec.Final.Backend, homes[id])
				}
				if want := `"session":"` + route.SessionOf("acme", id).String() + `"`; !strings.Contains(string(rec.Final.Detail), want) || !strings.Contains(string(rec.Final.Detail), `"stay":"kept"`) {
					t.Errorf("the record does not tell that %s was kept: %s", want, rec.Final.Detail)
				}
			}
		}
		used := map[sluice.BackendID]bool{}
		for range 12 {
			used[send(http.Header{"X-Session-Id": {"no session"}}).Final.Backend] = true
		}
		if len(used) < 2 {
			t.Errorf("what names no session went to %v alone", used)
		}
		tenant = "globex"
		elsewhere := 0
		for id, home := range homes {
			if send(http.Header{"Sluice-Session": {id}}).Final.Backend != home {
				elsewhere++
			}
		}
		if elsewhere == 0 {
			t.Error("eight sessions of another tenant are where those of the same names are")
		}
		for i, b := range backends {
			if len(b.heard) > 0 {
				t.Errorf("backend %d was sent %v", i, b.heard)
			}
		}
	})
}

// A session whose backend has no slot left is served elsewhere, and returns.
func TestSessionsLeaveASaturatedBackend(t *testing.T) {
	gates := []*gated{{}, {}}
	s := setup{sticky: route.BySession}
	for _, g := range gates {
		g.talk = talk{chunks: 1, usage: usage(100, 1)}
		s.places = append(s.places, place{handler: g, slots: 1})
	}
	inBubble(t, s, func(t *testing.T, r *rig) {
		for _, g := range gates {
			g.open = make(chan struct{}) // of this bubble
		}
		h := http.Header{"Sluice-Session": {"s"}}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { r.do(ask{header: h}) })
		}
		synctest.Wait()
		for i, g := range gates {
			if n := g.count(); n != 1 {
				t.Errorf("backend %d, of one slot, has %d requests of the session, want 1", i, n)
			}
			close(g.open)
		}
		wg.Wait()
		first := r.do(ask{header: h}).header.Get("Sluice-Backend")
		if again := r.do(ask{header: h}).header.Get("Sluice-Backend"); again != first {
			t.Errorf("went to %s, then to %s", first, again)
		}
	})
}

// gated is a backend that answers once it is open.
type gated struct {
	talk
	open chan struct{}
	mu   sync.Mutex
	n    int
}

func (g *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
	<-g.open
	g.talk.ServeHTTP(w, r)
}

func (g *gated) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}
