package route

import (
	"slices"
	"time"
)

// Site is the backends of one pool in one region: what is lost, and comes back, as a
// whole.
type Site struct {
	Region string
	Places []*Place

	lost bool
	back time.Time // since when it comes back; zero: it never was lost
	due  int64     // thousandths of a request, of its share while it comes back
}

// Site states, as [Site.State] tells them.
const (
	SiteHealthy   = "healthy"
	SiteLost      = "lost"
	SiteReturning = "returning"
)

// Continue takes over the state of the site of the same pool and region in the table
// before.
func (s *Site) Continue(before *Site) { s.lost, s.back, s.due = before.lost, before.back, before.due }

// Judge finds whether the site is lost: no backend there takes work whose breaker is
// closed, and whose failure domain has not failed. From when it is not any more it
// comes back. A pause that a backend asked for loses nothing: it ends by itself.
func (s *Site) Judge(now time.Time) (changed bool) {
	was := s.lost
	s.lost = !slices.ContainsFunc(s.Places, func(p *Place) bool {
		return p.Backend.Weight > 0 && !p.Health.Open() && !p.shunned
	})
	if was && !s.lost {
		s.back, s.due = now, 0
	}
	return was != s.lost
}

// Begin judges a site that nothing is known of: what is there is not coming back.
func (s *Site) Begin(now time.Time) {
	s.Judge(now)
	s.back = time.Time{}
}

// Lost reports whether it is.
func (s *Site) Lost() bool { return s.lost }

// Share is the part, in thousandths, of the requests at home here that the site may
// have: none while it is lost, and from then on from RampStart, in a straight line
// over so long, to all of them.
func (s *Site) Share(now time.Time, over time.Duration) int64 {
	switch {
	case s.lost:
		return 0
	case s.back.IsZero():
		return whole
	}
	return ramp(now.Sub(s.back), over)
}

// State is the site's in a word.
func (s *Site) State(now time.Time, over time.Duration) string {
	switch {
	case s.lost:
		return SiteLost
	case s.Share(now, over) < whole:
		return SiteReturning
	}
	return SiteHealthy
}

// ReturnEnds is when the site has all of its share again; false if it has, or is lost.
func (s *Site) ReturnEnds(now time.Time, over time.Duration) (time.Time, bool) {
	if s.State(now, over) != SiteReturning {
		return time.Time{}, false
	}
	return s.back.Add(over), true
}

// Takes reports whether the site takes the next request that is at home here and could
// be served elsewhere, and counts it: of n requests at a share s it takes ⌊n·s⌋, and
// never two more than its share of any that follow each other. A lost one takes those
// that it is offered, which are its probes.
func (s *Site) Takes(now time.Time, l *Locality) bool {
	share := s.Share(now, l.Returns())
	if s.lost || share >= whole {
		return true
	}
	if s.due += share; s.due < whole {
		return false
	}
	s.due -= whole
	return true
}

// Traffic counts attempts that began in a region: of requests at home there, and of
// those that are away from home.
type Traffic struct {
	Home, Away int64 // in all

	start     time.Time
	now, last [2]int64
}

// trafficSpan is what Traffic.Recent counts over: one to two of it.
const trafficSpan = 30 * time.Second

// Began counts an attempt.
func (t *Traffic) Began(now time.Time, away bool) {
	t.turn(now)
	if away {
		t.Away++
		t.now[1]++
		return
	}
	t.Home++
	t.now[0]++
}

// Recent is how many attempts began of late, within the last half to whole minute.
func (t *Traffic) Recent(now time.Time) (home, away int64) {
	t.turn(now)
	return t.now[0] + t.last[0], t.now[1] + t.last[1]
}

func (t *Traffic) turn(now time.Time) {
	switch gone := now.Sub(t.start); {
	case gone < trafficSpan:
	case gone < 2*trafficSpan:
		t.start, t.last, t.now = t.start.Add(trafficSpan), t.now, [2]int64{}
	default:
		t.start, t.last, t.now = now, [2]int64{}, [2]int64{}
	}
}
