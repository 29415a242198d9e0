package route

import (
	"slices"
	"time"
)

// Domain is a failure domain: backends that fail together.
type Domain struct {
	Name   string
	Places []*Place

	open bool
}

// NewDomain makes a domain of places, which are of no other from now on.
func NewDomain(name string, places []*Place) *Domain {
	d := &Domain{Name: name, Places: places}
	for _, p := range places {
		p.domain = d
	}
	return d
}

// Continue takes over the state of the domain of the same name in the table before.
func (d *Domain) Continue(before *Domain) { d.open = before.open }

// probing reports whether one of its backends is being probed.
func (d *Domain) probing() bool {
	return slices.ContainsFunc(d.Places, func(p *Place) bool { return p.Health.probing })
}

// Scouts reports whether the place is due its probe, and none other of its domain has
// one.
func (p *Place) Scouts(now time.Time) bool {
	return p.Health.due(now) && (p.domain == nil || !p.domain.probing())
}

// Alone takes a place out of its domain: it fails on its own.
func (p *Place) Alone() { p.domain, p.shunned = nil, false }

// Open reports whether so many of its backends' breakers are open that the domain
// counts as failed.
func (d *Domain) Open() bool { return d.open }

// Failing is how many of its backends' breakers are open, of how many that take
// work.
func (d *Domain) Failing() (open, of int) {
	for _, p := range d.Places {
		if p.Retired || p.Backend.Weight <= 0 {
			continue
		}
		of++
		if p.Health.Open() {
			open++
		}
	}
	return open, of
}

// Judge opens or closes the domain's breaker. It reports whether that changed.
func (d *Domain) Judge(p BreakerPolicy) (changed bool) {
	n, of := d.Failing()
	was := d.open
	d.open = n >= 2 && int64(n)*1000 >= p.WithDefaults().Domain*int64(of)
	return d.open != was
}

// Settle decides over the places of one pool what none can decide for itself: where
// a domain has failed and the pool has a backend elsewhere, all of the domain is
// avoided; and where no backend is left, and those who ask for the pool have no
// other (sole), those that answer some of what they are sent are taken back. What has
// changed at one place may have for others, such as of a credential that they share:
// Settle follows every change, before any of them is asked again.
func Settle(now time.Time, places []*Place, sole bool) {
	fit, elsewhere := false, false
	for _, p := range places {
		p.shunned = false
		p.stir()
		if p.Serves(now) {
			fit = true
			elsewhere = elsewhere || !p.Avoided()
		}
	}
	for _, p := range places {
		if p.shunned = elsewhere && p.Avoided(); p.shunned {
			p.rejoin = true
			p.stir()
		}
		if !fit && sole && p.Backend.Weight > 0 {
			p.Health.release()
		}
	}
}
