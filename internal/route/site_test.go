package route_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/route"
)

// siteOf makes a site of n backends that fail at the first failure.
func siteOf(n int) (*route.Site, []*route.Place) {
	s := &route.Site{Region: "east"}
	for range n {
		p := &route.Place{Backend: &route.Backend{Weight: 1, Capacity: route.Capacity{Concurrency: 4}}}
		p.Health.Configure(route.BreakerPolicy{Failures: 1}, false)
		s.Places = append(s.Places, p)
	}
	return s, s.Places
}

// A site is lost with the last of its backends, and comes back from when the first is
// back: of any stretch of the requests that follow it takes their share to within one.
func TestSiteComesBackByItsRamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := start
		s, places := siteOf(rapid.IntRange(1, 4).Draw(t, "backends"))
		s.Begin(now)
		l := &route.Locality{Regions: []string{"east", "west"}, Return: time.Duration(rapid.IntRange(1, 600).Draw(t, "return")) * time.Second}
		if !s.Takes(now, l) || s.Share(now, l.Returns()) != 1000 {
			t.Fatal("a healthy site does not take its requests")
		}
		for i, p := range places {
			if s.Judge(now); s.Lost() {
				t.Fatalf("lost with %d of %d backends", i, len(places))
			}
			outage(now, p)
		}
		if s.Judge(now); !s.Lost() || s.State(now, l.Returns()) != route.SiteLost || s.Share(now, l.Returns()) != 0 {
			t.Fatal("not lost without a backend")
		}
		now = now.Add(route.Cooldown)
		answer(now, places[0])
		if s.Judge(now); s.State(now, l.Returns()) != route.SiteReturning {
			t.Fatalf("it is %s after its probe", s.State(now, l.Returns()))
		}
		at, due, taken := now, int64(0), int64(0)
		for range rapid.IntRange(1, 400).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "gap")) * time.Millisecond)
			want := int64(1000)
			if e := now.Sub(at); e < l.Return {
				want = route.RampStart + (1000-route.RampStart)*e.Microseconds()/l.Return.Microseconds()
			}
			if got := s.Share(now, l.Returns()); got != want {
				t.Fatalf("%v after its return of %v its share is %d ‰, want %d", now.Sub(at), l.Return, got, want)
			}
			if want == 1000 {
				if !s.Takes(now, l) {
					t.Fatal("it is back, and does not take a request")
				}
				continue
			}
			due += want
			if s.Takes(now, l) {
				taken++
			}
			if taken != due/1000 {
				t.Fatalf("it took %d of what adds up to %d thousandths", taken, due)
			}
		}
	})
}

// A site that is lost again while it comes back begins anew; one of which nothing was
// known before does not come back.
func TestSiteBegins(t *testing.T) {
	now := start
	s, places := siteOf(2)
	s.Begin(now)
	if got := s.State(now, time.Minute); got != route.SiteHealthy {
		t.Errorf("a new site is %s", got)
	}
	outage(now, places[0])
	outage(now, places[1])
	s.Judge(now)
	now = now.Add(route.Cooldown)
	answer(now, places[1])
	s.Judge(now)
	if now = now.Add(30 * time.Second); s.Share(now, time.Minute) != 550 {
		t.Errorf("half way its share is %d ‰, want 550", s.Share(now, time.Minute))
	}
	outage(now, places[1])
	if s.Judge(now); !s.Lost() {
		t.Error("it is not lost again")
	}
	again := &route.Site{Region: "east", Places: places}
	again.Continue(s)
	now = now.Add(route.Cooldown)
	answer(now, places[0])
	if again.Judge(now); again.Share(now, time.Minute) != route.RampStart {
		t.Errorf("its share is %d ‰ after the second return, want %d", again.Share(now, time.Minute), route.RampStart)
	}
}

func TestLocalityIsValidated(t *testing.T) {
	table := func(change func(*route.Table, *route.Model)) error {
		m := &route.Model{ID: "m", Pools: []sluice.PoolID{"p"}, Locality: &route.Locality{Regions: []string{"east", ""}}}
		tab := &route.Table{
			Models:   map[sluice.ModelID]*route.Model{"m": m},
			Pools:    map[sluice.PoolID]*route.Pool{"p": {ID: "p", Backends: []*route.Backend{{ID: "a", Region: "east"}, {ID: "b"}}}},
			Headroom: map[string]int64{"east": 300},
		}
		change(tab, m)
		return tab.Validate()
	}
	for name, tt := range map[string]struct {
		change func(*route.Table, *route.Model)
		fails  bool
	}{
		"as it is":         {func(*route.Table, *route.Model) {}, false},
		"no region":        {func(_ *route.Table, m *route.Model) { m.Locality.Regions = nil }, true},
		"a region twice":   {func(_ *route.Table, m *route.Model) { m.Locality.Regions = []string{"east", "", "east"} }, true},
		"not all regions":  {func(_ *route.Table, m *route.Model) { m.Locality.Regions = []string{"east"} }, true},
		"too slow a ramp":  {func(_ *route.Table, m *route.Model) { m.Locality.Return = route.MaxReturn + 1 }, true},
		"a large headroom": {func(t *route.Table, _ *route.Model) { t.Headroom["east"] = 1001 }, true},
	} {
		if err := table(tt.change); (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTraffic(t *testing.T) {
	var tr route.Traffic
	now := start
	for i := range 40 {
		tr.Began(now, i%4 == 0)
		now = now.Add(time.Second)
	}
	if home, away := tr.Recent(now); home != 30 || away != 10 {
		t.Errorf("recently %d at home, %d away, want 30 and 10", home, away)
	}
	if home, away := tr.Recent(now.Add(2 * time.Minute)); home != 0 || away != 0 || tr.Home != 30 || tr.Away != 10 {
		t.Errorf("later %d at home, %d away of %d and %d", home, away, tr.Home, tr.Away)
	}
}

// outage fails an attempt on a place.
func outage(now time.Time, p *route.Place) { attempt(now, p, sluice.UpstreamConnect) }

// answer completes one.
func answer(now time.Time, p *route.Place) { attempt(now, p, sluice.ReasonNone) }

func attempt(now time.Time, p *route.Place, why sluice.Reason) {
	taken := take(p, now, route.Need{})
	p.Ended(now, &taken, route.Ending{Why: why})
	p.Give(&taken)
}
