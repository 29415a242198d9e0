package tabletop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/tabletop/control"
)

// epoch is when a run starts, a Monday: windows of budgets are those of the
// calendar.
var epoch = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// play is a scenario under way.
type play struct {
	s      *Scenario
	o      *Options
	policy int // index of the variant
	ctx    context.Context
	seed   uint64
	events []Event

	gateway  *control.Gateway
	now      time.Duration
	end      time.Duration // when the run ends at the latest
	cut      bool          // it was interrupted
	timers   timers
	machines []*machine // by backend
	byID     map[sluice.BackendID]*machine
	sources  []*source
	roster   roster
	dice     *dice
	numbers  int64
	grants   []engine.Grant // scratch
	prefixes map[prefixKey][]uint64
	ladders  []LadderUse // as of the end

	m *measure
	watched
}

// source is a Source under way.
type source struct {
	*Source
	position  int
	name      uint64 // hash
	principal sluice.Principal
	stream    *stream
	gen       uint64   // of its arrival's timer
	input     *Lengths // nil: of the Trace's rows
	output    *Lengths // likewise
	client    Client

	arrived   int64 // that came up
	submitted int64 // of these: the rest wait at the client, for one of Streams
	open      int
	rows      []*Row // of those that wait at the client of a Trace
}

func (p *play) time() time.Time { return epoch.Add(p.now) }

