package live

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// inForce is a version and since when.
type inForce struct {
	at      time.Duration
	version string
}

// versionsOf makes a table for each backend, in which the pool has that one alone: the
// version that decided about a request shows in where it went.
func versionsOf(s *site) (tables []*route.Table) {
	for i, b := range s.table.Pools["main"].Backends {
		t, p := *s.table, *s.table.Pools["main"]
		t.Version = fmt.Sprintf("v%d", i)
		p.Backends = []*route.Backend{b}
		t.Pools = map[sluice.PoolID]*route.Pool{"main": &p}
		tables = append(tables, &t)
	}
	return tables
}

// TestVersionsUnderLoad changes the policy and rolls it back every few hundred
// milliseconds under load, with requests that wait and run over many changes. Each
// attempt was chosen by the version that its entry names and that was in force at that
// very moment, a rollback is in force at once, and nothing is cut.
func TestVersionsUnderLoad(t *testing.T) {
	long(t)
	p := plan{queue: route.QueueBounds{MaxWait: time.Minute}, tenants: map[sluice.TenantID]sluice.Policy{"t": {}}}
	for range 3 {
		p.backends = append(p.backends, backend{fleet.Llama8BOnH100(), route.Capacity{Concurrency: 12}})
	}
	at(t, p, func(t *testing.T, s *site) {
		const length = 30 * time.Second
		tables := versionsOf(s)
		var timeline []inForce
		swap := func(i int) {
			timeline = append(timeline, inForce{s.log.now(), tables[i].Version})
			if err := s.gate.Swap(tables[i]); err != nil {
				t.Fatal(err)
			}
		}
		swap(0)
		c := s.crowd()
		c.loop(40, length, ask{tenant: "t", in: 400, out: 200})
		rng := rand.New(rand.NewPCG(6, 7))
		for now, before := 0, 0; s.log.now() < length; {
			time.Sleep(time.Duration(50+rng.IntN(400)) * time.Millisecond)
			next := rng.IntN(len(tables))
			if rng.IntN(3) == 0 {
				next = before // a rollback
			}
			before, now = now, next
			swap(now)
		}
		answered := 0
		for _, g := range c.all()["t"] {
			if answered++; g.status != 200 || g.err != nil || g.tokens != 200 {
				t.Errorf("a request was cut: status %d, %d tokens, %v %s", g.status, g.tokens, g.err, g.reason)
			}
		}
		judgeVersions(t, s, timeline)
		if len(timeline) < 80 || answered < 300 {
			t.Errorf("only %d changes under %d requests", len(timeline), answered)
		}
		t.Logf("%d changes under %d requests", len(timeline), answered)
	})
}

// judgeVersions holds every entry to the one version that it names.
func judgeVersions(t *testing.T, s *site, timeline []inForce) {
	t.Helper()
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	over := 0
	for i := range s.log.entries {
		e := &s.log.entries[i]
		if want := "v" + string(e.Backend)[1:]; e.Policy != want {
			t.Errorf("%s went to %s and belongs to version %q, want %q", e.Request, e.Backend, e.Policy, want)
		}
		q := s.log.requests[e.Request]
		var at []string // in force at the moment of the choice: two at the moment of a change
		for j, v := range timeline {
			if v.at <= q.granted && (j+1 == len(timeline) || timeline[j+1].at >= q.granted) {
				at = append(at, v.version)
			}
			if v.at > q.granted && v.at < q.ended {
				over++
			}
		}
		found := false
		for _, v := range at {
			found = found || v == e.Policy
		}
		if !found {
			t.Errorf("%s was chosen at %v by version %s, when %v was in force", e.Request, q.granted, e.Policy, at)
		}
	}
	if over == 0 {
		t.Error("no request ran over a change: the test shows nothing")
	}
}
