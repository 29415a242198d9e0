package tabletop

import (
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// event lets something happen.
func (p *play) event(e *Event) {
	p.m.sample(p) // a phase that begins here does so before
	p.m.event(p, e)
	switch {
	case e.Traffic != nil:
		p.traffic(e.Traffic)
	case e.Backends != nil:
		p.backends(e.Backends)
	case e.Pin != nil:
		p.gateway.Pin(p.time(), e.Pin.Pool, e.Pin.Tier, e.Pin.For)
	case e.Apply != nil:
		p.apply(&e.Apply[p.policy])
	}
}

func (p *play) traffic(t *Traffic) {
	for _, i := range t.Sources {
		x := p.sources[i]
		if t.Input != nil {
			x.input = t.Input
		}
		if t.Output != nil {
			x.output = t.Output
		}
		if t.Client != nil {
			x.client = *t.Client
			p.timers.set(p.now, timerStream, i, 0)
		}
		if t.Rate != nil {
			x.stream.setRate(p.now, *t.Rate)
			p.schedule(i)
		}
	}
}

func (p *play) backends(b *Backends) {
	for _, id := range b.IDs {
		m := p.byID[id]
		if b.Speed > 0 {
			m.speed = b.Speed
			m.sim.SetSpeed(p.time(), b.Speed)
			m.touched(p.now)
		}
		if b.Fail != nil {
			m.fail = *b.Fail
		}
		switch {
		case b.Down:
			m.sim.Fail(p.time())
			p.advance(m)
		case b.Up && m.sim.Load().Health == fleet.Down:
			m.sim.Restart(p.time())
			m.touched(p.now)
		}
	}
	p.grant()
}

// apply puts another table and other principals into force.
func (p *play) apply(v *Variant) {
	if err := p.gateway.Swap(p.time(), v.Table); err != nil {
		panic("tabletop: an event applies a table that is not valid: " + err.Error()) // config has compiled it
	}
	for i, x := range p.sources {
		x.principal = v.Principals[i]
	}
	p.m.applied(v)
	p.grant()
}

// scrape asks an engine for its load, as the gateway's poller does.
func (p *play) scrape(i int) {
	m := p.machines[i]
	s := engine.Signal{Backend: m.spec.Backend}
	m.sync(p.time())
	if l := m.sim.Load(); l.Health == fleet.Serving {
		s.Load = &route.Load{
			At: p.time(), Every: m.spec.Scrape, Running: int64(l.Running), Waiting: int64(l.Waiting),
			KVPermille: l.Permille(), KVCapacity: l.KVCapacity,
		}
	}
	p.gateway.Observe(p.time(), s)
	p.grant()
	if at := p.now + m.spec.Scrape; at < p.end {
		p.timers.set(at, timerScrape, i, 0)
	}
}

// label is what a timeline shows of an event.
func (e *Event) label() string {
	switch {
	case e.Label != "":
		return e.Label
	case e.Traffic != nil:
		return "traffic changes"
	case e.Backends != nil:
		return "backends change"
	case e.Pin != nil:
		return "a ladder is pinned"
	case e.Phase != "":
		return e.Phase
	}
	return "another configuration is applied"
}