// newPlay sets up a run. The error says what of the options is wrong.
func newPlay(ctx context.Context, s *Scenario, o *Options) (*play, error) {
	p := &play{s: s, o: o, ctx: ctx, seed: cmp.Or(o.Seed, s.Seed), byID: map[sluice.BackendID]*machine{}, prefixes: map[prefixKey][]uint64{}, end: s.Length + s.Drain}
	p.policy = slices.IndexFunc(s.Policies, func(v Variant) bool { return v.Name == cmp.Or(o.Policy, "sluice") })
	if p.policy < 0 {
		names := make([]string, 0, len(s.Policies))
		for i := range s.Policies {
			names = append(names, s.Policies[i].Name)
		}
		return nil, fmt.Errorf("policy %q is not one of this scenario: use one of %q", o.Policy, names)
	}
	p.events = slices.Clone(s.Events)
	for _, name := range o.Acts {
		i := slices.IndexFunc(s.Acts, func(a Act) bool { return a.Name == name })
		if i < 0 {
			names := make([]string, 0, len(s.Acts))
			for i := range s.Acts {
				names = append(names, s.Acts[i].Name)
			}
			return nil, fmt.Errorf("act %q is not one of this scenario: use some of %q", name, names)
		}
		for _, e := range s.Acts[i].Events {
			e.Phase = "" // phases are the scenario's own, so that runs can be compared
			p.events = append(p.events, e)
		}
	}
	slices.SortStableFunc(p.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	p.dice = newDice(p.seed)
	variant := &s.Policies[p.policy]
	p.gateway = control.New(variant.Table, s.Options)
	for _, spec := range s.Machines {
		m := newMachine(spec, p.seed)
		p.machines = append(p.machines, m)
		p.byID[spec.Backend] = m
	}
	slices.SortFunc(p.machines, func(a, b *machine) int { return cmp.Compare(a.spec.Backend, b.spec.Backend) })
	p.m = newMeasure(p, variant)
	for i := range s.Sources {
		p.addSource(&s.Sources[i], variant.Principals[i])
	}
	for i := range p.events {
		p.timers.set(p.events[i].At, timerEvent, i, 0)
	}
	for i, m := range p.machines {
		if m.spec.Scrape > 0 {
			p.timers.set(0, timerScrape, i, 0)
		}
	}
	p.timers.set(p.m.next(), timerSample, 0, 0)
	p.watched = watched{number: o.Watch, to: o.Tell}
	return p, nil
}

func (p *play) addSource(spec *Source, who sluice.Principal) {
	x := &source{Source: spec, position: len(p.sources), name: hashName(spec.Name), principal: who, client: spec.Client}
	x.stream = newStream(&spec.Arrivals, p.dice.stream(x.name, drawArrivals))
	x.input, x.output = &spec.Input, &spec.Output
	if spec.Arrivals.Process == Trace && !spec.Input.given() {
		x.input = nil
	}
	if spec.Arrivals.Process == Trace && !spec.Output.given() {
		x.output = nil
	}
	p.sources = append(p.sources, x)
	p.schedule(len(p.sources) - 1)
}

// schedule sets the timer of a source's next arrival.
func (p *play) schedule(i int) {
	x := p.sources[i]
	x.gen++
	if at, ok := x.stream.next(p.s.Length); ok && at < p.s.Length {
		p.timers.set(max(at, p.now), timerArrive, i, x.gen)
	}
}

// loop plays until nothing is left to happen, the time is over, or ctx ends.
func (p *play) loop() {
	const every = 1 << 10 // between looks at ctx
	shown := time.Duration(-1)
	for n := 0; ; n++ {
		if n%every == 0 {
			if p.ctx.Err() != nil {
				p.cut = true
				return
			}
			if p.o.Progress != nil && (shown < 0 || (p.now-shown)*100 >= p.end) {
				shown = p.now
				p.o.Progress(Progress{Now: p.now, Of: p.end, Requests: p.numbers})
			}
		}
		if !p.step() {
			return
		}
	}
}

// step goes to the next moment at which anything happens and lets it. It reports
// whether the run goes on.
func (p *play) step() bool {
	at, ok := p.next()
	if !ok || at > p.end {
		if p.roster.open > 0 {
			p.now = p.end
		}
		return false
	}
	p.now = max(p.now, at)
	if p.now >= p.s.Length && p.roster.open == 0 {
		return false
	}
	for _, m := range p.machines {
		if m.busy && m.wake <= p.now {
			p.advance(m)
		}
	}
	for len(p.timers.heap) > 0 && p.timers.heap[0].at <= p.now {
		p.fire(p.timers.pop())
	}
	p.grant()
	return true
}

// next is the next moment at which anything happens.
func (p *play) next() (at time.Duration, ok bool) {
	at, ok = p.timers.next()
	for _, m := range p.machines {
		if m.busy && (!ok || m.wake < at) {
			at, ok = m.wake, true
		}
	}
	if p.gateway.Open() > 0 {
		if t, is := p.gateway.NextWake(); is {
			if d := t.Sub(epoch); !ok || d < at {
				at, ok = d, true
			}
		}
	}
	return at, ok
}

func (p *play) fire(t timer) {
	i := t.index
	switch t.what {
	case timerEvent:
		p.event(&p.events[i])
	case timerArrive:
		if x := p.sources[i]; x.gen == t.gen {
			p.arrive(x)
			p.schedule(int(i))
		}
	case timerStream:
		p.stream(p.sources[i])
	case timerPatient:
		if q := p.roster.at(i, t.gen); q != nil {
			p.impatient(q)
		}
	case timerLeave:
		if q := p.roster.at(i, t.gen); q != nil {
			p.leave(q)
		}
	case timerSubmit:
		if q := p.roster.at(i, t.gen); q != nil {
			p.submit(q)
		}
	case timerReport:
		if q := p.roster.slots[i]; q.attempt == t.gen {
			p.report(q)
		}
	case timerFail:
		if q := p.roster.slots[i]; q.attempt == t.gen {
			p.failed(q)
		}
	case timerHedge:
		if q := p.roster.slots[i]; q.attempt == t.gen {
			p.late(q)
		}
	case timerScrape:
		p.scrape(int(i))
	case timerSample:
		p.m.sample(p)
		if at := p.m.next(); at <= p.s.Length {
			p.timers.set(at, timerSample, 0, 0)
		}
	}
}

// grant lets the gateway decide until it grants no more.
func (p *play) grant() {
	for again := true; again; {
		again = false
		p.grants = append(p.grants[:0], p.gateway.Advance(p.time())...)
		for i := range p.grants {
			if p.granted(&p.grants[i]) {
				again = true
			}
		}
	}
}
